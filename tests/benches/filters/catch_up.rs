//! Catching up on a long past: by an index, by looking at every document, and without a filter.

use std::path::Path;
use std::time::{Duration, Instant};

use seqtide::storage::json::{ScanLimits, scan_document};
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::{Edit, Write};
use seqtide::{
    Database, Engine, FeedEvent, FeedIndexState, FeedKind, FeedMode, FeedOptions, Filter, IndexFields, Portion,
    RowShape, Selector, Since,
};
use seqtide_tests::Server;
use seqtide_tests::bench::figure::{Figure, Required, quantile};
use serde_json::json;
use tokio::runtime;

const DOCUMENTS: usize = 1_000_000;
const MATCHES: usize = 100;
/// Rounds that count, after one that does not.
const ROUNDS: usize = 7;
const COMMIT: usize = 10_000;

/// `owner` is indexed; `tag` says the same and is not.
const INDEXED: &str = r#"{"owner":"wanted"}"#;
const NOT_INDEXED: &str = r#"{"tag":"wanted"}"#;

/// Longest catch-up by the index, in milliseconds.
const INDEXED_MS_MAX: f64 = 10.0;
/// Least rate of a scan with a selector, as a share of the rate without a filter and with documents.
const SCAN_RATIO_MIN: f64 = 0.6;

/// Measures in this process, then over HTTP.
pub fn measure_all() -> Vec<Figure> {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let mut figures = runtime.block_on(async {
        fill(folder.path()).await;
        embedded(folder.path()).await
    });
    figures.extend(runtime.block_on(over_http(folder.path())));
    figures
}

/// Writes the documents, then closes the database: nothing of it is left in memory but what the system keeps.
async fn fill(folder: &Path) {
    eprintln!("writing {DOCUMENTS} documents");
    let engine = Engine::start(folder).expect("an engine");
    let database = engine.create_database("db").await.expect("a database");
    for first in (0..DOCUMENTS).step_by(COMMIT) {
        database.write((first..first + COMMIT).map(document).collect()).await.expect("a commit");
    }
    engine.shutdown().await.expect("an end");
}

/// About 150 bytes.
fn document(number: usize) -> Write {
    let wanted = number % (DOCUMENTS / MATCHES) == DOCUMENTS / MATCHES / 2;
    let owner = if wanted { "wanted".to_owned() } else { format!("user-{:05}", number % 20_011) };
    let body = json!({
        "type": if number.is_multiple_of(3) { "order" } else { "invoice" },
        "owner": owner, "tag": owner, "total": number % 1_000, "number": number,
        "note": "x".repeat(45),
    });
    let body = scan_document(body.to_string().as_bytes(), &ScanLimits::default()).expect("a document").body;
    let id = DocId::parse(&format!("document-{number:07}")).expect("an id");
    Write::Edit(Edit::interactive(id, None, false, body))
}

