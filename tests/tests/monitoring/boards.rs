//! The Grafana dashboard: its form, and each panel's query against a Prometheus that scrapes a server at work.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use seqtide_tests::prometheus::Prometheus;
use seqtide_tests::script::run_alone;
use seqtide_tests::{Database, Server};
use serde_json::{Value, json};
use tokio::time::sleep;

/// How long all panels may take to have data.
const DEADLINE: Duration = Duration::from_secs(90);

fn board() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboards/grafana/seqtide.json");
    serde_json::from_slice(&fs::read(file).expect("the dashboard")).expect("JSON")
}

fn panels(board: &Value) -> Vec<&Value> {
    let panels = board["panels"].as_array().expect("panels");
    panels.iter().filter(|panel| panel["type"] != "row").collect()
}

#[test]
fn the_board_imports_anywhere() {
    let board = board();
    // Grafana gives what is imported an id of its own; the uid keeps links good.
    assert_eq!((&board["id"], &board["uid"]), (&Value::Null, &json!("seqtide")));
    let variables = board["templating"]["list"].as_array().expect("variables");
    let names: Vec<_> = variables.iter().filter_map(|variable| variable["name"].as_str()).collect();
    assert_eq!(names, ["datasource", "job", "instance"]);
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in board["panels"].as_array().expect("panels") {
        assert!(ids.insert(panel["id"].as_u64()), "the id of {} is another panel's", panel["title"]);
        let place = |member: &str| panel["gridPos"][member].as_u64().expect("a place");
        assert!(place("x") + place("w") <= 24, "{} is wider than the board", panel["title"]);
        for y in place("y")..place("y") + place("h") {
            for x in place("x")..place("x") + place("w") {
                assert!(taken.insert((x, y)), "{} lies over another panel", panel["title"]);
            }
        }
    }
    for panel in panels(&board) {
        let sources = panel["targets"].as_array().expect("targets").iter().map(|target| &target["datasource"]);
        for source in sources.chain([&panel["datasource"]]) {
            assert_eq!(source["uid"], "${datasource}", "{} knows of one Prometheus alone", panel["title"]);
        }
    }
}

#[test]
fn the_board_is_what_grafana_describes() {
    run_alone("grafana/board.mjs");
}

#[tokio::test]
async fn every_panel_has_data_of_a_server_at_work() {
    let server = Server::start();
    let prometheus = Prometheus::start(&server);
    let database = Database::create(&server, "db").await;
    // Lag is that of open feeds.
    let _open = database.get("/_feed?since=0").open().await;
    let board = board();
    let mut missing: Vec<(String, String)> = Vec::new();
    for panel in panels(&board) {
        for target in panel["targets"].as_array().expect("targets") {
            let query = target["expr"].as_str().expect("a query");
            let query = query.replace("$__rate_interval", "1m").replace("$job", "seqtide").replace("$instance", ".+");
            missing.push((panel["title"].to_string(), query));
        }
    }
    assert!(missing.len() > 30, "{missing:?}");
    let until = Instant::now() + DEADLINE;
    for round in 0.. {
        // Written, and read by a feed: what rates are made of goes on.
        database.post("/_bulk_docs").json(&json!({ "docs": [{ "round": round }] })).expect(201).await;
        database.get("/_feed?live=false&since=0&selector=%7B%22round%22%3A1%7D").expect(200).await;
        let mut left = Vec::new();
        for (title, query) in missing {
            if !prometheus.query(&query).await.iter().any(|value| value.is_finite()) {
                left.push((title, query));
            }
        }
        missing = left;
        if missing.is_empty() {
            break;
        }
        assert!(Instant::now() < until, "no data for {missing:#?}");
        sleep(Duration::from_millis(300)).await;
    }
    let up = prometheus.query("up{job=\"seqtide\"}").await;
    assert_eq!(up, [1.0]);
    let firing = prometheus.query("ALERTS{alertstate=\"firing\"}").await;
    assert!(firing.is_empty(), "a healthy server has {} alerts", firing.len());
    let written = prometheus.query("seqtide_rows_written_total").await;
    assert!(written[0] >= 1.0, "{written:?}");
}
