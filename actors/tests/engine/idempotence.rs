//! Writes with an idempotency key, through the embedded API.

use std::sync::atomic::{AtomicU64, Ordering};

use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::{Edit, Write};
use seqtide::{Engine, Error, Fingerprint, IdempotencyKey, PutError, WriteOptions};

use crate::support::engine;

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new(text).unwrap()
}

#[tokio::test]
async fn a_write_sent_again_answers_the_same_even_to_the_next_engine() {
    let (first_engine, folder) = engine(|_| {});
    let database = first_engine.create_database("db").await.unwrap();
    let put = database.put_with("a", r#"{"n": 1}"#, key("put").into()).await.unwrap();
    let delete = database.delete_with("a", put.rev.clone(), key("delete").into()).await.unwrap();
    assert_eq!((put.replayed, delete.replayed, delete.seq.version), (false, false, 2));
    first_engine.shutdown().await.unwrap();

    let engine = Engine::start(folder.path()).unwrap();
    let database = engine.database("db").unwrap();
    let again = database.put_with("a", r#"{"n":1}"#, key("put").into()).await.unwrap();
    assert!(again.replayed && (again.rev, again.seq) == (put.rev.clone(), put.seq));
    let again = database.delete_with("a", put.rev, key("delete").into()).await.unwrap();
    assert!(again.replayed && (again.rev, again.seq) == (delete.rev, delete.seq));
    assert_eq!(database.info().await.unwrap().counters.update_seq.version, 2);
    engine.shutdown().await.unwrap();
}

#[tokio::test]
async fn another_write_with_a_known_key_is_an_error() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    database.put_with("a", "{}", key("k").into()).await.unwrap();
    for reused in [
        database.put_with("a", r#"{"n": 2}"#, key("k").into()).await,
        database.put_with("b", "{}", key("k").into()).await,
    ] {
        assert!(matches!(reused, Err(PutError::Engine(Error::KeyReused))), "{reused:?}");
    }
    let conflict = database.put_with("a", "{}", key("l").into()).await;
    assert!(matches!(conflict, Err(PutError::Conflict)), "{conflict:?}");
    assert!(!database.put_with("b", "{}", key("l").into()).await.unwrap().replayed, "a conflict leaves its key free");
}

/// No functions can be run here: the design document was not there when the request was first sent.
#[tokio::test]
async fn a_write_that_was_made_is_answered_so_whatever_validates_writes_by_now() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let first = database.put_with("a", "{}", key("k").into()).await.unwrap();
    // While it is there a function would not be asked.
    database.delete("a", first.rev.clone()).await.unwrap();
    database.put("_design/d", r#"{"validate_doc_update":"() => {}"}"#).await.unwrap();
    let again = database.put_with("a", "{}", key("k").into()).await.unwrap();
    assert!(again.replayed && (again.rev, again.seq) == (first.rev, first.seq));
    let unknown = database.put_with("a", "{}", key("l").into()).await;
    assert!(matches!(unknown, Err(PutError::Engine(Error::Function(_)))), "{unknown:?}");
    let reused = database.put_with("a", r#"{"n": 2}"#, key("k").into()).await;
    assert!(matches!(reused, Err(PutError::Engine(Error::KeyReused))), "{reused:?}");
}

#[tokio::test]
async fn a_request_whose_ids_are_made_anew_is_known_by_the_fingerprint_it_is_given() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let fingerprint = Fingerprint::builder().part("import").part("file-7").finish();
    let attempt = async |id: &str| {
        let id = DocId::parse(id).unwrap();
        let edit = Edit::interactive(id.clone(), None, false, seqtide::storage::json::Body::empty());
        let options =
            WriteOptions { idempotency_key: Some(key("k")), fingerprint: Some(fingerprint), made_ids: vec![id] };
        database.write_with(vec![Write::Edit(edit)], options).await.unwrap()
    };
    assert_eq!(database.written_before(&key("k"), fingerprint).await.unwrap(), None);
    let first = attempt("made-first").await;
    let again = attempt("made-again").await;
    assert!(!first.replayed && again.replayed);
    assert_eq!((&again.outcomes, again.made_ids[0].as_str()), (&first.outcomes, "made-first"));
    assert_eq!(database.written_before(&key("k"), fingerprint).await.unwrap(), Some(again));
    let other = database.written_before(&key("k"), Fingerprint::builder().finish()).await;
    assert!(matches!(other, Err(Error::KeyReused)), "{other:?}");
    assert!(database.get("made-again").await.unwrap().is_none());
}

#[tokio::test]
async fn a_key_is_forgotten_by_the_clock_that_the_store_has() {
    static NOW: AtomicU64 = AtomicU64::new(1_000);
    let (engine, _folder) = engine(|options| options.store.clock = || NOW.load(Ordering::Relaxed));
    let database = engine.create_database("db").await.unwrap();
    assert_eq!(database.info().await.unwrap().created_secs, 1_000);
    database.put_with("a", "{}", key("k").into()).await.unwrap();
    assert!(database.put_with("a", "{}", key("k").into()).await.unwrap().replayed);
    NOW.fetch_add(48 * 3600, Ordering::Relaxed);
    let anew = database.put_with("a", "{}", key("k").into()).await;
    assert!(matches!(anew, Err(PutError::Conflict)), "{anew:?}");
    engine.shutdown().await.unwrap();
}
