//! The examples of `docs/feeds.md`, run as they stand there.

use seqtide_tests::pages::{Page, run_examples, run_shell};
use seqtide_tests::{Api, Server};

const PAGE: Page = Page(include_str!("../../docs/feeds.md"));

/// What was printed, but for the time after which a reader comes back: it is another one for each.
fn alike(printed: &str) -> String {
    let is_retry = |line: &str| line.strip_prefix("retry: ").is_some_and(|millis| millis.parse::<u64>().is_ok());
    let lines = printed.lines().map(|line| if is_retry(line) { "retry: N" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn each_example_prints_what_the_page_says() {
    let examples = run_examples(&PAGE, alike);
    assert!(examples >= 8, "{examples}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_refused_as_the_page_says() {
    let server = Server::start();
    run_shell(&PAGE.example("sh", &server));
    let api = Api::new(&server);
    let (_, table) = PAGE.0.split_once("## What is refused").expect("a table");
    let mut refused = 0;
    for line in table.lines().filter(|line| line.starts_with("| `")) {
        let [query, status, reason] = line.trim_matches('|').split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let query = query.trim().trim_matches('`').replace('{', "%7B").replace('}', "%7D");
        let answer = api.get(&format!("/orders/_feed?{query}")).send().await;
        answer.assert_status(status.parse().expect("a status"));
        assert_eq!(answer.json()["reason"], serde_json::json!(reason.trim()), "{query}");
        refused += 1;
    }
    assert_eq!(refused, 9);
}
