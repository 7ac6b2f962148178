//! Functions that would harm: each is stopped, says so by name, and costs nobody else anything.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{changed, design, filter, validator};
use seqtide_tests::http::{Answer, escaped};
use seqtide_tests::server::DEADLINE;
use seqtide_tests::{Database, Server};

/// What a body of a function of `doc` does, and the error it ends in.
const HOSTILE: [(&str, &str, &str); 10] = [
    ("an endless loop", "for (;;);", "function_stopped"),
    ("a loop that catches what stops it", "for (;;) { try { for (;;); } catch (e) {} }", "function_stopped"),
    ("deep recursion", "function f() { return f() + 1; } return f();", "function_failed"),
    ("a huge array as text", "return new Array(1e9) + '';", "function_stopped"),
    ("a regular-expression bomb", "return /^(a+)+$/.test('a'.repeat(50) + '!');", "function_stopped"),
    ("a memory bomb", "const all = []; for (;;) all.push(new Array(1000).fill(all.length));", "function_stopped"),
    ("a string that doubles", "let s = 'x'; for (;;) s += s;", "function_failed"),
    ("an exception with a huge message", "throw new Error('x'.repeat(1e7));", "function_failed"),
    (
        "an exception that cannot be read",
        "throw { toString() { throw 1; }, toJSON() { for (;;); } };",
        "function_stopped",
    ),
    ("output", "std.out.puts('{}'); return true;", "function_failed"),
];

/// A server whose functions may take two seconds and 32 MiB.
async fn strict() -> (Server, Database) {
    let launch = Server::launch().arg("--functions-batch-timeout-ms=2000").arg("--functions-memory-bytes-max=33554432");
    let server = launch.start();
    let database = Database::create(&server, "db").await;
    (server, database)
}

