//! The examples of `docs/filters.md`: each filter on each door, run as it stands there.

use std::collections::BTreeMap;
use std::path::Path;

use futures_util::StreamExt;
use seqtide::functions::WorkerCommand;
use seqtide::storage::model::doc_id::DocId;
use seqtide::{ChangesOptions, Database, Engine, EngineOptions, Filter, Selector, Since};
use serde_json::Value;

use seqtide_tests::Server;
use seqtide_tests::pages::{Page, run_module, run_shell};
use seqtide_tests::server::binary;

const PAGE: Page = Page(include_str!("../../../docs/filters.md"));

// The page shows this file.
include!("embedded.rs");

/// The paragraphs of the shell's examples: what is filtered by, the ids that its comment says are shown, and the
/// commands.
fn paragraphs() -> Vec<(&'static str, Vec<&'static str>, &'static str)> {
    let paragraphs = PAGE.block("```sh filters").trim().split("\n\n");
    let paragraph = |text: &'static str| {
        let (comment, commands) = text.strip_prefix("# ")?.split_once('\n')?;
        let (what, ids) = comment.split_once(": ")?;
        Some((what, ids.split(' ').collect(), commands))
    };
    paragraphs.map(|text| paragraph(text).unwrap_or_else(|| panic!("no comment with ids: {text}"))).collect()
}

/// The ids of the rows in what feeds have printed.
fn ids(printed: &str) -> Vec<String> {
    let rows = printed.lines().map(|line| line.trim_end_matches(','));
    let rows = rows.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    rows.filter_map(|row| Some(row["id"].as_str()?.to_owned())).collect()
}

#[test]
fn over_http_each_filter_shows_what_the_page_says() {
    let server = Server::start();
    let setup = PAGE.example("sh", &server);
    run_shell(&setup);
    let (names, _) = setup.split_once("\n\n").expect("a paragraph of names");
    for (what, shown, commands) in paragraphs() {
        let printed = run_shell(&format!("{names}\n{commands}"));
        let shown = shown.repeat(commands.lines().count());
        assert_eq!(ids(&printed), shown, "{what}: {printed}");
    }
}

#[test]
fn an_index_is_made_and_used_as_the_page_says() {
    let server = Server::start();
    let setup = PAGE.example("sh", &server);
    run_shell(&setup);
    let (names, _) = setup.split_once("\n\n").expect("a paragraph of names");
    let printed = run_shell(&format!("{names}\n{}", PAGE.block("```sh index")));
    let said: Vec<&str> = printed.lines().collect();
    let shown: Vec<&str> = PAGE.block("```text index").lines().collect();
    assert_eq!(said.len(), shown.len(), "{printed}");
    for (said, shown) in said.into_iter().zip(shown) {
        let (before, behind) = shown.split_once("REV").unwrap_or((shown, ""));
        assert!(said.starts_with(before) && said.ends_with(behind), "{said} is not {shown}");
    }
}

#[test]
fn in_a_page_each_filter_shows_the_same_over_sse_and_websocket() {
    let server = Server::start();
    run_shell(&PAGE.example("sh", &server));
    let expected = shown_by_option();
    let lines: usize = expected.values().map(|ids| 2 * ids.len()).sum();
    let printed = run_module(&format!(
        "import {{ EventSource }} from 'eventsource';\nimport WebSocket from 'ws';\n\
         let left = {lines};\nconst log = console.log;\n\
         console.log = (line) => {{ log(line); if ((left -= 1) === 0) setImmediate(() => process.exit(0)); }};\n{}",
        PAGE.example("js", &server)
    ));
    for (option, shown) in expected {
        for door in ["SSE", "WebSocket"] {
            let of_it = |line: &str| {
                let (door_and_filter, id) = line.rsplit_once(' ')?;
                let filter = door_and_filter.strip_prefix(door)?.trim_start();
                filter.starts_with(option).then(|| id.to_owned())
            };
            let found: Vec<String> = printed.lines().filter_map(of_it).collect();
            assert_eq!(found, shown, "{door} {option}: {printed}");
        }
    }
}

/// What each option of the native door shows, as the page says for the shell.
fn shown_by_option() -> BTreeMap<&'static str, Vec<&'static str>> {
    let option = |what: &str| match what {
        "ids" => Some("doc_ids="),
        "a prefix" => Some("prefix="),
        "a selector" => Some("selector="),
        "conflicts" => Some("conflicts_only="),
        "a filter function" => Some("filter="),
        "a view" => Some("view="),
        _ => None,
    };
    let shown: BTreeMap<_, _> =
        paragraphs().into_iter().filter_map(|(what, ids, _)| Some((option(what)?, ids))).collect();
    assert_eq!(shown.len(), 6);
    shown
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_each_filter_shows_the_same() {
    assert_eq!(PAGE.block("```rust example"), include_str!("embedded.rs"));
    let mut server = Server::start();
    run_shell(&PAGE.example("sh", &server));
    server.stop();
    let engine = Engine::start_with(options(server.data_dir(), &binary())).expect("an engine");
    let shop = engine.database("shop").expect("a name");
    let expected = ["ids", "a prefix", "a selector", "conflicts", "a filter function", "a view"];
    for (filter, expected) in filters(&shop).await.expect("filters").into_iter().zip(expected) {
        let paragraph = paragraphs().into_iter().find(|(what, ..)| *what == expected).expect("a paragraph");
        assert_eq!(shown(&shop, filter).await.expect("a feed"), paragraph.1, "{expected}");
    }
    engine.shutdown().await.expect("an orderly end");
}

/// Without a worker, what needs one is refused and says why; the rest goes on.
#[tokio::test(flavor = "multi_thread")]
async fn embedded_without_a_worker_functions_are_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = Engine::start(folder.path()).expect("an engine");
    let shop = engine.create_database("shop").await.expect("a database");
    let functions = r#"{"validate_doc_update": "() => {}", "views": {"v": {"map": "emit"}}}"#;
    let design = shop.put("_design/app", functions).await.expect("a design document");
    let no_workers = "functions in design documents cannot be run here: no worker command is set";
    assert_eq!(shop.view_function("app", "v").await.expect_err("no worker").to_string(), no_workers);
    assert_eq!(shop.put("a", "{}").await.expect_err("no worker").to_string(), no_workers);
    shop.delete("_design/app", design.rev).await.expect("it goes");
    shop.put("a", "{}").await.expect("nothing validates it");
    engine.shutdown().await.expect("an orderly end");
}
