//! The README's curl and JavaScript are run as they stand there, against a server of the test. Its Rust is a doctest of
//! the crate `seqtide`.

use seqtide_tests::Server;
use seqtide_tests::pages::{Page, run_module, run_shell};

const README: Page = Page(include_str!("../../README.md"));

fn run_curl_example(server: &Server) -> String {
    run_shell(&README.example("sh", server))
}

#[test]
fn the_curl_example_follows_a_feed_and_resumes_it() {
    let printed = run_curl_example(&Server::start());
    let shown = README.block("```text");
    let rows: Vec<&str> = shown.lines().filter(|line| line.starts_with("data: {\"seq\":")).collect();
    assert_eq!(rows.len(), 2, "{shown}");
    for line in rows.iter().chain(&["event: opened", "id: 0", "id: 1", "id: 2", "event: end"]) {
        assert!(printed.lines().any(|printed| printed == *line), "{line} in\n{printed}");
    }
    let (_, resumed) = printed.split_once("\"reason\":\"limit\"").expect("the first feed ends");
    assert!(resumed.contains("data: {\"seq\":2,\"id\":\"o-2\",\"changes\":"), "{resumed}");
    assert!(!resumed.contains("data: {\"seq\":1,"), "what was seen does not come again: {resumed}");
}

#[test]
fn the_browser_example_shows_changes_and_signs_of_life() {
    let server = Server::launch().arg("--feeds-heartbeat-ms").arg("200").start();
    run_curl_example(&server);
    let printed = run_module(&format!(
        "import {{ EventSource }} from 'eventsource';\n{}\nfeed.addEventListener('heartbeat', () => feed.close());",
        README.example("js", &server)
    ));
    for shown in ["1 o-1 {", "total: 12.5", "2 o-2 {", "caught up at 2", "alive, still to come: 0"] {
        assert!(printed.contains(shown), "{shown} in\n{printed}");
    }
}
