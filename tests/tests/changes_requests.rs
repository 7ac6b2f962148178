//! Requests to `_changes` whose bytes, timing or headers matter more than their rows: R01 to R20 of the vectors'
//! second table (named in each test).

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use seqtide_tests::changes_text::{continuous, eventsource, longpoll_that_waited, normal};
use seqtide_tests::vectors::{database_with_history, vectors};
use seqtide_tests::{Database, Server};

const H1_B: &str = r#"{"seq":2,"id":"b","changes":[{"rev":"1-b"}]}"#;
const H1_A: &str = r#"{"seq":3,"id":"a","changes":[{"rev":"2-aa"}]}"#;
const H2_B: &str = r#"{"seq":3,"id":"b","changes":[{"rev":"1-b"}]}"#;
const H2_A: &str = r#"{"seq":4,"id":"a","changes":[{"rev":"2-aa"}]}"#;

/// A server with one history in one database.
async fn with_history(name: &str) -> (Server, Database) {
    let server = Server::start();
    let database = database_with_history(&server, &vectors(), name).await;
    (server, database)
}

/// The body of a GET, and how long it took.
async fn timed(database: &Database, query: &str) -> (String, Duration) {
    let start = Instant::now();
    let answer = database.get(&format!("/_changes?{query}")).expect(200).await;
    (answer.text().to_owned(), start.elapsed())
}

