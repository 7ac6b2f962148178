//! A restart under thousands of readers: all of them come back by what they were told, and none misses or repeats a
//! row.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use seqtide_bench::open_files::allow_connections;
use seqtide_tests::{Database, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const READERS: usize = 5000;
/// Rows written before the restart, while feeds are drained, and after it.
const ROWS_EACH: u64 = 20;
const ROWS: u64 = 3 * ROWS_EACH;
/// All of it, on a machine that does something else as well.
const ALL_BACK_WITHIN: Duration = Duration::from_secs(120);

#[derive(Default)]
struct Counts {
    /// Readers that have all rows that were written before.
    caught_up: AtomicUsize,
    /// Answers that told a reader to come back later.
    refused: AtomicUsize,
    /// Connections that nobody took: there was no server.
    unanswered: AtomicUsize,
}

/// What a browser's `EventSource` knows.
struct Reader {
    address: SocketAddr,
    counts: Arc<Counts>,
    retry: Duration,
    last_id: u64,
}

impl Reader {
    /// Follows the feed until it has all rows, coming back whenever it ends.
    async fn follow(mut self) {
        while self.last_id < ROWS {
            let Ok(socket) = TcpStream::connect(self.address).await else {
                self.counts.unanswered.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_millis(200)).await;
                continue;
            };
            self.read(socket).await;
            if self.last_id < ROWS {
                sleep(self.retry).await;
            }
        }
    }

    async fn read(&mut self, mut socket: TcpStream) {
        let request = format!(
            "GET /db/_feed?since=0 HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nLast-Event-ID: {}\r\n\r\n",
            self.last_id
        );
        socket.write_all(request.as_bytes()).await.expect("the request");
        let mut lines = BufReader::with_capacity(1024, socket).lines();
        let status = lines.next_line().await.expect("an answer").expect("a status");
        assert!(status.starts_with("HTTP/1.1 200 "), "{status}");
        let (mut event, mut opened, mut told_to_come_back, mut ended) = (String::new(), false, false, false);
        while let Some(line) = lines.next_line().await.expect("a connection that ends behind its feed") {
            // What is no field is the head, or the size of a chunk.
            let Some((field, value)) = line.split_once(": ") else {
                if line.is_empty() {
                    event.clear();
                }
                continue;
            };
            match field {
                "event" => event = value.to_owned(),
                "retry" => self.retry = Duration::from_millis(value.parse().expect("milliseconds")),
                "id" if event.is_empty() => {
                    let id: u64 = value.parse().expect("a sequence");
                    assert_eq!(id, self.last_id + 1, "every row once, in order");
                    self.last_id = id;
                    if id == ROWS_EACH {
                        self.counts.caught_up.fetch_add(1, Ordering::Relaxed);
                    }
                }
                _ => {}
            }
            opened = opened || event == "opened";
            told_to_come_back = told_to_come_back || event == "draining";
            ended = ended || event == "end";
            if self.last_id == ROWS {
                return;
            }
        }
        if !opened && told_to_come_back {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            return;
        }
        assert!(ended, "cut off without an end behind {}", self.last_id);
    }
}

async fn write(database: &Database, part: &str) {
    let docs: Vec<Value> = (0..ROWS_EACH).map(|number| json!({ "_id": format!("{part}-{number}") })).collect();
    database.bulk(&docs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_readers_come_back_and_miss_nothing() {
    allow_connections(READERS).expect("enough open files");
    let mut server = Server::launch().arg("--feeds-drain-ms=4000").start();
    let database = Database::create(&server, "db").await;
    write(&database, "before").await;
    let counts = Arc::new(Counts::default());
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let (address, counts) = (server.address(), Arc::clone(&counts));
        readers.spawn(Reader { address, counts, retry: Duration::ZERO, last_id: 0 }.follow());
    }
    let caught_up = async {
        while counts.caught_up.load(Ordering::Relaxed) < READERS {
            if let Some(ended) = readers.try_join_next() {
                ended.expect("a reader that goes on");
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(ALL_BACK_WITHIN, caught_up).await.expect("all have caught up");
    let before: Value = database.api.get("/_feeds?limit=1").expect(200).await.json();
    assert_eq!(before["open"], READERS);

    server.terminate();
    write(&database, "while-draining").await;
    assert_eq!(server.wait().code(), Some(0));
    server.restart_on_same_port_and_data();
    write(&database, "after").await;
    let all_back = async {
        while let Some(reader) = readers.join_next().await {
            reader.expect("a reader that came back");
        }
    };
    timeout(ALL_BACK_WITHIN, all_back).await.expect("all have come back");
    let of = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    println!("{} told to come back later, {} connections nobody took", of(&counts.refused), of(&counts.unanswered));
}
