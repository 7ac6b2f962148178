use std::time::Duration;

use seqtide_storage::json::Body;
use tokio::time::{sleep, timeout};

use super::*;
use crate::functions::WorkerCommand;
use crate::functions::protocol::{Answer, frame};
use crate::{Database, Engine, EngineOptions, PutError};

/// A database whose writes are validated, in an engine that can run no functions.
async fn validated(set: impl FnOnce(&mut EngineOptions)) -> (Engine, Database, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = EngineOptions::new(folder.path());
    set(&mut options);
    let engine = Engine::start_with(options).unwrap();
    let database = engine.create_database("db").await.unwrap();
    put_validator(&database, "v", 0).await.unwrap();
    (engine, database, folder)
}

/// Puts a design document that validates, larger than it need be by so many bytes.
async fn put_validator(database: &Database, name: &str, pad: usize) -> Result<(), PutError> {
    let json = format!(r#"{{"pad":"{}","validate_doc_update":"() => {{}}"}}"#, "x".repeat(pad));
    database.put(&format!("_design/{name}"), json).await.map(drop)
}

/// Unless `more`, what there is to validate by is small enough.
async fn assert_validated(database: &Database, more: bool) {
    let refused = database.put("document", "{}").await;
    let Err(PutError::Engine(Error::Function(error))) = refused else { panic!("{refused:?}") };
    let expected = if more { FunctionError::TooLarge { bytes_max: 16 << 20 } } else { FunctionError::NoWorkers };
    assert_eq!(error, expected);
}

/// They were all read into memory, whatever they took.
#[tokio::test]
async fn design_documents_that_are_too_large_to_validate_by_refuse_what_is_to_be_validated() {
    let (engine, database, folder) = validated(|_| {}).await;
    for name in ["w", "x", "y"] {
        put_validator(&database, name, 6 << 20).await.unwrap();
        assert_validated(&database, name == "y").await;
    }
    database.write(vec![Write::RevsLimit(7)]).await.unwrap();
    engine.shutdown().await.unwrap();
    let engine = Engine::start(folder.path()).unwrap();
    let database = engine.database("db").unwrap();
    assert_validated(&database, true).await;
    let rev = database.get("_design/y").await.unwrap().unwrap().rev;
    database.delete("_design/y", rev).await.unwrap();
    assert_validated(&database, false).await;
    engine.shutdown().await.unwrap();
}

/// One page is read at a time.
#[tokio::test]
async fn a_design_document_that_validates_is_found_behind_many_that_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(folder.path()).unwrap();
    let database = engine.create_database("db").await.unwrap();
    let large = format!(r#"{{"pad":"{}"}}"#, "x".repeat(1 << 20));
    for name in ["a", "b", "c"] {
        database.put(&format!("_design/{name}"), &large).await.unwrap();
    }
    database.put("a", "{}").await.unwrap();
    put_validator(&database, "v", 0).await.unwrap();
    assert_validated(&database, false).await;
    engine.shutdown().await.unwrap();
    let engine = Engine::start(folder.path()).unwrap();
    assert_validated(&engine.database("db").unwrap(), false).await;
    engine.shutdown().await.unwrap();
}

fn write(id: &str) -> Write {
    Write::Edit(Edit::interactive(DocId::parse(id).unwrap(), None, false, Body::empty()))
}

/// What its edits expected was passed over, and they were made.
#[tokio::test]
async fn a_request_whose_documents_are_not_as_its_edits_expect_is_not_validated() {
    let (engine, database, _folder) = validated(|_| {}).await;
    let edit = |id: &str, at| {
        let edit = Edit::interactive(DocId::parse(id).unwrap(), None, false, Body::empty());
        Write::Edit(edit.expecting(Expected::At(Sequence::new(0, at))))
    };
    for moved in [vec![edit("a", 9)], vec![edit("a", 0), edit("b", 9)], vec![edit("a", 9), edit("a", 9)]] {
        let refused = database.write(moved).await;
        assert!(matches!(refused, Err(Error::Moved)), "{refused:?}");
    }
    let as_expected = database.write(vec![edit("a", 0)]).await;
    assert!(matches!(as_expected, Err(Error::Function(FunctionError::NoWorkers))), "{as_expected:?}");
    engine.shutdown().await.unwrap();
}

/// What was refused stood, and the rest of the request was made.
#[tokio::test]
async fn a_request_of_which_a_refused_document_has_moved_meanwhile_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let (asked, go, answers) = (folder.path().join("asked"), folder.path().join("go"), folder.path().join("answers"));
    let verdicts = Answer::Verdicts(vec![Verdict::Forbidden("no".to_owned()), Verdict::Allowed]);
    std::fs::write(&answers, frame(&verdicts).unwrap()).unwrap();
    let (engine, database, _folder) = validated(|options| {
        let script = r#": > "$0"; until [ -e "$1" ]; do sleep 0.02; done; cat "$2"; exec sleep 600"#;
        let paths = [&asked, &go, &answers].map(|path| path.as_os_str().to_owned());
        let arguments = ["-c".into(), script.into()].into_iter().chain(paths);
        options.functions.worker = Some(WorkerCommand::new("/bin/sh", arguments));
        options.functions.batch_timeout = Duration::from_secs(60);
    })
    .await;
    let edit = |id: &str| Edit::interactive(DocId::parse(id).unwrap(), None, false, Body::empty());
    let expecting = |id, expected| Write::Edit(edit(id).expecting(expected));
    let writes = vec![expecting("a", Expected::At(Sequence::ZERO)), expecting("b", Expected::Base(None))];
    let written = tokio::spawn({
        let database = database.clone();
        async move { database.write(writes).await }
    });
    let in_time = timeout(Duration::from_secs(60), async {
        while !asked.exists() {
            sleep(Duration::from_millis(10)).await;
        }
    });
    in_time.await.expect("the function is asked");
    database.opened().await.unwrap().submit(vec![Write::Edit(edit("a"))].into()).await.unwrap();
    std::fs::write(&go, "").unwrap();
    let refused = timeout(Duration::from_secs(60), written).await.expect("an answer").unwrap();
    assert!(matches!(refused, Err(Error::Moved)), "{refused:?}");
    assert!(database.get("b").await.unwrap().is_none());
    engine.shutdown().await.unwrap();
}

/// They were answered as if they were queued.
#[tokio::test]
async fn a_write_nobody_waits_for_that_is_not_let_in_is_refused() {
    let (engine, database, _folder) = validated(|options| options.write_queue_edits_max = 1).await;
    let open = database.opened().await.unwrap();
    let under_way = open.validating.begin(&vec![write("a")].into()).unwrap();
    let refused = database.write_later(write("b")).await;
    assert!(matches!(refused, Err(Error::WriteQueueFull { edits_max: 1, .. })), "{refused:?}");
    drop(under_way);
    let refused = database.write_later(write("b")).await;
    assert!(matches!(refused, Err(Error::Function(FunctionError::NoWorkers))), "{refused:?}");
    drop(open);
    engine.shutdown().await.unwrap();
}
