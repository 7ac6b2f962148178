//! The examples of `docs/subscriptions.md`, run as they stand there.

use serde_json::Value;

use super::brief;
use seqtide_tests::Server;
use seqtide_tests::pages::{Page, run_module, run_shell};

const PAGE: Page = Page(include_str!("../../../docs/subscriptions.md"));

/// Lines that are JSON, without what differs from run to run.
fn said(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    // What curl says of writes is not on the page.
    lines
        .filter(|line| line.get("rev").is_none() && line.as_object().is_some_and(|members| members.len() > 1))
        .map(|line| brief(&line))
        .collect()
}

#[test]
fn curl_prints_what_the_page_says() {
    let server = Server::start();
    let printed = run_shell(&PAGE.example("sh", &server));
    assert_eq!(said(&printed), said(PAGE.block("```json")), "{printed}");
}

#[test]
fn an_event_source_gets_all_by_onmessage() {
    let server = Server::launch().arg("--feeds-heartbeat-ms=300").start();
    run_shell(&PAGE.example("sh", &server));
    let printed = run_module(&format!(
        "import {{ EventSource }} from 'eventsource';\n{}\n\
         let caughtUp = 0;\n\
         feed.addEventListener('message', ({{ data }}) => {{\n\
           caughtUp += data.split('\"event\":\"caught-up\"').length - 1;\n\
           if (caughtUp === 2 && data.includes('\"event\":\"heartbeat\"')) feed.close();\n\
         }});",
        PAGE.example("js", &server)
    ));
    for shown in [
        "orders o-1 {",
        "total: 7",
        "vips vip-1 undefined",
        "orders caught-up",
        "vips caught-up",
        "the connection heartbeat",
    ] {
        assert!(printed.contains(shown), "{shown} in\n{printed}");
    }
}
