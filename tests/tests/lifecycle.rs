//! How the server starts, ends, and lets go of what is gone.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use seqtide_bench::process::Process;
use seqtide_tests::database::fresh;
use seqtide_tests::doors::{FeedSocket, feed_url};
use seqtide_tests::raw;
use seqtide_tests::server::{Exit, seqtide_command, seqtide_command_behind};
use seqtide_tests::{Api, Database, Server, eventually};

/// Rows wait for LMDB for a second or three, and a writer looks every five seconds whether it rests.
const AT_REST_WITHIN: Duration = Duration::from_secs(60);
/// Ten times what is promised: a test machine may be busy.
const GONE_WITHIN: Duration = Duration::from_secs(10);

#[test]
fn the_banner_tells_where_it_listens_where_its_data_is_and_a_line_to_try() {
    let server = Server::start();
    let first = server.stdout_line("listening on");
    assert_eq!(first, format!("seqtide {} listening on {}", env!("CARGO_PKG_VERSION"), server.url()));
    assert_eq!(server.stdout().first(), Some(&first));
    server.stdout_line(&server.data_dir().display().to_string());
    let line = server.stdout_line("curl ");
    let command = &line[line.find("curl ").expect("it contains it")..];
    let output = Command::new("timeout").args(["20", "sh", "-c", command]).output().expect("a shell");
    assert!(output.status.success(), "{command}: {output:?}");
    let answer: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{command}: {error} in {output:?}"));
    assert_eq!(answer.get("error"), None, "{command}");
}

/// Asserts that it failed with code 1 and one line of standard error, and returns that line.
fn one_line_error(exit: &Exit) -> &str {
    assert_eq!(exit.status.code(), Some(1), "{exit:?}");
    let lines: Vec<&str> = exit.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "one line: {exit:?}");
    lines[0]
}

#[test]
fn an_address_in_use_is_a_one_line_error() {
    let server = Server::start();
    let exit = Server::launch().listen(server.address()).run_to_exit();
    let line = one_line_error(&exit);
    assert!(line.contains(&server.address().to_string()), "{line:?} should name the address");
}

#[test]
fn a_data_folder_in_use_is_a_one_line_error() {
    let server = Server::start();
    let exit = Server::launch().data_dir(server.data_dir()).run_to_exit();
    let line = one_line_error(&exit);
    assert!(line.contains(&server.data_dir().display().to_string()), "{line:?} should name the folder");
}

#[test]
fn it_listens_on_loopback_only_and_says_why() {
    let exit = Server::launch().listen(([0, 0, 0, 0], 0).into()).run_to_exit();
    let line = one_line_error(&exit);
    assert!(line.contains("loopback"), "{line:?}");
}

