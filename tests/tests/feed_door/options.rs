//! The options, from the query and from a POST body.

use serde_json::json;

use super::{caught_up, end, fresh, lines, live, open, write};
use seqtide_tests::http::escaped;
use seqtide_tests::sse::behind_retry;
use seqtide_tests::words::beating;

#[tokio::test(flavor = "multi_thread")]
async fn since_is_exclusive_and_takes_either_form() {
    let (_server, database) = fresh().await;
    let rows = write(&database, &["a", "b", "c"]).await;
    let stamp = format!("{:018x}00000000", 2);
    for since in ["2", stamp.as_str()] {
        let found = lines(&database, &format!("live=false&since={since}")).await;
        assert_eq!(found, [rows[2].clone(), caught_up(3), end(3, "caught-up")], "since={since}");
    }
    assert_eq!(lines(&database, "live=false&since=now").await, [caught_up(3), end(3, "caught-up")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn last_event_id_continues_where_a_browser_was() {
    let (_server, database) = fresh().await;
    let rows = write(&database, &["a", "b", "c"]).await;
    for query in ["live=false", "live=false&since=0", "live=false&last-event-id=1"] {
        let request = database.get(&format!("/_feed?{query}")).header("accept", "text/event-stream");
        let answer = request.header("last-event-id", "2").expect(200).await;
        let opening = format!("event: opened\ndata: {}\nid: 2\n\n", open(2, 3));
        let first = format!("{opening}data: {}\nid: 3\n\nevent: caught-up\n", rows[2]);
        assert!(behind_retry(answer.text()).starts_with(&first), "{query}: {:?}", answer.text());
    }
    let changes = "/db/_changes?feed=eventsource";
    for path in ["/db/_feed?live=false", "/_feed?live=false", "/_feed/many?subscriptions=[]", changes] {
        database.api.get(path).header("last-event-id", "é").expect(400).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limit_counts_rows_shown_and_ends_the_feed() {
    let (_server, database) = fresh().await;
    let rows = write(&database, &["x1", "a", "x2", "b", "x3"]).await;
    let found = lines(&database, "since=0&limit=2&prefix=x").await;
    assert_eq!(found, [rows[0].clone(), rows[2].clone(), end(3, "limit")]);
    // It was said to be no number.
    let found = lines(&database, &format!("since=3&live=false&limit={}0", u64::MAX)).await;
    assert_eq!(found, [rows[3].clone(), rows[4].clone(), caught_up(5), end(5, "caught-up")]);
    let feed = live(&database, "limit=1").await;
    let row = write(&database, &["c"]).await;
    let expected = format!("{}\n{}\n{}\n{}\n", open(5, 5), caught_up(5), row[0], end(6, "limit"));
    assert_eq!(feed.to_end().await.text(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn until_ends_the_feed_at_a_place_and_waits_for_one_that_lies_ahead() {
    let (_server, database) = fresh().await;
    let rows = write(&database, &["a", "b", "c"]).await;
    for live in ["true", "false"] {
        let found = lines(&database, &format!("since=0&until=2&live={live}")).await;
        assert_eq!(found, [rows[0].clone(), rows[1].clone(), end(2, "until")], "live={live}");
        assert_eq!(lines(&database, &format!("since=2&until=2&live={live}")).await, [end(2, "until")]);
        assert_eq!(lines(&database, &format!("since=3&until=1&live={live}")).await, [end(3, "until")]);
    }
    let found = lines(&database, "since=2&until=9&live=false").await;
    assert_eq!(found, [rows[2].clone(), caught_up(3), end(3, "caught-up")], "it was not to wait");
    let ahead = live(&database, "since=2&until=5").await;
    // Nobody is woken for what does not concern them, but the place comes all the same.
    let filtered = live(&database, "since=2&until=5&prefix=none&heartbeat=600000").await;
    let stamped = live(&database, &format!("since=2&until={:018x}00000000", 5)).await;
    let more = write(&database, &["d", "e", "f"]).await;
    let expected = [&open(2, 3), &rows[2], &caught_up(3), &more[0], &more[1], &end(5, "until")];
    for feed in [ahead, stamped] {
        assert_eq!(feed.to_end().await.text().lines().collect::<Vec<_>>(), expected);
    }
    let expected = [&beating(2, 3, 600_000), &caught_up(3), &end(5, "until")];
    assert_eq!(filtered.to_end().await.text().lines().collect::<Vec<_>>(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn doc_ids_and_prefix_choose_documents() {
    let (_server, database) = fresh().await;
    let rows = write(&database, &["user/1", "user/2", "order/1", "users"]).await;
    let ids = escaped(&json!(["order/1", "nope", "user/2"]).to_string());
    let found = lines(&database, &format!("since=0&live=false&doc_ids={ids}")).await;
    assert_eq!(found, [rows[1].clone(), rows[2].clone(), caught_up(4), end(4, "caught-up")]);
    let found = lines(&database, &format!("since=0&live=false&prefix={}", escaped("user/"))).await;
    assert_eq!(found, [rows[0].clone(), rows[1].clone(), caught_up(4), end(4, "caught-up")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn live_filters_wake_for_their_documents_only() {
    let (_server, database) = fresh().await;
    let mut by_prefix = live(&database, "prefix=x").await;
    let mut by_id = live(&database, "doc_ids=%5B%22x2%22%5D").await;
    let rows = write(&database, &["a", "x1", "b", "x2"]).await;
    let text = by_prefix.until(|text| text.matches('\n').count() >= 4).await;
    assert_eq!(text, format!("{}\n{}\n{}\n{}\n", open(0, 0), caught_up(0), rows[1], rows[3]));
    let text = by_id.until(|text| text.matches('\n').count() >= 3).await;
    assert_eq!(text, format!("{}\n{}\n{}\n", open(0, 0), caught_up(0), rows[3]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_body_carries_the_same_options() {
    let (_server, database) = fresh().await;
    let rows = write(&database, &["a", "b", "c"]).await;
    for (body, heartbeat) in [
        (json!({ "since": 1, "live": false, "doc_ids": ["a", "c"] }), 30_000),
        (json!({ "since": "1", "live": false, "doc_ids": ["c"], "heartbeat": 1000, "style": "main_only" }), 1000),
    ] {
        let answer = database.post("/_feed").json(&body).expect(200).await;
        let opening = beating(1, 3, heartbeat);
        let expected = format!("{opening}\n{}\n{}\n{}\n", rows[2], caught_up(3), end(3, "caught-up"));
        assert_eq!(answer.text(), expected, "{body}");
    }
    let limited = json!({ "since": 0, "limit": 1, "include_docs": true });
    let answer = database.post("/_feed").json(&limited).expect(200).await;
    assert!(answer.text().contains("\"doc\":{\"_id\":\"a\""), "{:?}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_option_is_named_with_the_known_ones() {
    let (_server, database) = fresh().await;
    for option in ["bogus", "feed", "timeout", "descending", "fields", "seq_interval"] {
        let by_query = database.get(&format!("/_feed?live=false&{option}=true")).send().await;
        let by_body = database.post("/_feed").json(&json!({ "live": false, option: true })).send().await;
        for answer in [by_query, by_body] {
            answer.assert_status(400);
            assert_eq!(answer.json()["error"], json!("bad_request"));
            let reason = answer.json()["reason"].as_str().expect("a reason").to_owned();
            for name in [option, "since", "limit", "live", "style", "include_docs", "heartbeat", "doc_ids", "prefix"] {
                assert!(reason.contains(name), "{reason:?} should name {name}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_value_names_its_option() {
    let (_server, database) = fresh().await;
    for (option, value) in [
        ("since", "abc"),
        ("since", ""),
        ("until", "abc"),
        ("until", ""),
        ("until", "now"),
        ("until", "-1"),
        ("limit", "x"),
        ("limit", "-1"),
        ("live", "maybe"),
        ("style", "zzz"),
        ("include_docs", "yes"),
        ("conflicts", "1"),
        ("heartbeat", "0"),
        ("heartbeat", "x"),
        ("heartbeat", "false"),
        ("doc_ids", "5"),
        ("doc_ids", "%5B1%5D"),
        ("doc_ids", "%5B"),
        ("on_rewind", "maybe"),
    ] {
        let answer = database.get(&format!("/_feed?{option}={value}")).send().await;
        answer.assert_status(400);
        let error = answer.json();
        assert!(error["reason"].as_str().is_some_and(|reason| reason.contains(option)), "{option}={value}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_bodies_methods_and_databases_are_refused() {
    let (server, database) = fresh().await;
    for body in ["{", "[1]", "5"] {
        let request = database.post("/_feed").header("content-type", "application/json").body(body);
        request.send().await.assert_status(400);
    }
    let answer = database.request("PUT", "/_feed").send().await;
    answer.assert_status(405);
    let allow = answer.header("allow").unwrap_or_default();
    assert!(allow.contains("GET") && allow.contains("POST"), "{allow:?}");
    let nope = seqtide_tests::Database::at(&server, "nope");
    for accept in ["text/event-stream", "*/*"] {
        let answer = nope.get("/_feed").header("accept", accept).send().await;
        answer.assert_error(404, "not_found", "Database does not exist.");
    }
}
