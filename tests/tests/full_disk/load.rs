//! Writers, readers and feeds at once, and what is to be true of them when there was no room for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use seqtide_tests::doors::{Door, HttpDoor, Item, WebSocketDoor};
use seqtide_tests::http::{Answer, SOON};
use seqtide_tests::server::seqtide_command;
use seqtide_tests::{Database, Server};

const WRITERS: usize = 8;
const READERS: usize = 2;
const PAD_BYTES: usize = 2_000;
/// Who was refused tries again after so long, as a client would.
const PAUSE: Duration = Duration::from_millis(2);

/// A write that was acknowledged.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    pub id: String,
    pub rev: String,
    pub deleted: bool,
}

/// What was acknowledged, by sequence, and what was refused.
#[derive(Default, Clone)]
pub struct Log {
    pub written: BTreeMap<u64, Written>,
    pub refused: BTreeSet<String>,
    /// Why, as the answers say.
    pub reasons: BTreeSet<String>,
}

impl Log {
    fn take(&mut self, other: Log) {
        self.written.extend(other.written);
        self.refused.extend(other.refused);
        self.reasons.extend(other.reasons);
    }

    /// The newest write of each document.
    pub fn newest(&self) -> BTreeMap<&str, (u64, &Written)> {
        self.written.iter().map(|(seq, written)| (written.id.as_str(), (*seq, written))).collect()
    }
}

/// How often something happened, to be waited for.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicU64>);

impl Counter {
    fn count(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    async fn wait_for(&self, enough: u64, what: &str) {
        let reached = async {
            while self.now() < enough {
                tokio::time::sleep(PAUSE).await;
            }
        };
        let missing = || panic!("{what}: {} of {enough}", self.now());
        timeout(SOON, reached).await.unwrap_or_else(|_| missing());
    }
}

/// A load under way.
pub struct Load {
    database: Database,
    stop: Arc<AtomicBool>,
    written: Counter,
    refused: Counter,
    read: Counter,
    writers: Vec<JoinHandle<Log>>,
    readers: Vec<JoinHandle<()>>,
    feeds: Vec<Feed>,
}

/// A feed from the beginning, and the sequences it has given.
struct Feed {
    name: &'static str,
    rows: watch::Receiver<Vec<(u64, String, bool)>>,
    reader: JoinHandle<()>,
}

impl Load {
    /// Starts all of it; `round` keeps the documents of several loads apart.
    pub fn start(server: &Server, database: &Database, round: usize) -> Load {
        let (stop, written, refused, read) = Default::default();
        let feeds = follow(server, database);
        let mut load = Load {
            database: database.clone(),
            stop,
            written,
            refused,
            read,
            writers: Vec::new(),
            readers: Vec::new(),
            feeds,
        };
        let newest = Arc::new(std::sync::Mutex::new(None));
        for number in 0..WRITERS {
            load.writers.push(tokio::spawn(write(load.parts(), format!("{round}-{number}"), Arc::clone(&newest))));
        }
        for _ in 0..READERS {
            load.readers.push(tokio::spawn(read_on(load.parts(), Arc::clone(&newest))));
        }
        load
    }

    fn parts(&self) -> Parts {
        let (database, stop) = (self.database.clone(), Arc::clone(&self.stop));
        Parts { database, stop, written: self.written.clone(), refused: self.refused.clone(), read: self.read.clone() }
    }

    /// How many writes have been made.
    pub fn writes(&self) -> u64 {
        self.written.now()
    }

    /// Waits until many more writes have been made than there were.
    pub async fn until_written_since(&self, writes: u64) {
        self.written.wait_for(writes + 10 * WRITERS as u64, "writes").await;
    }

    /// Waits until much has been refused, reads being answered all the while.
    pub async fn until_full(&self) {
        self.refused.wait_for(self.refused.now() + 10 * WRITERS as u64, "refusals").await;
        self.read.wait_for(self.read.now() + 20, "reads while there is no room").await;
    }

    /// Stops writers and readers, and gives what was answered to them. Feeds go on.
    pub async fn stop(&mut self) -> Log {
        self.stop.store(true, Ordering::SeqCst);
        let mut log = Log::default();
        for writer in self.writers.drain(..) {
            log.take(writer.await.expect("a writer"));
        }
        for reader in self.readers.drain(..) {
            reader.await.expect("a reader");
        }
        log
    }