async fn body(database: &Database, query: &str) -> String {
    timed(database, query).await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_database_has_the_empty_body() {
    let (_server, database) = with_history("H13").await;
    assert_eq!(body(&database, "").await, "{\"results\":[\n\n],\n\"last_seq\":0,\"pending\":0}\n\n", "R01");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_joined_by_comma_and_crlf() {
    let (_server, database) = with_history("H2").await;
    let expected = format!("{{\"results\":[\n{H2_B},\r\n{H2_A}\n],\n\"last_seq\":4,\"pending\":0}}\n\n");
    assert_eq!(body(&database, "").await, expected, "R02");
}

#[tokio::test(flavor = "multi_thread")]
async fn continuous_ends_by_timeout_or_limit() {
    let (_server, database) = with_history("H1").await;
    let all = continuous(&[H1_B, H1_A], false, 3, 0);
    assert_eq!(body(&database, "feed=continuous&timeout=0").await, all, "R03");
    assert_eq!(body(&database, "feed=continuous&limit=0").await, "{\"last_seq\":0,\"pending\":2}\n\n", "R04");
    let descending = continuous(&[H1_A, H1_B], false, 2, 0);
    let (text, took) = timed(&database, "feed=continuous&descending=true&timeout=60000").await;
    assert_eq!(text, descending, "R10");
    assert!(took < Duration::from_secs(20), "R10: a descending feed ends at once, not after its timeout");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_feeds_wait_for_their_timeout() {
    let (_server, database) = with_history("H13").await;
    let (text, took) = timed(&database, "feed=continuous&timeout=700").await;
    assert_eq!(text, continuous(&[], true, 0, 0), "R05");
    assert!(took >= Duration::from_millis(700), "R05 took {took:?}");
    let (text, took) = timed(&database, "feed=eventsource&timeout=600").await;
    assert_eq!(text, eventsource(&[], true), "R07");
    assert!(took >= Duration::from_millis(600), "R07 took {took:?}");
}

/// As in CouchDB, where a feed is told of every write and asks its filter then.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_does_not_pass_a_feed_s_filter_puts_off_its_timeout() {
    let (_server, database) = with_history("H13").await;
    let timeout = Duration::from_secs(1);
    let bodies = [
        ("_doc_ids", json!({ "doc_ids": ["another"] })),
        ("_selector", json!({ "selector": { "owner": "another" } })),
        ("_design", json!({})),
    ];
    let feeds = join_all(bodies.map(async |(filter, body)| {
        let query = format!("/_changes?feed=continuous&since=now&timeout={}&filter={filter}", timeout.as_millis());
        let mut feed = database.post(&query).json(&body).open().await;
        feed.until(|text| text == "\n").await;
        (filter, feed)
    }));
    let feeds = feeds.await;
    let opened = Instant::now();
    let mut written = Vec::new();
    while opened.elapsed() < timeout / 2 {
        let asked = Instant::now();
        database.put(&format!("d{}", written.len()), &json!({})).await;
        written.push((asked, Instant::now()));
    }
    let ended = feeds.into_iter().map(async |(filter, feed)| {
        let answer = feed.to_end().await;
        let ended = Instant::now();
        let last = written.iter().rev().find(|(_, answered)| *answered < ended);
        let took = last.map(|(asked, _)| ended - *asked);
        assert!(took >= Some(timeout), "{filter}: it ended {took:?} after a write: {:?}", answer.text());
    });
    join_all(ended).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn eventsource_ends_after_its_limit() {
    let (_server, database) = with_history("H1").await;
    assert_eq!(body(&database, "feed=eventsource&limit=1").await, eventsource(&[(H1_B, "2")], false), "R06");
}

#[tokio::test(flavor = "multi_thread")]
async fn longpoll_with_rows_is_the_normal_answer_and_limit_0_waits() {
    let (_server, database) = with_history("H1").await;
    let (text, took) = timed(&database, "feed=longpoll").await;
    assert_eq!(text, normal(&[H1_B, H1_A], 3, 0), "R08");
    assert!(took < Duration::from_secs(20), "R08: rows come at once, not after the timeout");
    let (text, took) = timed(&database, "feed=longpoll&limit=0&timeout=500").await;
    assert_eq!(text, longpoll_that_waited(&[], 0, 2), "R09");
    assert!(took >= Duration::from_millis(500), "R09 took {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_the_database_ends_its_feeds() {
    let (_server, database) = with_history("H2").await;
    let mut feed = database.get("/_changes?feed=continuous&since=4").open().await;
    assert_eq!(feed.until(|text| !text.is_empty()).await, "\n", "R11");
    database.request("DELETE", "").expect(200).await;
    assert_eq!(feed.to_end().await.text(), continuous(&[], true, 4, 0), "R11");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_tokens_stay_good_in_a_recreated_database() {
    let (_server, database) = with_history("H2").await;
    database.request("DELETE", "").expect(200).await;
    database.request("PUT", "").expect(201).await;
    assert_eq!(database.changes("since=0").await["results"], json!([]), "R12: the new database is empty");
    let written = database.put("new", &json!({})).await;
    let row = json!({ "seq": written.seq(), "id": "new", "changes": [{ "rev": written.rev() }] });
    for query in ["since=4", "since=0"] {
        let answer = database.changes(query).await;
        assert_eq!(answer["results"], json!([row]), "R12 with {query}");
    }
    assert!(written.seq() > 4, "R12: the new one counts on above the old one");
}

#[tokio::test(flavor = "multi_thread")]
async fn etag_answers_304_until_something_changes() {
    let (_server, database) = with_history("H2").await;
    let etag = database.get("/_changes").expect(200).await.header("etag").expect("R13: an ETag").to_owned();
    let again = database.get("/_changes").header("if-none-match", &etag).expect(304).await;
    assert_eq!(again.text(), "", "R13");
    let other_query = database.get("/_changes?limit=1").header("if-none-match", &etag).send().await;
    assert_eq!(other_query.status, 200, "another query is another answer");
    database.put("c", &json!({})).await;
    database.get("/_changes").header("if-none-match", &etag).expect(200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_methods_are_refused_with_allow() {
    let (_server, database) = with_history("H2").await;
    for method in ["PUT", "DELETE", "PATCH"] {
        let answer = database.request(method, "/_changes").send().await;
        answer.assert_error(405, "method_not_allowed", "Only GET,POST,HEAD allowed");
        assert_eq!(answer.header("allow"), Some("GET,POST,HEAD"), "R14");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn since_is_a_position_or_a_token_in_either_form() {
    let (_server, database) = with_history("H2").await;
    let after_3 = normal(&[H2_A], 4, 0);
    let stamp = format!("{:02x}{:016x}{:04x}{:04x}", 0, 3, 0, 0);
    for since in ["3", "%223%22", stamp.as_str(), format!("%22{stamp}%22").as_str()] {
        assert_eq!(body(&database, &format!("since={since}")).await, after_3, "since={since}");
    }
    assert_eq!(body(&database, "since=4").await, normal(&[], 4, 0), "R15");
}

#[tokio::test(flavor = "multi_thread")]
async fn option_names_ignore_case_and_the_last_of_a_name_wins() {
    let (_server, database) = with_history("H2").await;
    assert_eq!(body(&database, "LIMIT=1").await, normal(&[H2_B], 3, 1), "R16");
    assert_eq!(body(&database, "since=3&since=0").await, normal(&[H2_B, H2_A], 4, 0), "R17");
    assert_eq!(body(&database, "since=0&last-event-id=3").await, normal(&[H2_A], 4, 0), "R18");
}

#[tokio::test(flavor = "multi_thread")]
async fn last_event_id_header_counts_for_eventsource_only() {
    let (_server, database) = with_history("H2").await;
    for id in ["3", "\"3\""] {
        let request = database.get("/_changes?feed=eventsource&since=0&timeout=1").header("last-event-id", id);
        assert_eq!(request.expect(200).await.text(), eventsource(&[(H2_A, "4")], false), "R19 with {id}");
        let request = database.get("/_changes?feed=normal&since=0").header("last-event-id", id);
        assert_eq!(request.expect(200).await.text(), normal(&[H2_B, H2_A], 4, 0), "R20 with {id}");
    }
    for id in ["0", "\"0\""] {
        let request = database.get("/_changes?feed=eventsource&since=now&timeout=1").header("last-event-id", id);
        let expected = eventsource(&[(H2_B, "3"), (H2_A, "4")], false);
        assert_eq!(request.expect(200).await.text(), expected, "{id} is the start");
    }
    // What a client sends whose last row had no sequence.
    let request = database.get("/_changes?feed=eventsource&since=3&timeout=1").header("last-event-id", "null");
    assert_eq!(request.expect(200).await.text(), eventsource(&[(H2_A, "4")], false));
    // From there on something would be missing.
    let request = database.get("/_changes?feed=eventsource&since=now&timeout=1").header("last-event-id", "null");
    request.expect(400).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn since_ahead_of_the_database_is_echoed_and_said() {
    let (_server, database) = with_history("H2").await;
    let ahead = database.get("/_changes?since=1337").expect(200).await;
    assert_eq!(ahead.text(), normal(&[], 1337, 0));
    assert_eq!(ahead.header("seqtide-since"), Some("ahead"));
    let at_the_end = database.get("/_changes?since=4").expect(200).await;
    assert_eq!(at_the_end.header("seqtide-since"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn versionstamp_sequences_are_text_of_26_digits() {
    let server = Server::start();
    let database = Database::at(&server, "stamped");
    database.request("PUT", "?seq_format=versionstamp").expect(201).await;
    database.put("a", &json!({})).await;
    database.put("b", &json!({})).await;
    let all = database.changes("").await;
    let seqs: Vec<&str> =
        all["results"].as_array().expect("rows").iter().filter_map(|row| row["seq"].as_str()).collect();
    assert_eq!(seqs, [format!("{:018x}00000000", 1), format!("{:018x}00000000", 2)]);
    assert_eq!(all["last_seq"], json!(seqs[1]));
    let info = database.info().await;
    assert_eq!((&info["update_seq"], &info["props"]["seq_format"]), (&json!(seqs[1]), &json!("versionstamp")));
    for since in [seqs[0], "1"] {
        let rest = database.changes(&format!("since={since}")).await;
        assert_eq!(rest["results"][0]["id"], json!("b"), "since={since}");
    }
    let feed = database.get("/_changes?feed=eventsource&limit=1").expect(200).await;
    assert!(feed.text().ends_with(&format!("\nid: {}\n\n\n", seqs[0])), "an id: has no quotes: {:?}", feed.text());
    let bogus: Value = database.get("/_changes?since=5-foo").expect(400).await.json();
    assert_eq!(bogus["error"], json!("bad_request"));
}

/// A POST with `filter=_selector`.
async fn selected(database: &Database, query: &str, body: &Value) -> String {
    let request = database.post(&format!("/_changes?filter=_selector&{query}")).json(body);
    request.expect(200).await.text().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_with_all_docs_lists_the_leaves_that_pass() {
    let (_server, database) = with_history("H13").await;
    let leaf = |rev: &str, t: u8| json!({ "_id": "d", "_rev": rev, "t": t });
    database.push(&[leaf("1-c", 3), leaf("1-b", 2), leaf("1-a", 2)]).await;
    for (t, style, expected) in [
        (2, "all_docs", Some("{\"rev\":\"1-b\"},{\"rev\":\"1-a\"}")),
        (3, "all_docs", Some("{\"rev\":\"1-c\"}")),
        (3, "main_only", Some("{\"rev\":\"1-c\"}")),
        (2, "main_only", None),
        (9, "all_docs", None),
    ] {
        let row = expected.map(|revs| format!("{{\"seq\":1,\"id\":\"d\",\"changes\":[{revs}]}}"));
        let rows: Vec<&str> = row.iter().map(String::as_str).collect();
        let body = json!({ "selector": { "t": t } });
        assert_eq!(selected(&database, &format!("style={style}"), &body).await, normal(&rows, 1, 0), "{t} {style}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_that_rejects_all_moves_last_seq_on_while_it_waits() {
    let (_server, database) = with_history("H13").await;
    let body = json!({ "selector": { "t": 1 } });
    let request = database.post("/_changes?filter=_selector&feed=longpoll&timeout=3000").json(&body);
    let waiting = request.open().await;
    database.put("a", &json!({ "t": 2 })).await;
    assert_eq!(waiting.to_end().await.text(), longpoll_that_waited(&[], 1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_compares_every_digit_and_the_order_of_members() {
    let (_server, database) = with_history("H13").await;
    let body = "{\"n\":12345678901234567890123,\"o\":{\"z\":1,\"a\":2}}";
    database.request("PUT", "/d").header("content-type", "application/json").body(body).expect(201).await;
    for (selector, found) in [
        ("{\"n\":12345678901234567890123}", true),
        ("{\"n\":12345678901234567890124}", false),
        ("{\"o\":{\"$eq\":{\"z\":1,\"a\":2}}}", true),
        ("{\"o\":{\"$eq\":{\"a\":2,\"z\":1}}}", false),
    ] {
        let body = format!("{{\"selector\":{selector}}}");
        let request = database.post("/_changes?filter=_selector").header("content-type", "application/json");
        let answer = request.body(body).expect(200).await;
        assert_eq!(answer.json()["results"].as_array().expect("rows").len(), usize::from(found), "{selector}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_in_a_selector_are_400() {
    let (_server, database) = with_history("H13").await;
    let no_post = "Selector must be specified in POST payload";
    database.get("/_changes?filter=_selector").send().await.assert_error(400, "bad_request", no_post);
    let no_object = "Selector error: expected a JSON object";
    for (body, reason) in [
        (json!({}), no_object),
        (json!({ "selector": [] }), no_object),
        (json!({ "selector": { "a": { "$bogus": 1 } } }), "Invalid operator: $bogus"),
        (json!({ "selector": {}, "fields": "a" }), "Selector error: fields must be JSON array"),
    ] {
        let answer = database.post("/_changes?filter=_selector").json(&body).send().await;
        answer.assert_error(400, "bad_request", reason);
    }
}