#[test]
fn a_data_folder_left_by_a_killed_server_opens_again() {
    let mut server = Server::start();
    server.kill();
    server.restart_on_same_port_and_data();
    server.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_with_feeds_open_and_keeps_what_was_acknowledged() {
    let mut server = Server::start();
    let database = Database::create(&server, "db").await;
    let mut feeds = Vec::new();
    for path in ["/_changes?feed=continuous&heartbeat=60000&since=now", "/_feed"] {
        let mut feed = database.get(path).open().await;
        feed.until(|text| !text.is_empty()).await;
        feeds.push(feed);
    }
    let (first, mut acknowledged) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..100 {
        let (database, first) = (database.clone(), first.clone());
        tokio::spawn(async move {
            let id = format!("d{number}");
            let request = database.request("PUT", &format!("/{id}")).json(&json!({ "n": number }));
            if let Ok(answer) = request.try_send().await
                && answer.status == 201
            {
                first.send((id, answer.rev())).expect("the test reads on");
            }
        });
    }
    drop(first);
    let mut written = vec![acknowledged.recv().await.expect("one write at least is answered")];
    server.stop();
    while let Some(write) = acknowledged.recv().await {
        written.push(write);
    }
    for feed in feeds {
        feed.to_end().await;
    }
    server.restart_on_same_port_and_data();
    for (id, rev) in written {
        assert_eq!(database.get(&format!("/{id}")).expect(200).await.json()["_rev"], json!(rev), "{id}");
    }
}

/// A terminal that is closed was as a crash to a server in it.
#[test]
fn a_hangup_ends_it_like_sigterm_unless_it_was_started_to_ignore_that() {
    const HANGUP: u64 = 1;
    for (program, args, ignores) in
        [("env", &["--default-signal=HUP"][..], false), ("sh", &["-c", "trap '' HUP; exec \"$0\" \"$@\""], true)]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let mut server = seqtide_command_behind(program, args);
        server.args(["serve", "--listen", "127.0.0.1:0", "--feeds-drain-ms", "0", "--data"]).arg(folder.path());
        let mut server = server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program runs");
        let mut banner = String::new();
        BufReader::new(server.stdout.take().expect("it is piped")).read_line(&mut banner).expect("a banner");
        let pid = Pid::from_child(&server);
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).expect("its status");
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask").trim();
        assert_eq!(u64::from_str_radix(ignored, 16).expect("a mask") & HANGUP == HANGUP, ignores, "{program}");
        kill_process(pid, Signal::HUP).expect("it runs");
        if ignores {
            kill_process(pid, Signal::TERM).expect("it runs");
        }
        assert_eq!(server.wait().expect("its end").code(), Some(0), "{program}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reopened_database_gives_the_same_bytes() {
    let mut server = Server::start();
    let database = Database::create(&server, "db").await;
    let docs: Vec<Value> = (0..300).map(|number| json!({ "_id": format!("d{number}"), "n": number })).collect();
    let results = database.bulk(&docs).await;
    for number in (0..300).step_by(3) {
        let rev = &results[number]["rev"];
        database.put(&format!("d{number}"), &json!({ "_rev": rev, "_id": "x", "n": -1 })).await;
    }
    database
        .push(&[json!({ "_id": "d7", "_rev": "1-zz" }), json!({ "_id": "d8", "_rev": "2-y", "_deleted": true })])
        .await;
    let queries =
        ["", "include_docs=true&conflicts=true&style=all_docs", "descending=true&limit=50", "since=200&limit=7"];
    let mut before = Vec::new();
    for query in queries {
        before.push(database.get(&format!("/_changes?{query}")).expect(200).await.text().to_owned());
    }
    let info = database.info().await;
    for ending in [Server::stop, Server::kill] {
        ending(&mut server);
        server.restart_on_same_port_and_data();
        for (query, before) in queries.iter().zip(&before) {
            let after = database.get(&format!("/_changes?{query}")).expect(200).await;
            assert_eq!(after.text(), before, "{query}");
        }
        let reopened = database.info().await;
        for name in ["update_seq", "doc_count", "doc_del_count", "instance_start_time"] {
            assert_eq!(reopened[name], info[name], "{name}");
        }
    }
}

/// How many feeds of a kind are open.
async fn open_feeds(api: &Api, kind: &str) -> u64 {
    api.metric(&format!("seqtide_feeds_open{{kind=\"{kind}\"}}")).await.unwrap_or(0)
}

async fn wait_for_open_feeds(api: &Api, kind: &str, count: u64) {
    let deadline = Instant::now() + GONE_WITHIN;
    loop {
        let found = open_feeds(api, kind).await;
        if found == count {
            return;
        }
        assert!(Instant::now() < deadline, "{found} feeds of kind {kind} are open, not {count}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vanished_client_s_feed_is_gone() {
    let server = Server::start();
    let database = Database::create(&server, "db").await;
    let api = Api::new(&server);
    for (kind, path, accept) in [
        ("longpoll", "_changes?feed=longpoll&heartbeat=60000", "*/*"),
        ("continuous", "_changes?feed=continuous&heartbeat=60000", "*/*"),
        ("eventsource", "_changes?feed=eventsource&heartbeat=60000", "*/*"),
        ("sse", "_feed", "text/event-stream"),
        ("lines", "_feed", "*/*"),
    ] {
        let request = format!("GET /db/{path} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n");
        let (socket, _) = raw::open(server.address(), &request, |text| text.contains("\r\n\r\n")).await;
        wait_for_open_feeds(&api, kind, 1).await;
        drop(socket);
        wait_for_open_feeds(&api, kind, 0).await;
    }
    let socket = FeedSocket::open(&feed_url(&server, &database, "since=now")).await.expect("a WebSocket");
    wait_for_open_feeds(&api, "websocket", 1).await;
    drop(socket);
    wait_for_open_feeds(&api, "websocket", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_folders_that_were_put_among_the_databases_is_told() {
    let mut server = Server::start();
    Database::create(&server, "orders").await.put("a", &json!({})).await;
    server.stop();
    let databases = server.data_dir().join("databases");
    for name in ["moved", "orders.bak"] {
        std::fs::create_dir(databases.join(name)).expect("a folder");
        std::fs::copy(databases.join("orders/data.mdb"), databases.join(name).join("data.mdb")).expect("a copy");
    }
    server.restart_on_same_port_and_data();
    let moved = Database::at(&server, "moved").info().await;
    assert_eq!(moved["update_seq"], json!((1_u64 << 45) + 1));
    assert_eq!(Database::at(&server, "orders").info().await["update_seq"], json!(1));
    server.stop();
    let log = server.stderr();
    let lines_with = |word: &str| log.lines().filter(|line| line.contains(word)).count();
    assert_eq!((lines_with("orders.bak"), lines_with("passed over")), (1, 1), "{log}");
    assert_eq!((lines_with("databases/moved"), lines_with("not known how far it had counted")), (1, 1), "{log}");
    let checked = seqtide_command().arg("check").arg(server.data_dir()).output().expect("the binary runs");
    let report = String::from_utf8_lossy(&checked.stdout);
    assert_eq!(checked.status.code(), Some(2), "{report}");
    assert!(report.lines().any(|line| line.contains("orders.bak: passed over")), "{report}");
}

/// A server whose standard error nobody reads but who asks for it here, and where it listens. It ends with this test.
fn unread(folder: &Path, log: &str) -> (Child, SocketAddr) {
    let mut server = seqtide_command();
    server.args(["serve", "--until-stdin-ends", "--listen", "127.0.0.1:0", "--feeds-drain-ms", "0", "--log", log]);
    let mut server = server
        .arg("--data")
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut banner = String::new();
    BufReader::new(server.stdout.take().expect("it is piped")).read_line(&mut banner).expect("a banner");
    let address = banner.trim().rsplit("http://").next().expect("an address").parse().expect("an address");
    (server, address)
}

/// Sends a request over a connection of its own, and asserts what is answered.
async fn ask(address: SocketAddr, method: &str, path: &str, status: u16) -> String {
    let head = format!("{method} {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}");
    let answer = raw::exchange(address, &head).await;
    assert!(answer.status_line.contains(&format!(" {status} ")), "{method} {path}: {}", answer.status_line);
    answer.body
}

/// Asserts that it ends in order when it is asked to.
fn end(server: &mut Child) {
    let ended = Command::new("kill").arg(server.id().to_string()).status().expect("kill");
    assert!(ended.success());
    assert_eq!(server.wait().expect("its end").code(), Some(0));
}

/// As when the reader of a pipe has gone, or the log's file is on the disk that is full.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_cannot_be_written_stops_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut server, address) = unread(folder.path(), "info");
    drop(server.stderr.take());
    for (method, path, status) in [
        ("PUT", "/db", 201),
        ("PUT", "/db/a", 201),
        // That it conflicts is told in the log alone.
        ("PUT", "/db/a?batch=ok", 202),
        ("PUT", "/db/b", 201),
        ("GET", "/db/b", 200),
    ] {
        ask(address, method, path, status).await;
    }
    end(&mut server);
}

/// How many lines of its log a server says that it has lost.
async fn lines_lost(address: SocketAddr) -> u64 {
    let metrics = ask(address, "GET", "/metrics", 200).await;
    let line = metrics.lines().find_map(|line| line.strip_prefix("seqtide_log_lines_lost_total "));
    line.expect("a counter").parse().expect("a number")
}

/// As when who reads a pipe has stalled: then it is full before long.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_stops_nothing_and_says_what_it_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut server, address) = unread(folder.path(), "warn,actix_http=trace");
    ask(address, "PUT", "/db", 201).await;
    let deadline = Instant::now() + AT_REST_WITHIN;
    while lines_lost(address).await == 0 {
        assert!(Instant::now() < deadline, "no line is lost");
        for _ in 0..100 {
            ask(address, "GET", "/db", 200).await;
        }
    }
    // What says what was lost is lost, too, until somebody reads.
    let lost = lines_lost(address).await;
    while lines_lost(address).await < lost + 10_000 {
        ask(address, "GET", "/db", 200).await;
        assert!(Instant::now() < deadline, "lines are not lost any more");
    }
    ask(address, "PUT", "/db/a", 201).await;
    let (said, mut heard) = mpsc::unbounded_channel();
    let log = BufReader::new(server.stderr.take().expect("it is piped"));
    thread::spawn(move || {
        for line in log.lines().map_while(Result::ok).filter(|line| line.contains("lines of the log were lost")) {
            let lines = line.rsplit("lines=").next().and_then(|lines| lines.trim().parse().ok());
            let _ = said.send(lines.unwrap_or_else(|| panic!("{line} does not say how many")));
        }
    });
    let mut told: u64 = 0;
    while told < lost + 10_000 || told != lines_lost(address).await {
        told = timeout(AT_REST_WITHIN, heard.recv()).await.expect("it says all that it lost").expect("it goes on");
    }
    end(&mut server);
}

/// It stayed there for ever, and nobody started it anew.
#[test]
fn a_server_that_fails_ends_though_nobody_reads_why() {
    let (held, folder) = (TcpListener::bind("127.0.0.1:0").expect("a port"), tempfile::tempdir().expect("a folder"));
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    rustix::io::ioctl_fionbio(&writer, true).expect("it need not be waited for");
    while writer.write(&[b'x'; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).expect("it is waited for");
    let mut server = seqtide_command();
    server.args(["serve", "--until-stdin-ends", "--listen", &held.local_addr().expect("it has one").to_string()]);
    let mut server =
        server.arg("--data").arg(folder.path()).stdin(Stdio::piped()).stderr(writer).spawn().expect("the binary runs");
    let status = eventually("it should end", || server.try_wait().expect("its status"));
    assert_eq!(status.code(), Some(1));
    drop(reader);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_whose_tables_are_gone_is_damaged_as_long_as_there_is_a_log() {
    let mut server = Server::start();
    let database = Database::create(&server, "db").await;
    // Of two commits that follow each other the second goes through the log.
    for id in ["a", "b", "c"] {
        database.put(id, &json!({})).await;
    }
    server.kill();
    let folder = server.data_dir().join("databases/db");
    let tables = std::fs::read(folder.join("data.mdb")).expect("its tables");
    for emptied in [false, true] {
        std::fs::remove_file(folder.join("data.mdb")).expect("it is there");
        if emptied {
            std::fs::write(folder.join("data.mdb"), []).expect("an empty file");
        }
        server.restart_on_same_port_and_data();
        let answer = database.request("PUT", "/d").json(&json!({})).send().await;
        assert_eq!(answer.status, 500, "{}", answer.text());
        assert!(answer.text().contains("data.mdb"), "{}", answer.text());
        server.stop();
        assert!(folder.join("log-0").exists(), "acknowledged writes are there alone");
        let checked = seqtide_command().arg("check").arg(server.data_dir()).output().expect("the binary runs");
        assert_eq!(checked.status.code(), Some(1), "{}", String::from_utf8_lossy(&checked.stdout));
        std::fs::write(folder.join("data.mdb"), &tables).expect("its tables");
    }
    server.restart_on_same_port_and_data();
    assert_eq!(database.info().await["doc_count"], json!(3));
}

/// What is left behind a load is what LMDB keeps for its next transaction. Were the allocator not told to, all would be
/// left: the thread that puts rows into LMDB frees what the writer's has allocated.
#[tokio::test]
async fn memory_that_a_load_took_is_given_back_when_the_writer_rests() {
    let (server, database) = fresh().await;
    let process = Process(server.pid());
    let anonymous_bytes = || process.anonymous_bytes().expect("the server");
    let mut most = 0;
    for batch in 0..100 {
        let doc = |n| json!({ "_id": format!("{:06}", 1000 * batch + n), "pad": "x".repeat(200) });
        database.bulk(&(0..1000).map(doc).collect::<Vec<Value>>()).await;
        most = most.max(anonymous_bytes());
    }
    let deadline = Instant::now() + AT_REST_WITHIN;
    while anonymous_bytes() > most / 4 * 3 {
        assert!(Instant::now() < deadline, "{} bytes are left of {most}", anonymous_bytes());
        sleep(Duration::from_millis(100)).await;
    }
}
