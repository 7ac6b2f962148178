//! What a server answers is looked at: rows of a backfill, and the head of a feed.

use std::time::Duration;

use seqtide_bench::Error;
use seqtide_bench::backfill::{self, Backfill, Filled};
use seqtide_bench::current_thread;
use seqtide_bench::feed::Feed;
use seqtide_bench::service::Transport;

use crate::fake::{Fake, Then, created};

const DOCUMENTS: usize = 10;

/// The rows of these sequences.
fn rows<S: std::fmt::Display>(seqs: &[S]) -> String {
    let rows: Vec<String> = seqs.iter().map(|seq| format!(r#"{{"seq":{seq},"id":"x","changes":[]}}"#)).collect();
    format!("{{\"results\":[\n{}\n],\"last_seq\":10,\"pending\":0}}\n", rows.join(",\n"))
}

/// Reads from a server that takes all documents and gives these changes.
fn backfill(then: Then, changes: impl Fn() -> Option<String> + Send + Sync + 'static) -> Result<Filled, Error> {
    let runtime = current_thread().expect("a runtime");
    runtime.block_on(async {
        let answer = move |request: &str| match request.starts_with("GET") {
            true => changes(),
            false => created(&r#"{"rev":"1-x"}"#.repeat(DOCUMENTS)),
        };
        let fake = Fake::serve(then, answer).await;
        backfill::run(fake.address, "db", &Backfill { documents: DOCUMENTS as u64, rounds: 1 }).await
    })
}

/// Lost, more than there are, and out of order, without and with documents alike.
fn faults(filled: &Filled) -> [u64; 3] {
    let [changes, with_docs] =
        [filled.changes, filled.with_docs].map(|reads| [reads.lost, reads.surplus, reads.misordered]);
    assert_eq!(changes, with_docs);
    assert_eq!(filled.fault().is_none(), changes == [0; 3]);
    changes
}

#[test]
fn rows_that_are_lost_doubled_and_out_of_order_are_found() {
    for (seqs, found) in [
        (&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10][..], [0, 0, 0]),
        (&[1, 2, 3, 4, 5, 6, 8, 9, 10], [1, 0, 0]),
        (&[1, 2, 3, 4, 5, 6, 7, 7, 8, 9, 10], [0, 1, 1]),
        (&[1, 2, 3, 4, 5, 5, 7, 8, 9, 10], [0, 0, 1]),
        (&[1, 2, 3, 5, 4, 6, 7, 8, 9, 10], [0, 0, 1]),
    ] {
        let filled = backfill(Then::Open, move || created(&rows(seqs))).expect("a reading");
        assert_eq!(faults(&filled), found, "{seqs:?}");
    }
}

#[test]
fn rows_whose_sequences_are_no_numbers_are_counted_alone() {
    let seqs: Vec<String> = (1..=DOCUMENTS).rev().map(|seq| format!(r#""{seq}-g1AAAA""#)).collect();
    let filled = backfill(Then::Open, move || created(&rows(&seqs))).expect("a reading");
    assert_eq!(faults(&filled), [0, 0, 0]);
}

#[test]
fn all_bytes_of_an_answer_are_counted_however_it_ends() {
    let seqs: Vec<usize> = (1..=DOCUMENTS).collect();
    let body = rows(&seqs);
    let until_close = Some(format!("HTTP/1.1 200 OK\r\n\r\n{body}"));
    for (then, answer) in [(Then::Open, created(&body)), (Then::Close, until_close)] {
        let filled = backfill(then, move || answer.clone()).expect("a reading");
        assert_eq!(faults(&filled), [0, 0, 0]);
        assert_eq!([filled.changes, filled.with_docs].map(|reads| reads.median.bytes), [body.len() as u64; 2]);
    }
}

#[test]
fn a_reading_of_which_nothing_comes_ends() {
    let changes = || {
        // Time passes at once from here on, wherever somebody waits for it alone.
        tokio::time::pause();
        None
    };
    let error = backfill(Then::Open, changes).map(drop).expect_err("nothing to measure").to_string();
    assert!(error.starts_with("GET /db/_changes?since=0: ") && error.ends_with(" longer than 30 s"), "{error}");
}

#[test]
fn filling_ends_where_nothing_is_answered() {
    let runtime = current_thread().expect("a runtime");
    let error = runtime.block_on(async {
        let silent = |_: &str| {
            tokio::time::pause();
            None
        };
        let fake = Fake::serve(Then::Open, silent).await;
        backfill::run(fake.address, "db", &Backfill { documents: 10, rounds: 1 }).await
    });
    let error = error.map(drop).expect_err("nothing to read").to_string();
    assert_eq!(error, "the next answer took longer than 30 s");
}

#[test]
fn a_websocket_is_made_by_101_alone_and_nothing_else_is() {
    let runtime = current_thread().expect("a runtime");
    for (transport, status, said) in [
        (Transport::Websocket, 101, None),
        (Transport::Websocket, 200, Some("200, where 101, a WebSocket,")),
        (Transport::Websocket, 403, Some("403")),
        (Transport::Sse, 200, None),
        (Transport::Lines, 101, Some("101, where a success without a WebSocket")),
    ] {
        let opened = runtime.block_on(async {
            let answer = move |_: &str| Some(format!("HTTP/1.1 {status} X\r\n\r\n"));
            let fake = Fake::serve(Then::Open, answer).await;
            tokio::time::timeout(Duration::from_secs(30), Feed::send(fake.address, &transport.request("/db/_feed")))
                .await
        });
        let refused = opened.expect("an answer").err().map(|why| why.to_string());
        match (&refused, said) {
            (None, None) => {}
            (Some(refused), Some(said)) if refused.contains(&format!("answered with {said}")) => {}
            _ => panic!("{transport:?}, {status}: {refused:?}"),
        }
    }
}
