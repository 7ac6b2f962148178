use seqtide::storage::json::{ScanLimits, scan_document};
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::{Edit, Write};
use seqtide::{ChangesOptions, Database, Engine, Error, PutError, Since};

use crate::support::{engine, next_change};

async fn body(database: &Database, id: &str) -> Option<String> {
    database.get(id).await.unwrap().map(|found| found.body.as_str().to_owned())
}

#[tokio::test]
async fn a_document_is_written_read_updated_and_deleted() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    assert_eq!(body(&database, "a").await, None);

    let first = database.put("a", r#"{"n": 1}"#).await.unwrap();
    assert_eq!((first.rev.generation, first.seq.version), (1, 1));
    assert_eq!(body(&database, "a").await.unwrap(), r#"{"n":1}"#);

    let second = database.put("a", format!(r#"{{"_rev": "{}", "n": 2}}"#, first.rev)).await.unwrap();
    assert_eq!((second.rev.generation, second.seq.version), (2, 2));
    assert_eq!(body(&database, "a").await.unwrap(), r#"{"n":2}"#);

    let third = database.delete("a", second.rev).await.unwrap();
    assert_eq!((third.rev.generation, third.seq.version), (3, 3));
    assert_eq!(body(&database, "a").await, None);
    let counters = database.info().await.unwrap().counters;
    assert_eq!((counters.docs, counters.deleted_docs, counters.update_seq.version), (0, 1, 3));
}

/// It was written, and every write after it refused.
#[tokio::test]
async fn a_malformed_design_document_is_refused_and_blocks_no_write() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let (id, malformed) = ("_design/d", r#"{"validate_doc_update":7}"#);
    let refused = database.put(id, malformed).await.unwrap_err();
    assert!(matches!(refused, PutError::Engine(Error::BadDesign { .. })), "{refused:?}");
    assert_eq!(refused.to_string(), "_design/d: `validate_doc_update` must be a string");
    let body = scan_document(malformed.as_bytes(), &ScanLimits::default()).unwrap().body;
    let edit = || Write::Edit(Edit::interactive(DocId::parse(id).unwrap(), None, false, body.clone()));
    assert!(matches!(database.write(vec![edit()]).await, Err(Error::BadDesign { .. })));
    assert!(matches!(database.write_later(edit()).await, Err(Error::BadDesign { .. })));
    database.put("a", "{}").await.unwrap();
}

#[tokio::test]
async fn an_edit_on_another_revision_than_the_leaf_is_a_conflict() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let first = database.put("a", "{}").await.unwrap();
    let update = format!(r#"{{"_rev": "{}", "n": 2}}"#, first.rev);
    database.put("a", &update).await.unwrap();
    let stale = format!(r#"{{"_rev": "{}", "n": 3}}"#, first.rev);
    for refused in [
        database.put("a", r#"{"n": 4}"#).await,
        database.put("a", stale).await,
        database.delete("a", first.rev.clone()).await,
        database.delete("never", first.rev.clone()).await,
    ] {
        assert!(matches!(refused, Err(PutError::Conflict)), "{refused:?}");
    }
    assert_eq!(database.info().await.unwrap().counters.update_seq.version, 2);
    assert_eq!(body(&database, "a").await.unwrap(), r#"{"n":2}"#);
}

#[tokio::test]
async fn an_edit_goes_on_from_the_newest_of_its_revisions() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let first = database.put("a", "{}").await.unwrap();
    let hash = &first.rev.hash;
    let as_read = format!(r#"{{"_rev": "9-z", "_revisions": {{"start": 1, "ids": ["{hash}"]}}, "n": 2}}"#);
    assert_eq!(database.put("a", &as_read).await.unwrap().rev.generation, 2);
    assert!(matches!(database.put("a", as_read).await, Err(PutError::Conflict)));
}

#[tokio::test]
async fn bad_ids_and_bodies_are_refused() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    assert!(matches!(database.put("", "{}").await, Err(PutError::BadId(_))));
    assert!(matches!(database.put(&"x".repeat(501), "{}").await, Err(PutError::BadId(_))));
    assert!(matches!(database.put("a", "[1]").await, Err(PutError::BadBody(_))));
    assert!(matches!(database.put("a", r#"{"_odd": 1}"#).await, Err(PutError::BadBody(_))));
    assert_eq!(database.info().await.unwrap().counters.update_seq.version, 0);
}

#[test]
fn a_handle_works_from_any_runtime() {
    let (engine, _folder) = engine(|_| {});
    let current = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = current.block_on(engine.create_database("db")).unwrap();
    current.block_on(database.put("current", "{}")).unwrap();
    let options = ChangesOptions { since: Since::START, ..ChangesOptions::default() };
    let mut changes = current.block_on(database.changes(options)).unwrap();

    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    threads.block_on(database.put("threads", "{}")).unwrap();
    // A feed that one runtime opened goes on in another, while the first one stands still.
    let seen = threads.block_on(async { [next_change(&mut changes).await.id, next_change(&mut changes).await.id] });
    assert_eq!(seen.map(|id| id.to_string()), ["current", "threads"]);
    assert!(current.block_on(database.get("threads")).unwrap().is_some());
    threads.block_on(engine.shutdown()).unwrap();
}

#[tokio::test]
async fn a_folder_belongs_to_one_engine_until_it_is_shut_down() {
    let (engine, folder) = engine(|_| {});
    let refused = Engine::start(folder.path()).map(drop).unwrap_err();
    assert!(matches!(&refused, Error::Storage(cause) if cause.to_string().contains("in use")), "{refused}");
    let database = engine.create_database("db").await.unwrap();
    database.put("a", "{}").await.unwrap();
    engine.shutdown().await.unwrap();

    let next = Engine::start(folder.path()).unwrap();
    assert!(next.database("db").unwrap().get("a").await.unwrap().is_some());
    next.create_database("new").await.unwrap();
    assert!(matches!(database.put("b", "{}").await, Err(PutError::Engine(Error::Stopped))));
    engine.shutdown().await.unwrap();
    next.shutdown().await.unwrap();
    let names = Engine::start(folder.path()).unwrap().databases();
    assert_eq!(names.len(), 2, "the first engine's second shutdown left the folder alone: {names:?}");
}

#[tokio::test]
async fn what_a_put_cannot_keep_is_refused() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let other = database.put("a", r#"{"_id": "b"}"#).await;
    assert!(matches!(other, Err(PutError::AnotherId { .. })), "{other:?}");
    let attached = database.put("a", r#"{"_attachments": {"x": {"data": ""}}}"#).await;
    assert!(matches!(attached, Err(PutError::Attachments)), "{attached:?}");
    assert!(database.put("a", r#"{"_id": "a", "_attachments": {}}"#).await.is_ok());
    engine.shutdown().await.unwrap();
}
