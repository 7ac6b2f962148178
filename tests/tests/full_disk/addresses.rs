//! The system has no more addresses to give: a map cannot grow, and LMDB has let go of the old one by the time it finds
//! out.

use std::fs;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use seqtide_tests::{Database, Server};

/// The map at first; it grows by doubling.
const MAP_BYTES: u64 = 64 << 20;
/// What the server may have beyond what it has, for all but a map of twice the size.
const SPARE_BYTES: u64 = 40 << 20;

fn bound_addresses(server: &Server, bytes: Option<u64>) {
    let pid = Pid::from_raw(server.pid().cast_signed()).expect("a process");
    prlimit(Some(pid), Resource::As, Rlimit { current: bytes, maximum: None }).expect("a bound that can be set");
}

/// The address space that the server has.
fn address_bytes(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("the server's status");
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmSize:")?.strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.expect("its size") << 10
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_that_cannot_grow_costs_the_writes_that_need_it_and_nothing_else() {
    // Without a log it is the write itself that finds it full.
    let launch = Server::launch().arg("--durability=relaxed").arg(format!("--storage-map-bytes={MAP_BYTES}"));
    let server = launch.start();
    let database = Database::create(&server, "db").await;
    let batch = |number: u64| -> Value {
        let doc = |n| json!({ "_id": format!("d{number}-{n}"), "pad": "x".repeat(4000) });
        json!({ "docs": (0..100).map(doc).collect::<Vec<_>>() })
    };
    database.post("/_bulk_docs").json(&batch(0)).expect(201).await;
    bound_addresses(&server, Some(address_bytes(&server) + SPARE_BYTES));
    let mut written = 1;
    let refused = loop {
        let answer = database.post("/_bulk_docs").json(&batch(written)).send().await;
        if answer.status != 201 {
            break answer;
        }
        written += 1;
        assert!(written * 100 * 4000 < 2 * MAP_BYTES, "the map has grown");
    };
    assert_eq!(refused.status, 500, "{}", refused.text());
    assert!(refused.text().contains("Cannot allocate memory"), "{}", refused.text());
    assert_eq!(database.info().await["doc_count"], written * 100, "what was written is read");
    assert_eq!(database.post("/_bulk_docs").json(&batch(written)).send().await.status, 500, "still");

    bound_addresses(&server, None);
    database.post("/_bulk_docs").json(&batch(written)).expect(201).await;
    assert_eq!(database.info().await["doc_count"], (written + 1) * 100);
}
