//! A power cut after a kill and a restart: what the killed server had written and not synced is still in the page cache
//! when the next one opens the files, which sees it, shows it, and builds on it.

use std::fs::{self, OpenOptions};
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use seqtide_tests::server::Launch;
use seqtide_tests::{Database, Server, preload};

use crate::disk::Trust;
use crate::image::Kept;
use crate::load::{Acknowledged, Answer, DATABASE, document};
use crate::log::{Log, Moment, mark};
use crate::promise::Promises;
use crate::recording::{DataFolder, Recording, inode_of};
use crate::trial::Trial;

/// What the second server's log is marked with when it has shown what it found.
const SEEN: &str = "seen";

const WRITES: usize = 5;

/// Both runs as one recording; cuts are to come after the moment that is given as well.
fn record(work: &Path, first: &str, second: &str, dies_at_sync: Option<usize>) -> (Recording, Moment) {
    let folder = work.join("disk");
    fs::create_dir(&folder).expect("a folder");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let logs = [work.join("log-of-first"), work.join("log-of-second")];
    let launch = |log: &Path, durability: &str| -> Launch {
        Server::launch()
            .data_dir(&folder)
            .arg(format!("--durability={durability}"))
            .env("LD_PRELOAD", preload::build("recorder/recorder.c", work))
            .env("RECORDER_LOG", log)
            .env("RECORDER_FOLDER", &folder)
    };

    let mut launched = launch(&logs[0], first);
    if let Some(sync) = dies_at_sync {
        launched = launched.env("RECORDER_DIES_AT_SYNC", sync.to_string());
    }
    let mut server = launched.start();
    // The first commits may go to LMDB by themselves: the record at which it dies comes when it comes.
    let writes_max = if dies_at_sync.is_some() { 20 * WRITES } else { WRITES };
    let answered = runtime.block_on(async {
        let database = Database::create(&server, DATABASE).await;
        for number in 0..writes_max {
            let write = database.request("PUT", &format!("/first-{number}")).json(&json!({ "n": number }));
            // No answer comes: the process ended with the record written and not synced.
            let Ok(answer) = write.try_send().await else { return number };
            answer.assert_status(201);
        }
        writes_max
    });
    let unanswered = usize::from(dies_at_sync.is_some());
    assert!(unanswered == 0 || answered < writes_max, "it never died");
    server.kill();

    // LMDB is slow to take what was found: it must be safe before.
    let mut server = launch(&logs[1], second).env("RECORDER_SLOW_SYNCED_WRITES", "300").start();
    let marks = OpenOptions::new().append(true).open(&logs[1]).expect("the log of the recorder");
    let acknowledged = runtime.block_on(async {
        let database = Database::at(&server, DATABASE);
        let found = database.changes("include_docs=true").await;
        mark(&marks, SEEN);
        let rows = found["results"].as_array().expect("rows");
        assert_eq!(rows.len(), answered + unanswered, "the page cache has it all");
        let there = Acknowledged { key: format!("/{DATABASE}"), state: json!(true), answer: seen() };
        let mut acknowledged: Vec<Acknowledged> = std::iter::once(there).chain(rows.iter().map(seen_row)).collect();
        // With relaxed durability they might be lost.
        for number in 0..if second == "full" { WRITES } else { 0 } {
            let id = format!("second-{number}");
            let answer = database.put(&id, &json!({ "n": number })).await;
            acknowledged.push(document(id, &answer.rev(), answer.seq(), number, false));
        }
        acknowledged
    });
    server.kill();

    let [one, other] = logs.map(|log| Log::parse(&fs::read(log).expect("the log")));
    let log = one.followed_by(other);
    let promises = Promises::find(&acknowledged, &log);
    let seen = promises.moments()[0];
    (Recording { log, promises, data: DataFolder::Given, seed: 0, inode: inode_of(&folder), folder }, seen)
}

fn seen() -> Answer {
    Answer::Marked(SEEN.to_owned())
}

fn seen_row(row: &Value) -> Acknowledged {
    let id = row["id"].as_str().expect("an id");
    let state = json!({ "rev": row["changes"][0]["rev"], "seq": row["seq"], "deleted": false, "n": row["doc"]["n"] });
    Acknowledged { key: format!("/{DATABASE}/{id}"), state, answer: seen() }
}

fn assert_survives(first: &str, second: &str, dies_at_sync: Option<usize>) {
    let work = TempDir::with_prefix("seqtide-power-cut-").expect("a temporary folder");
    let (recording, seen) = record(work.path(), first, second, dies_at_sync);
    let mut trial = Trial::new(&recording, Trust::ALL);
    for cut in seen + 1..=recording.log.moments {
        for kept in [Kept::Nothing, Kept::Random, Kept::OnlyMetaPages, Kept::AllButMetaPages] {
            trial.assert_survives(cut, kept);
        }
    }
}

#[test]
fn a_record_that_a_kill_left_unsynced_is_safe_once_it_is_seen() {
    assert_survives("full", "full", Some(WRITES));
}

#[test]
fn what_relaxed_durability_left_unsynced_is_safe_once_full_durability_shows_it() {
    assert_survives("relaxed", "full", None);
}

#[test]
fn what_relaxed_durability_left_unsynced_is_safe_once_the_next_server_shows_it() {
    assert_survives("relaxed", "relaxed", None);
}
