//! Documents that are known: what is not among them is not looked for in LMDB, and whatever is is found.

use super::*;
use crate::log::known_docs::PAGES_MAX;

/// Whether it is known that there is no document of this id, without LMDB.
fn is_known_to_be_new(logged: &Logged, id: &str) -> bool {
    logged.shared.state().over.get(Table::Docs, id.as_bytes()) == Some(None)
}

/// Documents of these ids, as LMDB has them.
fn in_lmdb(folder: &Path, ids: impl IntoIterator<Item = String>) {
    let logged = open(folder);
    let docs = ids.into_iter().map(|id| (Table::Docs, id.into(), Some(b"what a row of LMDB says".to_vec())));
    write(&logged, &docs.collect()).unwrap();
    logged.close().unwrap();
}

/// A log over an LMDB that has these documents, which it has begun to know.
fn beginning_over(folder: &Path, ids: impl IntoIterator<Item = String>) -> Logged {
    in_lmdb(folder, ids);
    let logged = open(folder);
    put_enough(&logged);
    logged
}

/// As many rows as it takes for a log to begin to know documents.
fn put_enough(logged: &Logged) {
    write(logged, &["x", "y"].map(|id| (Table::Docs, id.into(), Some(b"1".to_vec()))).into()).unwrap();
}

#[test]
fn a_document_is_known_to_be_new_once_all_that_lmdb_has_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let logged = beginning_over(folder.path(), (0..5).map(|number| format!("m-{number}")));
    assert!(!is_known_to_be_new(&logged, "new"));
    assert_eq!(learn_all(&logged), 3, "two at a time");
    assert!(is_known_to_be_new(&logged, "new"));
    assert!((0..5).all(|number| get(&logged, &format!("m-{number}")).is_some()));
    logged.shared.drain().unwrap();
    assert_eq!((get(&logged, "x").is_some(), get(&logged, "new")), (true, None));
}

/// In front of what was learned last and behind it, by whichever way.
#[test]
fn what_is_written_while_others_are_learned_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let logged = beginning_over(folder.path(), (0..5).map(|number| format!("m-{number}")));
    logged.shared.learn();
    put(&logged, "a-logged", "1").unwrap();
    logged.shared.drain().unwrap();
    put(&logged, "z-logged", "1").unwrap();
    for id in ["a-through", "z-through"] {
        logged.shared.state().has_failed_before();
        put(&logged, id, "1").unwrap();
    }
    logged.shared.state().failed = None;
    put(&logged, "over", "1").unwrap();
    learn_all(&logged);
    for id in ["a-logged", "z-logged", "a-through", "z-through", "over", "x", "m-0", "m-4"] {
        assert!(get(&logged, id).is_some(), "{id}");
    }
    assert!(is_known_to_be_new(&logged, "new"));
    logged.shared.state().has_failed_before();
    put(&logged, "new", "1").unwrap();
    assert!(!is_known_to_be_new(&logged, "new"));
}

/// More than one filter has room for, and more than two.
#[test]
fn of_many_documents_all_are_known_however_they_come() {
    let folder = tempfile::tempdir().unwrap();
    let in_lmdb = |number| format!("m-{number:03}");
    let logged = beginning_over(folder.path(), (0..300).map(in_lmdb));
    let mut written = Vec::new();
    for turn in 0.. {
        if !logged.shared.state().learns() {
            break;
        }
        let ids = ["a", "m", "z"].map(|first| format!("{first}-{turn:03}-written"));
        ids.iter().for_each(|id| put(&logged, id, "1").unwrap());
        written.extend(ids);
        if turn % 20 == 0 {
            logged.shared.drain().unwrap();
        }
        logged.shared.learn();
    }
    for id in (0..300).map(in_lmdb).chain(written) {
        assert!(get(&logged, &id).is_some(), "{id}");
    }
    assert!(is_known_to_be_new(&logged, "new"));
}

/// A damaged row may be any document's.
#[test]
fn where_a_row_is_damaged_lmdb_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    in_lmdb(folder.path(), ["old".to_owned()]);
    let file = folder.path().join(DATA_FILE);
    let mut bytes = fs::read(&file).unwrap();
    let says = b"what a row of LMDB says";
    let at = bytes.windows(says.len()).position(|window| window == says).unwrap();
    bytes[at] ^= 1;
    fs::write(&file, bytes).unwrap();
    let mut env = open_env(folder.path());
    env.require_seals();
    let logged = without_thread(folder.path(), env, |_, _| {});
    put_enough(&logged);
    assert!(logged.shared.state().learns());
    learn_all(&logged);
    assert!(!is_known_to_be_new(&logged, "new"));
    assert!(logged.read().unwrap().view().get(Table::Docs, b"old").unwrap_err().is_damage());
    put(&logged, "z", "1").unwrap();
    assert!(!logged.shared.state().learns(), "it is not begun again");
}

#[test]
fn the_thread_learns_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    in_lmdb(folder.path(), (0..50).map(|number| format!("m-{number}")));
    let logged = open_with_thread(folder.path());
    put_enough(&logged);
    until("it should know all", || is_known_to_be_new(&logged, "new"));
    logged.close().unwrap();
}

#[test]
fn beside_too_many_documents_none_are_known_and_when_there_are_fewer_it_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let logged = open(folder.path());
    let say = |pages| {
        let mut state = logged.shared.state();
        state.docs_pages = pages;
        state.forget_too_many();
    };
    say(PAGES_MAX + 1);
    put_enough(&logged);
    assert!(!logged.shared.state().learns());
    say(PAGES_MAX);
    put(&logged, "z", "1").unwrap();
    assert_eq!((learn_all(&logged), is_known_to_be_new(&logged, "new")), (1, true));
    say(PAGES_MAX + 1);
    assert!(!is_known_to_be_new(&logged, "new"));
    put(&logged, "new", "1").unwrap();
    say(PAGES_MAX);
    put(&logged, "z", "2").unwrap();
    learn_all(&logged);
    assert!(!is_known_to_be_new(&logged, "new") && is_known_to_be_new(&logged, "other"));
}

/// It is not told any more of what is written: who has it must not take it for whole.
#[test]
fn what_was_forgotten_while_the_last_documents_were_learned_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let logged = Arc::new(beginning_over(folder.path(), ["y-1", "y-2", "z"].map(str::to_owned)));
    logged.shared.learn();
    assert!(logged.shared.state().learns(), "the last is not known yet");
    let reading = logged.read().unwrap();
    let writer = Arc::clone(&logged);
    meanwhile::set(move || {
        writer.shared.state().over.known = None;
        write(&writer, &vec![(Table::Docs, "z".into(), None)]).unwrap();
        writer.shared.drain().unwrap();
    });
    logged.shared.learn();
    assert!(reading.view().get(Table::Docs, b"z").unwrap().is_some());
}

/// As when readers have all slots.
#[test]
fn where_lmdb_cannot_be_read_for_once_it_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let logged = open_with(folder.path(), EnvOptions { readers_max: 2, ..OPTIONS });
    put_enough(&logged);
    let (readings, _) = all_readers(&logged);
    logged.shared.learn();
    assert!(!logged.shared.state().learns());
    drop(readings);
    put(&logged, "z", "1").unwrap();
    assert_eq!((learn_all(&logged), is_known_to_be_new(&logged, "new")), (1, true));
}
