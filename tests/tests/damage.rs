//! Damaged databases on a server: errors that name what is damaged, everything else as ever, and a way out.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use rustix::process::{Pid, Signal, kill_process};
use seqtide::SelectorKeys;
use seqtide::storage::json::Body;
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::rev::RevId;
use seqtide::storage::model::sequence::Sequence;
use seqtide::storage::{FORMAT, FeedKeys, FieldKeys, LeafRev};
use seqtide_tests::doors::{FeedSocket, feed_url};
use seqtide_tests::http::SOON;
use seqtide_tests::server::seqtide_command;
use seqtide_tests::{Api, Database, Server};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

const DOCUMENTS: usize = 300;

/// A document in the middle, whose body is on no page with the first or the last.
const HIT: usize = 150;

async fn fill(server: &Server, name: &str) -> Database {
    let database = Database::create(server, name).await;
    let pad = "x".repeat(200);
    let doc = |number| json!({ "_id": format!("d{number:03}"), "text": format!("marker-{number:03} {pad}") });
    database.bulk(&(0..DOCUMENTS).map(doc).collect::<Vec<_>>()).await;
    database
}

fn data_file(server: &Server, name: &str) -> PathBuf {
    server.data_dir().join("databases").join(name).join("data.mdb")
}

/// Waits until LMDB's file has what was written to the log.
async fn until_in_file(server: &Server, name: &str, what: &[u8]) {
    let deadline = Instant::now() + SOON;
    let is_there = || fs::read(data_file(server, name)).expect("the file").windows(what.len()).any(|at| at == what);
    while !is_there() {
        assert!(Instant::now() < deadline, "{what:02x?} never comes");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Replaces every occurrence in a database's file, as it lies there.
fn replace(server: &Server, name: &str, what: &[u8], with: &[u8]) {
    let path = data_file(server, name);
    let bytes = fs::read(&path).expect("the file");
    let file = fs::OpenOptions::new().write(true).open(&path).expect("the file");
    let places: Vec<usize> = (0..bytes.len() - what.len()).filter(|at| bytes[*at..].starts_with(what)).collect();
    assert!(!places.is_empty(), "{what:02x?} is in the file");
    for place in places {
        file.write_all_at(with, place as u64).expect("a write");
    }
}

fn damage_body(server: &Server, name: &str) {
    replace(server, name, format!("marker-{HIT}").as_bytes(), format!("mArker-{HIT}").as_bytes());
}

/// `seqtide check` of the server's folder: exit code and report.
fn check(server: &Server) -> (Option<i32>, String) {
    let output = seqtide_command().arg("check").arg(server.data_dir()).output().expect("the binary runs");
    (output.status.code(), String::from_utf8(output.stdout).expect("text"))
}

async fn metric(server: &Server, name: &str) -> Option<u64> {
    Api::new(server).metric(name).await
}

/// Asserts an error by its name and by words of its reason.
async fn assert_named(database: &Database, method: &str, rest: &str, error: &str, words: &[&str]) {
    let request = database.request(method, rest);
    let request = if method == "GET" || method == "DELETE" { request } else { request.json(&json!({ "docs": [] })) };
    let answer = request.expect(500).await.json();
    assert_eq!(answer["error"], error, "{answer}");
    let reason = answer["reason"].as_str().expect("a reason");
    words.iter().for_each(|word| assert!(reason.contains(word), "{word} in {reason}"));
}

/// What begins with a damaged document is answered with an error: a head that said all is well was sent before it was
/// read.
async fn assert_no_answer(database: &Database, id: &str, words: &[&str]) {
    let listing = format!("/_all_docs?include_docs=true&start_key=%22{id}%22");
    assert_named(database, "GET", &listing, "damaged_database", words).await;
    let named = database.get(&format!("/{id}?open_revs=all")).header("accept", "application/json");
    assert_eq!(named.expect(500).await.json()["error"], "damaged_database");
    let parts = database.get(&format!("/{id}?open_revs=all")).header("accept", "multipart/mixed");
    assert_eq!(parts.expect(500).await.json()["error"], "damaged_database");
    let asked = [
        ("/_all_docs?include_docs=true", json!({ "keys": [id] })),
        ("/_all_docs/queries", json!({ "queries": [{ "keys": [id], "include_docs": true }] })),
        ("/_bulk_get", json!({ "docs": [{ "id": id }] })),
    ];
    for (path, body) in asked {
        let answer = database.request("POST", path).json(&body).expect(500).await.json();
        assert_eq!(answer["error"], "damaged_database", "{path}: {answer}");
    }
}

/// CouchDB's feed is cut short without a word: a client would take it for a part of the feed.
async fn assert_cut_off(database: &Database, query: &str) {
    let path = format!("/_changes?include_docs=true{query}");
    let mut pieces = pin!(database.get(&path).open().await.into_stream());
    let mut text = Vec::new();
    loop {
        match timeout(SOON, pieces.next()).await.expect("an end") {
            Some(Ok(piece)) => text.extend_from_slice(&piece),
            Some(Err(_)) => break,
            None => panic!("{path}: a clean end would be taken for the whole feed"),
        }
    }
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains("marker-010"), "{path}: what comes before is given");
    assert!(!text.contains("damaged_database"), "{path}: {}", &text[text.len().saturating_sub(600)..]);
}

/// A feed says why it ends, and is cut short.
async fn assert_cut_short(database: &Database, path: &str, accept: &str, says: &str) {
    let mut feed = database.get(path).header("accept", accept).open().await;
    let text = feed.until(|text| text.contains("damaged_database") && text.ends_with('\n')).await;
    assert!(text.contains(says), "{path}: {says} in the end of {}", &text[text.len().saturating_sub(600)..]);
    assert!(text.contains("marker-010"), "{path}: what comes before is given");
    assert!(feed.try_to_end().await.is_err(), "{path}: a clean end would be taken for the whole feed");
}

async fn assert_well(database: &Database, id: &str) {
    let seq = database.put(id, &json!({ "n": 1 })).await.seq();
    assert_eq!(database.get(&format!("/{id}")).expect(200).await.json()["n"], 1);
    // What came before may be damaged: a feed of that needs it, as nobody has it in memory.
    let new = database.changes(&format!("include_docs=true&since={}", seq - 1)).await;
    assert_eq!(new["results"][0]["doc"]["n"], 1, "{new}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_page_costs_what_is_on_it_and_other_databases_do_not_notice() {
    let mut server = Server::start();
    let (harmed, healthy) = (fill(&server, "harmed").await, fill(&server, "healthy").await);
    server.stop();
    damage_body(&server, "harmed");
    server.restart_on_same_port_and_data();

    let words = ["harmed/data.mdb is damaged: page ", "checksum does not match", "table bodies", "between keys"];
    assert_named(&harmed, "GET", "/d150", "damaged_database", &words).await;
    for number in (0..DOCUMENTS).filter(|number| *number != HIT) {
        let doc = harmed.get(&format!("/d{number:03}")).expect(200).await.json();
        assert!(doc["text"].as_str().is_some_and(|text| text.starts_with(&format!("marker-{number:03}"))), "{doc}");
    }
    assert_no_answer(&harmed, "d150", &words).await;
    let compacted = harmed.request("POST", "/_compact").json(&json!({})).expect(500).await.json();
    assert_eq!(compacted["error"], "read_only_database", "{compacted}");
    assert_eq!(harmed.info().await["doc_count"], DOCUMENTS);
    assert_eq!(harmed.changes("").await["results"].as_array().map(Vec::len), Some(DOCUMENTS));
    assert_eq!(harmed.changes("since=151&include_docs=true").await["results"].as_array().map(Vec::len), Some(149));

    for query in ["", "&feed=continuous", "&feed=eventsource"] {
        assert_cut_off(&harmed, query).await;
    }
    server.stderr_with("a feed is cut short database=\"harmed\" feed=").await;
    assert!(
        harmed.get("/_all_docs?include_docs=true").open().await.try_to_end().await.is_err(),
        "it has no proper end"
    );
    server.stderr_with("an answer is cut short method=GET path=\"/harmed/_all_docs\" error=").await;
    let lines = "{\"event\":\"error\",\"error\":\"damaged_database\",\"reason\":";
    assert_cut_short(&harmed, "/_feed?since=0&include_docs=true", "application/x-ndjson", lines).await;
    let event = "event: error\ndata: {\"event\":\"error\",\"error\":\"damaged_database\"";
    assert_cut_short(&harmed, "/_feed?since=0&include_docs=true", "text/event-stream", event).await;
    assert_socket_fails(&server, &harmed).await;

    for (method, rest) in [("PUT", "/new"), ("POST", "/_bulk_docs"), ("PUT", "/_local/new")] {
        assert_named(&harmed, method, rest, "read_only_database", &["harmed/data.mdb is damaged and can only be read"])
            .await;
    }
    assert_well(&healthy, "new").await;
    assert_eq!(metric(&server, "seqtide_databases_damaged").await, Some(1));
    server.stderr_with("the database is damaged and can only be read").await;
    let (code, report) = check(&server);
    assert!(code == Some(1) && report.contains("harmed: page ") && report.contains("healthy: ok"), "{report}");

    // The way out: what can be read was replicated elsewhere, and the name is free again.
    harmed.request("DELETE", "").expect(200).await;
    harmed.request("PUT", "").expect(201).await;
    let seq = harmed.put("again", &json!({})).await.seq();
    assert!(seq > DOCUMENTS as u64, "no old token hides new writes: {seq}");
    assert_eq!(metric(&server, "seqtide_databases_damaged").await, Some(0));
}

async fn assert_socket_fails(server: &Server, database: &Database) {
    let url = feed_url(server, database, "since=0&include_docs=true");
    let mut socket = FeedSocket::open(&url).await.expect("a socket");
    let mut text = String::new();
    loop {
        match socket.next().await {
            Some(Message::Text(message)) => text.push_str(&message),
            Some(Message::Close(Some(frame))) => {
                assert_eq!(frame.code, CloseCode::Error, "{frame:?}");
                break;
            }
            other => panic!("{other:?} after {text}"),
        }
    }
    assert!(
        text.contains("marker-010") && text.contains("[{\"event\":\"error\",\"error\":\"damaged_database\""),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_which_nothing_can_be_read_says_so_and_can_be_deleted() {
    let mut server = Server::start();
    let (lost, healthy) = (fill(&server, "lost").await, fill(&server, "healthy").await);
    server.stop();
    // The magic number of both meta pages, and the pages' kind.
    let file = fs::OpenOptions::new().write(true).open(data_file(&server, "lost")).expect("the file");
    for page in [0, 4096] {
        file.write_all_at(&[0xff; 12], page + 10).expect("a write");
    }
    server.restart_on_same_port_and_data();
    for (method, rest) in [("GET", ""), ("GET", "/d000"), ("GET", "/_changes"), ("PUT", "/new")] {
        let words = ["lost/data.mdb is damaged: page 0", "nothing of the database can be read"];
        assert_named(&lost, method, rest, "damaged_database", &words).await;
    }
    assert_well(&healthy, "new").await;
    let (code, report) = check(&server);
    assert!(code == Some(1) && report.contains("nothing of the database can be read"), "{report}");
    lost.request("DELETE", "").expect(200).await;
    lost.request("PUT", "").expect(201).await;
    let seq = lost.put("again", &json!({})).await.seq();
    assert!(seq > 1 << 45, "how far the lost one counted is not known, so its successor has a new incarnation: {seq}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_format_is_refused_by_both_numbers_and_the_others_are_served() {
    let mut server = Server::start();
    let (newer, healthy) = (fill(&server, "newer").await, fill(&server, "healthy").await);
    server.stop();
    let row = |format: u8| {
        let sum = crc32c::crc32c(&[b"metaformat", &[1, format][..]].concat()).to_be_bytes();
        [b"format", &[2][..], &sum, &[1, format]].concat()
    };
    replace(&server, "newer", &row(FORMAT as u8), &row(FORMAT as u8 + 1));
    server.restart_on_same_port_and_data();
    let words = [&*format!("has file format {}", FORMAT + 1), &*format!("reads up to {FORMAT}")];
    assert_named(&newer, "GET", "/d000", "newer_file_format", &words).await;
    assert_named(&newer, "PUT", "/new", "newer_file_format", &words).await;
    assert_well(&healthy, "new").await;
    let (code, report) = check(&server);
    assert_eq!(code, Some(2), "{report}");
    words.iter().for_each(|word| assert!(report.contains(word), "{report}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_damaged_under_a_running_server_fails_whoever_needs_it_and_nobody_else() {
    let server = Server::start();
    let database = fill(&server, "db").await;
    let rev = database.get("/d150").expect(200).await.json()["_rev"].clone();
    until_in_file(&server, "db", format!("marker-{HIT}").as_bytes()).await;
    damage_body(&server, "db");
    // It is read from LMDB as soon as its commit has returned.
    let deadline = Instant::now() + SOON;
    while database.get("/d150").send().await.status == 200 {
        assert!(Instant::now() < deadline, "the document is read from the log still");
    }
    let words = ["table bodies", "checksum does not match"];
    assert_named(&database, "GET", "/d150", "damaged_database", &words).await;
    assert_well(&database, "new").await;

    // The tree of one document: who writes that one fails, though others may be in the same commit.
    replace(&server, "db", b"d150\x02", b"d150\x03");
    let requests = (100..200).map(|number| {
        let (database, rev) = (database.clone(), rev.clone());
        async move {
            let id = format!("/d{number}");
            let rev = if number == HIT { rev } else { database.get(&id).expect(200).await.json()["_rev"].clone() };
            let answer = database.request("PUT", &id).json(&json!({ "_rev": rev, "n": number })).send().await;
            (number, answer.status, answer.json()["error"].clone())
        }
    });
    for (number, status, error) in futures_util::future::join_all(requests).await {
        let expected = if number == HIT { (500, json!("damaged_database")) } else { (201, Value::Null) };
        assert_eq!((status, error), expected, "d{number}");
    }
    let damaged_reads = metric(&server, "seqtide_damaged_reads_total").await;
    assert!(damaged_reads.is_some_and(|reads| reads > 0));
}

/// A file was walked through when it was opened first, and is so once more when a read has come upon damage.
#[tokio::test(flavor = "multi_thread")]
async fn damage_that_a_read_came_upon_is_found_by_the_next_opening() {
    let server = Server::launch().arg("--limits-databases-open-max=1").start();
    let database = fill(&server, "db").await;
    until_in_file(&server, "db", format!("marker-{HIT}").as_bytes()).await;
    let other = Database::create(&server, "other").await;
    // What is not open is not in memory either.
    other.put("a", &json!({})).await;
    assert_eq!(database.get("/d150").expect(200).await.json()["_id"], "d150");
    damage_body(&server, "db");
    database.get("/d150").expect(500).await;
    assert_eq!(metric(&server, "seqtide_databases_damaged").await, Some(1));
    database.put("a", &json!({})).await;
    other.get("/a").expect(200).await;
    assert_named(&database, "PUT", "/new", "read_only_database", &[]).await;
}

/// The key of the index's row, under its first field, of the document that made the `seq`-th change.
fn index_key(value: &str, seq: u64) -> Vec<u8> {
    let read = SelectorKeys.reader(&["owner"]);
    let winner = LeafRev { rev: RevId::parse("1-x").expect("a revision"), deleted: false };
    let body = Body::from_stored(format!("{{\"owner\":\"{value}\"}}").into());
    let found = read(&DocId::parse("any").expect("an id"), &winner, &body).remove(0);
    let FieldKeys::These(keys) = found else { panic!("{found:?}") };
    [&0u32.to_be_bytes()[..], &keys[0].to_be_bytes(), &Sequence::new(0, seq).to_bytes()].concat()
}

async fn until_index_is(database: &Database, state: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let index = database.get("/_feed_index").expect(200).await.json();
        if index["state"] == json!(state) {
            return;
        }
        assert!(Instant::now() < deadline, "{index}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_row_of_an_index_costs_no_feed_a_change() {
    let mut server = Server::start();
    let database = Database::create(&server, "db").await;
    // More than are walked past without a look at the index.
    let document = |n: usize| json!({ "_id": format!("d{n:04}"), "owner": if n.is_multiple_of(400) { "wanted" } else { "other" } });
    database.bulk(&(0..2_000).map(document).collect::<Vec<_>>()).await;
    let put = || database.request("PUT", "/_feed_index").json(&json!({ "fields": ["owner"] }));
    put().expect(202).await;
    until_index_is(&database, "ready").await;
    server.stop();
    server.restart_on_same_port_and_data();
    let changes = async || {
        let body = json!({ "selector": { "owner": "wanted" } });
        database.post("/_changes?filter=_selector").json(&body).expect(200).await.json()
    };
    let before = changes().await;
    assert_eq!(before["results"].as_array().map(Vec::len), Some(5));

    let key = index_key("wanted", 801);
    replace(&server, "db", &[&key[..], &[2]].concat(), &[&key[..], &[3]].concat());
    assert_eq!(changes().await, before);
    until_index_is(&database, "damaged").await;
    assert_eq!(changes().await, before);
    let (code, report) = check(&server);
    assert!(code == Some(1) && report.contains("feed_index"), "{report}");

    database.request("DELETE", "/_feed_index").expect(200).await;
    put().expect(202).await;
    until_index_is(&database, "ready").await;
    assert_eq!(changes().await, before);
    until_index_is(&database, "ready").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_the_log_is_checked_and_read_though_lmdb_s_file_is_damaged() {
    let mut server = Server::start();
    let database = fill(&server, "db").await;
    server.stop();
    damage_body(&server, "db");
    server.restart_on_same_port_and_data();
    assert_named(&database, "PUT", "/new", "read_only_database", &["can only be read"]).await;
    server.stop();
    replace(&server, "db", format!("mArker-{HIT}").as_bytes(), format!("marker-{HIT}").as_bytes());

    // The same damage, with a log beside it.
    server.restart_on_same_port_and_data();
    database.put("in-the-log", &json!({ "n": 1 })).await;
    server.kill();
    assert_eq!(check(&server).0, Some(0));
    damage_body(&server, "db");
    let (code, report) = check(&server);
    assert!(code == Some(1) && report.contains("table bodies"), "{report}");
    server.restart_on_same_port_and_data();
    assert_named(&database, "GET", "/d150", "damaged_database", &["checksum does not match"]).await;
    assert_eq!(database.get("/in-the-log").expect(200).await.json()["n"], 1);
    assert_eq!(database.info().await["doc_count"], DOCUMENTS + 1);
}

/// A record of a database's log without rows, as `docs/storage-format.md` draws it.
fn record(server: &Server, name: &str, number: u64) -> Vec<u8> {
    let catalogue = fs::read(server.data_dir().join("catalogue.json")).expect("the catalogue");
    let catalogue: Value = serde_json::from_slice(&catalogue).expect("JSON");
    let uuid = catalogue["databases"][name]["uuid"].as_str().expect("a uuid");
    let uuid = u128::from_str_radix(uuid, 16).expect("hexadecimal digits").to_be_bytes();
    let body = [[7; 8], number.to_be_bytes()].concat();
    let length = u32::try_from(body.len()).expect("it is short").to_be_bytes();
    [&length[..], &crc32c::crc32c(&[&uuid[..], &body].concat()).to_be_bytes(), &body].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_misses_acknowledged_writes_is_told_of_and_the_database_can_be_read() {
    let mut server = Server::start();
    let database = fill(&server, "db").await;
    server.stop();
    let log = data_file(&server, "db").with_file_name("log-0");
    assert!(!log.exists(), "an orderly end leaves none");
    // Far beyond what the tables have, though records are numbered one after the other.
    fs::write(&log, [&[0; 100], &record(&server, "db", 1_000_000)[..], &[0; 900]].concat()).expect("the log");
    let (code, report) = check(&server);
    assert!(code == Some(1) && report.contains("db: log-0, byte 100: record 1000000 is there, but"), "{report}");
    server.restart_on_same_port_and_data();
    assert_named(&database, "PUT", "/new", "read_only_database", &["log-0, byte 100", "is missing or damaged"]).await;
    for number in 0..DOCUMENTS {
        database.get(&format!("/d{number:03}")).expect(200).await;
    }
    assert_eq!(metric(&server, "seqtide_databases_damaged").await, Some(1));

    // The way out that the documentation names: what the log had is given up.
    server.stop();
    fs::remove_file(&log).expect("the log");
    server.restart_on_same_port_and_data();
    assert_well(&database, "new").await;
    assert_eq!(check(&server).0, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_beside_a_server_that_writes_all_the_time_finds_nothing() {
    let server = Server::start();
    let database = fill(&server, "db").await;
    let (count, written) = tokio::sync::watch::channel(0);
    let writer = tokio::spawn(async move {
        let mut written = 0;
        while count.send(written).is_ok() {
            database.put(&format!("w{written}"), &json!({ "pad": "y".repeat(written % 50 * 100) })).await;
            written += 1;
        }
    });
    let mut checks = 0;
    while checks < 10 || *written.borrow() <= 10 {
        let (code, report) = check(&server);
        assert_eq!(code, Some(0), "{report}");
        assert!(!writer.is_finished(), "it writes meanwhile");
        checks += 1;
    }
    drop(written);
    writer.await.expect("the writer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_beside_a_server_that_makes_and_deletes_databases_finds_nothing() {
    let server = Server::start();
    let api = Api::new(&server);
    let (count, made_so_far) = tokio::sync::watch::channel(0);
    let maker = tokio::spawn(async move {
        let mut made = 0;
        while count.send(made).is_ok() {
            api.request("PUT", "/passing").expect(201).await;
            api.request("PUT", "/passing/a").json(&json!({})).expect(201).await;
            api.request("DELETE", "/passing").expect(200).await;
            made += 1;
        }
    });
    let mut checks = 0;
    while checks < 200 || *made_so_far.borrow() <= 10 {
        let (code, report) = check(&server);
        assert_eq!(code, Some(0), "{report}");
        assert!(!maker.is_finished(), "it makes some meanwhile");
        checks += 1;
    }
    drop(made_so_far);
    maker.await.expect("the maker");
}

/// What a reader in another process sees stays pinned for as long as LMDB takes the process to be there.
#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_was_killed_pins_nothing_any_more() {
    let server = Server::launch().arg("--durability=relaxed").start();
    let database = Database::create(&server, "db").await;
    let docs: Vec<Value> = (0..20_000).map(|number| json!({ "_id": format!("d{number}") })).collect();
    database.request("POST", "/_bulk_docs").json(&json!({ "docs": docs })).expect(201).await;
    let readers = server.data_dir().join("databases/db/lock.mdb");
    // A reader's slot is a cache line, with the transaction in its first 8 bytes and the process in the next 4.
    let reads = |pid: u32| {
        let table = fs::read(&readers).expect("the table of readers");
        table.chunks_exact(64).any(|slot| slot[8..12] == pid.to_ne_bytes())
    };
    let mut check = seqtide_command().arg("check").arg(server.data_dir()).spawn().expect("the binary runs");
    while !reads(check.id()) {
        assert!(check.try_wait().expect("a process").is_none(), "it ended before it was seen to read");
    }
    // It is there for as long as it must be, and cannot say that it ends.
    let pid = Pid::from_child(&check);
    kill_process(pid, Signal::STOP).expect("a process");
    assert!(reads(check.id()), "it was stopped while it read");
    check.kill().expect("a process");
    check.wait().expect("an end");
    let deadline = Instant::now() + 3 * SOON;
    let mut number = 0;
    while reads(check.id()) {
        assert!(Instant::now() < deadline, "its place is still taken");
        database.put(&format!("after-{number}"), &json!({})).await;
        number += 1;
    }
}