fn assert_short(answer: &Answer, what: &str, error: &str, function: &str) {
    let said = answer.json();
    let reason = said["reason"].as_str().expect("a reason");
    assert_eq!(said["error"], error, "{what}: {reason}");
    assert!(reason.starts_with(function), "{what}: {reason}");
    assert!(reason.len() < 1200, "{what}: {} bytes", reason.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_filters_end_their_feeds_and_cost_nobody_else_anything() {
    let (server, database) = strict().await;
    database.put("a", &json!({})).await;
    design(&database, "good", &filter("(doc) => doc.n > 0")).await;
    let mut good = database.get("/_feed?filter=good/f").open().await;
    good.until(|text| text.contains("caught-up")).await;
    for (number, (what, code, error)) in (1..).zip(HOSTILE) {
        design(&database, "d", &filter(&format!("function (doc) {{ {code} }}"))).await;
        let path = "/_changes?filter=d/f";
        let (id, body) = (format!("n{number}"), json!({ "n": number }));
        let (hostile, written) = tokio::join!(database.get(path).send(), database.put(&id, &body));
        assert_eq!(written.status, 201, "{what}");
        assert_eq!(hostile.status, 500, "{what}: {}", hostile.text());
        assert_short(&hostile, what, error, "filters.f of _design/d ");
        good.until(|text| text.contains(&format!("\"n{number}\""))).await;
    }
    assert!((1..=4).contains(&workers(&server).len()), "{:?}", workers(&server));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_value_is_no_more_than_true() {
    let (_server, database) = strict().await;
    database.put("a", &json!({})).await;
    for (value, expected) in
        [("'x'.repeat(1e7)", &["a", "_design/d"][..]), ("new Array(1e6)", &["a", "_design/d"]), ("''", &[])]
    {
        design(&database, "d", &filter(&format!("(doc) => {value}"))).await;
        assert_eq!(changed(&database, "filter=d/f").await, expected, "{value}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_validation_refuses_the_write_and_no_other() {
    let (server, database) = strict().await;
    for (what, code, _) in HOSTILE {
        design(&database, "v", &validator(&format!("function (doc) {{ if (doc.hostile) {{ {code} }} }}"))).await;
        let docs = [json!({ "before": 1 }), json!({ "_id": "h", "hostile": 1 }), json!({ "after": 1 })];
        let (answer, other) = tokio::join!(database.bulk(&docs), database.post("").json(&json!({})).expect(201));
        assert_eq!(other.status, 201, "{what}");
        let ok: Vec<bool> = answer.as_array().expect("items").iter().map(|item| item["ok"] == json!(true)).collect();
        assert_eq!(ok, [true, false, true], "{what}: {answer}");
        let reason = answer[1]["reason"].as_str().expect("a reason");
        assert!(reason.starts_with("validate_doc_update of _design/v ") && reason.len() < 1200, "{what}: {reason}");
    }
    assert!((1..=4).contains(&workers(&server).len()), "{:?}", workers(&server));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_full_of_hostile_documents_is_given_up_before_long() {
    let (_server, database) = strict().await;
    design(&database, "v", &validator("function () { for (;;); }")).await;
    let docs: Vec<Value> = (0..500).map(|n| json!({ "_id": format!("d{n}") })).collect();
    let request = database.post("/_bulk_docs").json(&json!({ "docs": docs }));
    let answer = tokio::time::timeout(Duration::from_secs(60), request.expect(500)).await.expect("an answer").json();
    assert_eq!(answer["error"], "function_stopped", "nothing is written, so that it can be sent again: {answer}");
    assert_eq!(changed(&database, "").await, ["_design/v"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_end_with_the_server_however_it_ends() {
    for killed in [false, true] {
        let (mut server, database) = strict().await;
        design(&database, "d", &filter("(doc) => true")).await;
        assert_eq!(changed(&database, "filter=d/f").await, ["_design/d"]);
        let workers = workers(&server);
        assert!(!workers.is_empty());
        if killed {
            server.kill()
        } else {
            server.stop()
        }
        let gone = || workers.iter().all(|pid| !Path::new(&format!("/proc/{pid}/cmdline")).exists());
        let waiting = async {
            while !gone() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("the workers end");
    }
}

/// A terminal's signals go to a whole process group: the functions that a server still needed died with the first.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_the_server_s_process_group_leaves_it_its_workers_until_it_ends() {
    let mut server = Server::launch().own_group().start();
    let database = Database::create(&server, "db").await;
    design(&database, "v", &validator("function (doc) { for (const end = Date.now() + 3000; Date.now() < end;); }"))
        .await;
    let slow = database.request("PUT", "/slow").json(&json!({}));
    let interrupted = async {
        let is_asked = || workers(&server).iter().any(|pid| processor_ticks(*pid) > 20);
        while !is_asked() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        server.interrupt_group();
    };
    let both = async { tokio::join!(slow.send(), interrupted) };
    let (written, ()) = tokio::time::timeout(DEADLINE, both).await.expect("it is validated");
    assert_eq!(written.status, 201, "{}", written.text());
    assert_eq!(server.wait().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_filters_leave_room_for_the_writes_of_others_and_for_their_own() {
    let launch = Server::launch().arg("--functions-batch-timeout-ms=20000");
    let server = launch.start();
    let hogs = [Database::create(&server, "hog-1").await, Database::create(&server, "hog-2").await];
    let other = Database::create(&server, "other").await;
    let checked = validator("function (doc) { if (doc.bad) throw({ forbidden: 'bad' }); }");
    for database in hogs.iter().chain([&other]) {
        design(database, "slow", &filter("function () { for (;;); }")).await;
        design(database, "checked", &checked).await;
    }
    // Each is another function to the server, so that none waits for another's answer.
    let mut waiting = Vec::new();
    for number in 0..20 {
        for hog in &hogs {
            let request = hog.get(&format!("/_changes?filter=slow/f&n={number}"));
            waiting.push(tokio::spawn(async move { request.try_send().await.map(drop) }));
        }
    }
    let busy = || workers(&server).len() >= 3;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while !busy() {
        assert!(tokio::time::Instant::now() < deadline, "{:?}", workers(&server));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for database in hogs.iter().chain([&other]) {
        let writes = async {
            database.put("good", &json!({})).await;
            database.request("PUT", "/bad").json(&json!({ "bad": 1 })).expect(403).await;
        };
        tokio::time::timeout(Duration::from_secs(10), writes).await.expect("a worker is kept for writes");
    }
    waiting.iter().for_each(|client| client.abort());
    for client in waiting {
        assert!(client.await.is_err(), "still waiting when it left");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_whose_filter_waits_says_that_it_lives() {
    let launch = Server::launch().arg("--functions-batch-timeout-ms=60000");
    let server = launch.start();
    let database = Database::create(&server, "db").await;
    design(&database, "d", &filter("function (doc) { if (doc.slow) for (;;); return true; }")).await;
    let mut feed = database.get("/_feed?filter=d/f&heartbeat=100").open().await;
    feed.until(|text| text.contains("caught-up")).await;
    database.put("a", &json!({ "slow": true })).await;
    let alive = |text: &str| text.matches("\"heartbeat\",\"seq\":1,\"pending\":1").count() >= 3;
    feed.until(alive).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_is_stopped_has_given_what_came_before_and_names_the_document() {
    let (_server, database) = strict().await;
    for id in ["a", "b", "c", "d"] {
        database.put(id, &json!({ "endless": id == "c" })).await;
    }
    design(&database, "d", &filter("function (doc) { if (doc.endless) for (;;); return true; }")).await;
    let mut feed = database.get("/_feed?since=0&filter=d/f").open().await;
    let text = feed.until(|text| text.contains("\"event\":\"error\"")).await;
    assert!(text.contains("\"id\":\"b\"") && !text.contains("\"id\":\"d\""), "{text}");
    assert!(text.contains("filters.f of _design/d was stopped") && text.contains("(document \\\"c\\\")"), "{text}");
}

/// Ten of these documents are asked about together, and take longer than they may; each alone does not.
#[tokio::test(flavor = "multi_thread")]
async fn documents_that_take_too_long_together_are_all_asked_about_one_by_one() {
    let (_server, database) = strict().await;
    let code = "function (doc) { const end = Date.now() + doc.takes_ms; while (Date.now() < end); return doc.shown; }";
    design(&database, "d", &filter(code)).await;
    let since = database.info().await["update_seq"].as_u64().expect("a number");
    let pad = "x".repeat(100_000);
    let docs = |takes_ms: u32, shown: bool, revs: &[Value]| -> Vec<Value> {
        let doc = |n: usize| {
            let mut doc = json!({ "_id": format!("d{n:02}"), "takes_ms": takes_ms, "shown": shown, "pad": pad });
            if let Some(written) = revs.get(n) {
                doc["_rev"] = written["rev"].clone();
            }
            doc
        };
        (0..11).map(doc).collect()
    };
    let ids: Vec<String> = (0..11).map(|n| format!("d{n:02}")).collect();
    let written = database.bulk(&docs(250, true, &[])).await;
    assert_eq!(changed(&database, &format!("filter=d/f&since={since}")).await, ids);

    database.bulk(&docs(0, false, written.as_array().expect("a list"))).await;
    let query = format!("since={}&leave=true&filter=d/f&live=false", since + 11);
    let answer = database.get(&format!("/_feed?{query}")).expect(200).await;
    let left: Vec<&str> = answer.text().lines().filter(|line| line.contains("\"left\":true")).collect();
    assert_eq!(left.len(), 11, "{left:?}");
}

/// What a feed has read and is asked about is not held by its reader.
#[tokio::test(flavor = "multi_thread")]
async fn readers_that_do_not_read_keep_no_other_filter_waiting() {
    let server = Server::start();
    let database = Database::create(&server, "db").await;
    let slow = "function (doc) { for (let n = 0; n < 3e5; n += 1); return true; }";
    design(&database, "d", &json!({ "filters": { "slow": slow, "quick": "(doc) => true" } })).await;
    let docs: Vec<Value> = (0..3000).map(|n| json!({ "_id": format!("d{n}"), "pad": "x".repeat(1000) })).collect();
    database.bulk(&docs).await;
    let mut stalled = Vec::new();
    for number in 0..8 {
        let asked = escaped(&json!({ "n": number }).to_string());
        let query = format!("since=0&heartbeat=1&include_docs=true&filter=d/slow&query={asked}");
        let request = format!("GET /db/_feed?{query} HTTP/1.1\r\nHost: {}\r\n\r\n", server.address());
        stalled.push(
            seqtide_tests::raw::open(server.address(), &request, |text| text.contains("event\":\"heartbeat")).await,
        );
    }
    let quick = async { changed(&database, "filter=d/quick").await.len() };
    let found = tokio::time::timeout(Duration::from_secs(30), quick).await.expect("it has its turn");
    assert_eq!(found, 3001);
}

#[tokio::test(flavor = "multi_thread")]
async fn by_default_too_a_filter_that_hangs_is_an_error_before_the_first_byte() {
    let server = Server::start();
    let database = Database::create(&server, "db").await;
    design(&database, "d", &filter("function () { for (;;); }")).await;
    database.bulk(&[json!({}), json!({}), json!({})]).await;
    let answer = database.get("/_changes?filter=d/f").send().await;
    assert_eq!((answer.status, &answer.json()["error"]), (500, &json!("function_stopped")));
}

/// The workers of a server: its children.
fn workers(server: &Server) -> Vec<u32> {
    let parent = |pid: u32| stat(pid).get(1)?.parse().ok();
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| parent(*pid) == Some(server.pid())).collect()
}

/// The processor time that a process has taken for itself, in hundredths of a second.
fn processor_ticks(pid: u32) -> u64 {
    stat(pid).get(11).and_then(|ticks| ticks.parse().ok()).unwrap_or_default()
}

/// What the system says of a process behind its name.
fn stat(pid: u32) -> Vec<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().map(str::to_owned).collect())
}
