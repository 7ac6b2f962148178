//! The examples of `docs/writing.md`, run as they stand there.

use seqtide_tests::pages::{Page, run_examples};

const PAGE: Page = Page(include_str!("../../docs/writing.md"));

#[test]
fn each_example_prints_what_the_page_says() {
    let lines = |printed: &str| printed.lines().collect::<Vec<_>>().join("\n");
    assert_eq!(run_examples(&PAGE, lines), 5);
}