/// Waits until the index is made; gives how long that took.
async fn index(database: &Database) -> Duration {
    let start = Instant::now();
    let fields = IndexFields::parse(["owner", "type"]).expect("fields");
    database.set_feed_index(&fields).await.expect("an index");
    while database.feed_index().await.expect("an index").state != FeedIndexState::Ready {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    start.elapsed()
}

async fn embedded(folder: &Path) -> Vec<Figure> {
    let engine = Engine::start(folder).expect("an engine");
    let database = engine.database("db").expect("a database");
    eprintln!("making the index");
    let made = index(&database).await;
    engine.shutdown().await.expect("an end");
    drop(engine);
    let engine = Engine::start(folder).expect("an engine");
    let database = engine.database("db").expect("a database");
    eprintln!("in this process: {} rounds", ROUNDS + 1);
    let (mut indexed, mut scanned, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let filters = [Some(INDEXED), Some(NOT_INDEXED), None];
        let mut times = [Duration::ZERO; 3];
        for turn in 0..filters.len() {
            let which = (round + turn) % filters.len();
            times[which] = catch_up(&database, filters[which]).await;
        }
        if round > 0 {
            indexed.push(times[0]);
            scanned.push(times[1]);
            plain.push(times[2]);
        }
    }
    engine.shutdown().await.expect("an end");
    let making =
        figure("catch-up: making the index of two fields".to_owned(), vec![made.as_secs_f64()], "s", Required::Nothing);
    std::iter::once(making).chain(figures("in this process", &indexed, &scanned, &plain)).collect()
}

/// Reads a feed from the beginning to its end.
async fn catch_up(database: &Database, selector: Option<&str>) -> Duration {
    let filter = selector.map_or(Filter::ALL, |text| Filter::selector(Selector::from_json(text).expect("a selector")));
    let shape = RowShape { doc: true, ..RowShape::default() };
    let (since, mode) = (Since::START, FeedMode::Once);
    let options = FeedOptions { since, mode, shape, filter, ..FeedOptions::live(FeedKind::Embedded) };
    let start = Instant::now();
    let mut feed = database.feed(options).await.expect("a feed");
    let mut rows = 0;
    while let Some(event) = feed.next().await.expect("a feed that can be read") {
        if let FeedEvent::Change(Portion::Rows(page)) = event {
            rows += page.len();
        }
    }
    let took = start.elapsed();
    assert_eq!(rows, if selector.is_some() { MATCHES } else { DOCUMENTS });
    took
}

async fn over_http(folder: &Path) -> Vec<Figure> {
    let server = Server::launch().data_dir(folder).start();
    let client = reqwest::Client::new();
    eprintln!("over HTTP: {} rounds", ROUNDS + 1);
    let (mut indexed, mut scanned, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let selectors = [Some(INDEXED), Some(NOT_INDEXED), None];
        let mut times = [Duration::ZERO; 3];
        for turn in 0..selectors.len() {
            let which = (round + turn) % selectors.len();
            times[which] = changes(&client, &server, selectors[which]).await;
        }
        if round > 0 {
            indexed.push(times[0]);
            scanned.push(times[1]);
            plain.push(times[2]);
        }
    }
    figures("over HTTP", &indexed, &scanned, &plain).collect()
}

/// Reads `_changes` from the beginning to its end.
async fn changes(client: &reqwest::Client, server: &Server, selector: Option<&str>) -> Duration {
    let (filter, body) = match selector {
        Some(selector) => ("&filter=_selector", format!("{{\"selector\":{selector}}}")),
        None => ("", "{}".to_owned()),
    };
    let url = format!("{}/db/_changes?include_docs=true{filter}", server.url());
    let start = Instant::now();
    let request = client.post(url).header("content-type", "application/json").body(body);
    let mut answer = request.send().await.expect("an answer").error_for_status().expect("a feed");
    let (mut bytes, mut last) = (0, Vec::new());
    while let Some(piece) = answer.chunk().await.expect("a whole answer") {
        bytes += piece.len();
        last.extend_from_slice(&piece);
        last.drain(..last.len().saturating_sub(100));
    }
    let took = start.elapsed();
    let end = String::from_utf8_lossy(&last);
    assert!(end.contains(&format!("\"last_seq\":{DOCUMENTS}")) && bytes > 100 * MATCHES, "{end}");
    took
}

/// The figures of one way: how long the index takes, how fast the scans are, and what one is to the other.
fn figures(way: &str, indexed: &[Duration], scanned: &[Duration], plain: &[Duration]) -> impl Iterator<Item = Figure> {
    let ms = indexed.iter().map(|took| took.as_secs_f64() * 1e3).collect();
    let rate = |times: &[Duration]| times.iter().map(|took| DOCUMENTS as f64 / took.as_secs_f64() / 1e6).collect();
    let ratios = scanned.iter().zip(plain).map(|(scan, plain)| plain.as_secs_f64() / scan.as_secs_f64()).collect();
    let figure = |what: &str, values, unit, required| figure(format!("catch-up {way}: {what}"), values, unit, required);
    let by_index = format!("{MATCHES} matches by the index");
    [
        figure(&by_index, ms, "ms", Required::AtMost(INDEXED_MS_MAX)),
        figure("scan with a selector", rate(scanned), "M rows/s", Required::Nothing),
        figure("all documents", rate(plain), "M rows/s", Required::Nothing),
        figure("scan over all documents", ratios, "", Required::AtLeast(SCAN_RATIO_MIN)),
    ]
    .into_iter()
}

/// The median of all rounds.
fn figure(what: String, mut values: Vec<f64>, unit: &'static str, required: Required) -> Figure {
    Figure { what, value: quantile(&mut values, 0.5), unit, required }
}
