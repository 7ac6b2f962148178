//! Opens data folders as the server would, and tells what they hold: a question a line on standard input, an answer a
//! line on standard output. The test of power cuts runs it, as images may be such that LMDB ends the process.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::stdin;
use std::path::PathBuf;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use seqtide::SelectorKeys;
use seqtide_storage::json::Body;
use seqtide_storage::model::doc_id::{DocId, LocalId};
use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{DataFolder, Detail, Direction, Edit, PageLimits, ReadChanges, Store, StoreOptions, Write};

/// Enough writes to use pages that were free at the cut: a damaged list of free pages shows only so.
const WRITES_AFTERWARDS: usize = 20;

#[derive(Deserialize)]
struct Question {
    folder: PathBuf,
    /// The database whose documents are told; of others only that they are there.
    database: String,
    locals: Vec<String>,
}

type Answer<T> = Result<T, Box<dyn Error>>;

fn main() -> Answer<()> {
    for line in stdin().lines() {
        let question: Question = serde_json::from_str(&line?)?;
        let answer = match read(&question) {
            Ok(holds) => json!({ "holds": holds }),
            Err(fault) => json!({ "fault": fault.to_string() }),
        };
        println!("{answer}");
    }
    Ok(())
}

fn read(question: &Question) -> Answer<BTreeMap<String, Value>> {
    let options = StoreOptions { map_bytes: 64 << 20, feed_keys: &SelectorKeys, ..StoreOptions::default() };
    let data = DataFolder::open(&question.folder, options)?;
    let mut holds = BTreeMap::new();
    for name in data.names() {
        holds.insert(format!("/{}", name.as_str()), json!(true));
        let store = data.open_store(&name)?.ok_or("a database of the catalogue is not there")?;
        assert_clean(&store, "as it was left")?;
        if name.as_str() == question.database {
            read_documents(&store, &question.database, &mut holds)?;
            read_locals(&store, question, &mut holds)?;
        }
        while !store.tend_feed_index(PageLimits::default())?.done {}
        write_more(&store)?;
        assert_clean(&store, "after more writes")?;
        store.close()?;
    }
    Ok(holds)
}

fn assert_clean(store: &Store, when: &str) -> Answer<()> {
    let report = store.check()?;
    if report.is_clean() { Ok(()) } else { Err(format!("{when}: {:?}", report.problems).into()) }
}

fn read_documents(store: &Store, database: &str, holds: &mut BTreeMap<String, Value>) -> Answer<()> {
    let snapshot = store.snapshot()?;
    let mut after = Sequence::ZERO;
    loop {
        let read = ReadChanges {
            after,
            up_to: Sequence::MAX,
            direction: Direction::Forward,
            detail: Detail { leaves: true, bodies: true },
            limits: PageLimits::default(),
        };
        let page = snapshot.changes(&read, &|_| true)?;
        for change in &page.changes {
            let winner = change.winner();
            let body: Value = serde_json::from_slice(change.body.as_ref().ok_or("a body is gone")?.as_bytes())?;
            let (rev, seq) = (winner.rev.to_string(), change.seq.to_integer());
            let state = json!({ "rev": rev, "seq": seq, "deleted": winner.deleted, "n": body["n"] });
            holds.insert(format!("/{database}/{}", change.id.as_str()), state);
        }
        match page.examined {
            Some(examined) if !page.complete => after = examined,
            _ => return Ok(()),
        }
    }
}

fn read_locals(store: &Store, question: &Question, holds: &mut BTreeMap<String, Value>) -> Answer<()> {
    let snapshot = store.snapshot()?;
    for id in &question.locals {
        let local = LocalId::parse(id).ok_or("no _local id")??;
        if let Some((revision, body)) = snapshot.local(&local)? {
            let body: Value = serde_json::from_slice(body.as_bytes())?;
            let state = json!({ "rev": format!("0-{revision}"), "n": body["n"] });
            holds.insert(format!("/{}/{id}", question.database), state);
        }
    }
    Ok(())
}

/// One commit a document, so that each reuses what the one before freed.
fn write_more(store: &Store) -> Answer<()> {
    for number in 0..WRITES_AFTERWARDS {
        let body = json!({ "pad": "y".repeat(number * 400) }).to_string();
        let id = DocId::parse(&format!("afterwards-{number}"))?;
        let edit = Edit::interactive(id, None, false, Body::from_stored(Bytes::from(body)));
        store.write(&[vec![Write::Edit(edit)].into()])?;
    }
    Ok(())
}