    /// Every feed gives exactly what was acknowledged, in order; only what was superseded may be missing.
    pub async fn assert_feeds_gave(&mut self, log: &Log) {
        let newest: BTreeSet<u64> = log.newest().values().map(|(seq, _)| *seq).collect();
        for Feed { name, rows, reader } in &mut self.feeds {
            let last = newest.last().copied().unwrap_or_default();
            let complete = rows.wait_for(|rows| rows.last().is_some_and(|(seq, ..)| *seq >= last));
            let given = match timeout(SOON, complete).await {
                Ok(given) => given.expect("a feed that goes on").clone(),
                Err(_) => panic!("{name}: {last} never came"),
            };
            reader.abort();
            assert!(given.is_sorted_by(|one, next| one.0 < next.0), "{name}: rows out of order");
            for (seq, id, deleted) in &given {
                let written = log.written.get(seq).map(|written| (&written.id, &written.deleted));
                assert_eq!(written, Some((id, deleted)), "{name}: {seq} was not acknowledged so");
            }
            let given: BTreeSet<u64> = given.iter().map(|(seq, ..)| *seq).collect();
            assert!(newest.is_subset(&given), "{name}: not given {:?}", newest.difference(&given));
        }
    }
}

/// Asserts that the database holds what was acknowledged and nothing that was refused.
pub async fn assert_holds(database: &Database, log: &Log) {
    let rows = database.changes("include_docs=true").await;
    let rows = rows["results"].as_array().expect("rows");
    let found: BTreeMap<&str, (u64, &str, bool)> = rows.iter().map(row).collect();
    let newest = log.newest();
    let expected: BTreeMap<&str, (u64, &str, bool)> =
        newest.iter().map(|(id, (seq, written))| (*id, (*seq, written.rev.as_str(), written.deleted))).collect();
    assert_eq!(found.len(), expected.len(), "{:?}", found.keys().find(|id| !expected.contains_key(*id)));
    assert_eq!(found, expected);
    assert!(log.refused.iter().all(|id| !found.contains_key(id.as_str())), "a refused write is there");
    let bodies = rows.iter().filter(|row| row["deleted"] != json!(true));
    assert!(bodies.into_iter().all(|row| row["doc"]["pad"].as_str().is_some_and(|pad| pad.len() == PAD_BYTES)));
}

fn row(row: &Value) -> (&str, (u64, &str, bool)) {
    let seq = row["seq"].as_u64().expect("a number");
    let rev = row["changes"][0]["rev"].as_str().expect("a revision");
    (row["id"].as_str().expect("an id"), (seq, rev, row["deleted"] == json!(true)))
}

/// Writes an empty document until that succeeds; answers of this status are passed over. For a moment after LMDB has
/// failed it is not asked again.
pub async fn write_despite(database: &Database, path: &str, status: u16) -> Answer {
    let deadline = Instant::now() + SOON;
    loop {
        let answer = database.request("PUT", path).json(&json!({})).send().await;
        if answer.status == 201 {
            return answer;
        }
        answer.assert_status(status);
        assert!(Instant::now() < deadline, "writing never goes on");
    }
}

/// Asserts that what is on disk holds every invariant.
pub fn assert_clean(server: &Server) {
    let checked = seqtide_command().arg("check").arg(server.data_dir()).output().expect("the binary runs");
    let report = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{report}{}", String::from_utf8_lossy(&checked.stderr));
    assert!(report.contains(": ok ("), "{report}");
}

#[derive(Clone)]
struct Parts {
    database: Database,
    stop: Arc<AtomicBool>,
    written: Counter,
    refused: Counter,
    read: Counter,
}

impl Parts {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

type Newest = Arc<std::sync::Mutex<Option<(String, String)>>>;

/// Writes one document after the other until it is told to stop or the server is gone.
async fn write(parts: Parts, name: String, newest: Newest) -> Log {
    let mut log = Log::default();
    for number in 0.. {
        if parts.stopped() {
            break;
        }
        let id = format!("{name}-{number}");
        let body = json!({ "pad": "x".repeat(PAD_BYTES) });
        let Ok(answer) = parts.database.request("PUT", &format!("/{id}")).json(&body).try_send().await else {
            break;
        };
        if answer.status == 201 {
            let rev = answer.rev();
            *newest.lock().expect("no panic holds it") = Some((id.clone(), rev.clone()));
            log.written.insert(answer.seq(), Written { id, rev, deleted: false });
            parts.written.count();
        } else {
            log.reasons.insert(reason(&answer));
            log.refused.insert(id);
            parts.refused.count();
            tokio::time::sleep(PAUSE).await;
        }
    }
    log
}

/// Why there was no room: any other refusal fails the test.
pub fn reason(answer: &Answer) -> String {
    answer.assert_status(507);
    let error = answer.json();
    assert_eq!(error["error"], json!("insufficient_storage"), "{error}");
    error["reason"].as_str().expect("a reason").to_owned()
}

/// Reads the newest document over and over: it is there, at its revision.
async fn read_on(parts: Parts, newest: Newest) {
    while !parts.stopped() {
        let document = newest.lock().expect("no panic holds it").clone();
        if let Some((id, rev)) = document {
            let Ok(answer) = parts.database.get(&format!("/{id}")).try_send().await else { break };
            answer.assert_status(200);
            assert_eq!(answer.json()["_rev"], json!(rev));
            parts.read.count();
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn follow(server: &Server, database: &Database) -> Vec<Feed> {
    let doors: Vec<Box<dyn Door>> = vec![
        Box::new(HttpDoor::sse(database, "")),
        Box::new(HttpDoor::continuous(database, "heartbeat=1000")),
        Box::new(WebSocketDoor::new(server, database, "style=main_only")),
    ];
    let feed = |door: Box<dyn Door>| {
        let (given, rows) = watch::channel(Vec::new());
        let name = door.name();
        let reader = tokio::spawn(async move {
            let mut items = door.open(None, usize::MAX).await;
            while let Some(item) = items.next().await {
                if let Item::Row { row: json, .. } = item {
                    let (id, (seq, _, deleted)) = row(&json);
                    given.send_modify(|rows| rows.push((seq, id.to_owned(), deleted)));
                }
            }
            // Held until the feed is looked at, whatever ended it.
            given.closed().await;
        });
        Feed { name, rows, reader }
    };
    doors.into_iter().map(feed).collect()
}
