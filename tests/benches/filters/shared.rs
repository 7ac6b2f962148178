//! A thousand subscribers with one selector: what a change costs them all is one evaluation.

use seqtide_bench::connection::Connection;
use seqtide_tests::bench::current_thread;
use seqtide_tests::bench::figure::{Figure, Required};
use seqtide_tests::{Api, Server};
use serde_json::json;

use crate::subscribers::Subscribers;

const SUBSCRIBERS: usize = 1_000;
const WRITES: usize = 200;

pub fn measure_all() -> Vec<Figure> {
    eprintln!("shared: {SUBSCRIBERS} subscribers with equal selectors, {WRITES} writes");
    let server = Server::start();
    let runtime = current_thread();
    let mut writer = runtime.block_on(Connection::open(server.address())).expect("a connection");
    runtime.block_on(writer.request("PUT", "/db", "")).expect("an answer");
    // A range: nothing is found by an index.
    let subscribers = Subscribers::open(&server, SUBSCRIBERS, |_| json!({ "total": { "$gt": 0 } }));
    let api = Api::new(&server);
    let evaluated = || runtime.block_on(api.metric("seqtide_filter_evaluations_total")).expect("it is there");
    let before = evaluated();
    for number in 0..WRITES {
        // Every other one is for nobody.
        let total = number % 2;
        let body = json!({ "total": total, "pad": "x".repeat(100) }).to_string();
        runtime.block_on(writer.request("PUT", &format!("/db/d{number}"), &body)).expect("an answer");
        for _ in 0..total * SUBSCRIBERS {
            assert_eq!(subscribers.next().id, format!("d{number}"));
        }
    }
    subscribers.assert_no_more();
    let value = (evaluated() - before) as f64 / WRITES as f64;
    assert!(value > 0.0, "rows were shown that nothing looked at");
    let what = format!("shared: {SUBSCRIBERS} equal selectors");
    vec![Figure { what, value, unit: "evaluations a change", required: Required::AtMost(1.0) }]
}
