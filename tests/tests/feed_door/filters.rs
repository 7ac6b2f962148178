//! Selectors and `conflicts_only`, on each form and with the other options.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{caught_up, end, fresh, lines, live, write};
use seqtide_tests::doors::{FeedSocket, feed_url};
use seqtide_tests::http::{Opened, SOON, escaped};
use seqtide_tests::{Database, Server};

/// Documents of type `order` and others, one tombstone among them, and each one's row.
async fn orders() -> (Server, Database, Vec<String>) {
    let (server, database) = fresh().await;
    let mut rows = Vec::new();
    for (id, body) in [
        ("o-1", json!({ "type": "order", "total": 5 })),
        ("c-1", json!({ "type": "customer" })),
        ("o-2", json!({ "type": "order", "total": 50 })),
        ("o-3", json!({ "type": "order", "_deleted": true })),
    ] {
        let rev = database.request("PUT", &format!("/{id}")).json(&body).send().await.rev();
        let deleted = if body["_deleted"] == true { ",\"deleted\":true" } else { "" };
        let seq = rows.len() + 1;
        rows.push(format!("{{\"seq\":{seq},\"id\":\"{id}\",\"changes\":[{{\"rev\":\"{rev}\"}}]{deleted}}}"));
    }
    (server, database, rows)
}

/// A document of two live leaves, of which only the loser is an order; one of a live and a deleted leaf; one of one.
async fn conflicts(database: &Database) {
    let of = |rev: &str, more: Value| {
        let mut doc = json!({ "_id": "both", "_rev": rev });
        doc.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        doc
    };
    database.push(&[of("1-b", json!({ "type": "note" })), of("1-a", json!({ "type": "order" }))]).await;
    let resolved = |rev, deleted| json!({ "_id": "resolved", "_rev": rev, "_deleted": deleted, "type": "order" });
    database.push(&[resolved("1-b", false), resolved("1-a", true)]).await;
    database.push(&[json!({ "_id": "plain", "_rev": "1-a", "type": "order" })]).await;
}

fn selected(selector: &Value) -> String {
    format!("selector={}", escaped(&selector.to_string()))
}

/// The first so many lines after the feed caught up.
async fn rows_of(mut feed: Opened, count: usize) -> Vec<String> {
    let text = feed.until(|text| text.matches("\"id\"").count() >= count && text.ends_with('\n')).await;
    text.lines().filter(|line| line.contains("\"id\"")).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_chooses_on_every_form_and_wherever_it_is_given() {
    let (server, database, rows) = orders().await;
    let selector = json!({ "type": "order", "total": { "$gt": 10 } });
    let expected = [rows[2].clone(), caught_up(4), end(4, "caught-up")];

    let query = format!("since=0&live=false&{}", selected(&selector));
    assert_eq!(lines(&database, &query).await, expected);

    let options = json!({ "since": 0, "live": false, "selector": selector });
    let answer = database.post("/_feed").json(&options).expect(200).await;
    assert_eq!(answer.text().lines().skip(1).collect::<Vec<_>>(), expected);

    let sse = database.get(&format!("/_feed?{query}")).header("accept", "text/event-stream").expect(200).await;
    let first = format!("\n\ndata: {}\nid: 3\n\nevent: caught-up\n", rows[2]);
    assert!(sse.text().contains(&first), "{:?}", sse.text());

    for (query, message) in [(query.as_str(), None), ("", Some(options.to_string()))] {
        let mut socket = FeedSocket::open(&feed_url(&server, &database, query)).await.expect("a WebSocket");
        if let Some(message) = message {
            socket.send(&message).await;
        }
        let (items, _) = socket.to_close().await;
        let ids: Vec<&Value> = items.iter().filter_map(|item| item.row()).map(|row| &row["id"]).collect();
        assert_eq!(ids, [&json!("o-2")], "{items:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_selector_is_given_what_passes_and_its_heartbeats_move_on_with_what_does_not() {
    let (_server, database, _) = orders().await;
    let query = format!("heartbeat=50&{}", selected(&json!({ "type": "order" })));
    let mut feed = live(&database, &query).await;
    write(&database, &["no-order", "nor-this"]).await;
    feed.until(|text| text.ends_with("{\"event\":\"heartbeat\",\"seq\":6,\"pending\":0}\n")).await;
    let written = database.put("o-9", &json!({ "type": "order" })).await;
    assert_eq!(rows_of(feed, 1).await, [super::row(&json!("o-9"), &written)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tombstones_are_tested_like_any_document() {
    let (_server, database, rows) = orders().await;
    for (selector, expected) in [
        (json!({ "_deleted": true }), vec![&rows[3]]),
        (json!({ "type": "order" }), vec![&rows[0], &rows[2], &rows[3]]),
        (json!({ "type": "order", "_deleted": { "$exists": false } }), vec![&rows[0], &rows[2]]),
    ] {
        let found = lines(&database, &format!("since=0&live=false&{}", selected(&selector))).await;
        assert_eq!(found[..found.len() - 2].iter().collect::<Vec<_>>(), expected, "{selector}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_given_must_hold() {
    let (_server, database, rows) = orders().await;
    let order = selected(&json!({ "type": "order" }));
    let ids = format!("doc_ids={}", escaped("[\"o-1\",\"c-1\",\"o-3\"]"));
    for (query, expected) in [
        (format!("{order}&{ids}"), vec![&rows[0], &rows[3]]),
        (format!("{order}&prefix=c"), vec![]),
        (format!("{order}&prefix=o-&{ids}&limit=1"), vec![&rows[0]]),
        (format!("prefix=c&{ids}"), vec![&rows[1]]),
        (format!("{order}&conflicts_only=true"), vec![]),
    ] {
        let found = lines(&database, &format!("since=0&live=false&{query}")).await;
        let found: Vec<&String> = found.iter().filter(|line| line.contains("\"id\"")).collect();
        assert_eq!(found, expected, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_only_shows_documents_with_more_than_one_live_leaf() {
    let (_server, database) = fresh().await;
    let live_feed = live(&database, "conflicts_only=true").await;
    conflicts(&database).await;
    let row = "{\"seq\":1,\"id\":\"both\",\"changes\":[{\"rev\":\"1-b\"}]}";
    assert_eq!(lines(&database, "since=0&live=false&conflicts_only=true").await[0], row);
    let both = "{\"seq\":1,\"id\":\"both\",\"changes\":[{\"rev\":\"1-b\"},{\"rev\":\"1-a\"}]}";
    let found = lines(&database, "since=0&live=false&conflicts_only=true&style=all_docs").await;
    assert_eq!(found, [both.to_owned(), caught_up(3), end(3, "caught-up")]);
    assert_eq!(rows_of(live_feed, 1).await, [row]);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_all_docs_a_loser_that_passes_is_listed_alone() {
    let (_server, database) = fresh().await;
    let order = selected(&json!({ "type": "order" }));
    let live_feed = live(&database, &format!("style=all_docs&include_docs=true&{order}")).await;
    conflicts(&database).await;
    let loser = concat!(
        "{\"seq\":1,\"id\":\"both\",\"changes\":[{\"rev\":\"1-a\"}],",
        "\"doc\":{\"_id\":\"both\",\"_rev\":\"1-b\",\"type\":\"note\"}}"
    );
    let found = lines(&database, &format!("since=0&live=false&style=all_docs&include_docs=true&{order}")).await;
    assert_eq!(found[0], loser);
    assert_eq!(found.len(), 5, "{found:?}");
    assert!(found[1].contains("\"changes\":[{\"rev\":\"1-b\"},{\"rev\":\"1-a\"}]"), "{found:?}");
    assert_eq!(rows_of(live_feed, 3).await, found[..3], "live as from the disk");
    let winners = lines(&database, &format!("since=0&live=false&{order}")).await;
    assert!(winners[0].contains("\"resolved\""), "the winner of `both` is no order: {winners:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_selector_is_400_with_what_is_wrong() {
    let (_server, database) = fresh().await;
    for (selector, reason) in [
        ("{\"a\":{\"$bogus\":1}}", "Invalid operator: $bogus"),
        ("[]", "Selector error: expected a JSON object"),
        ("5", "Selector error: expected a JSON object"),
        ("{\"a\":", "`selector` is a JSON object, not \"{\\\"a\\\":\""),
        ("status", "`selector` is a JSON object, not \"status\""),
    ] {
        let by_query = database.get(&format!("/_feed?selector={}", escaped(selector))).send().await;
        by_query.assert_error(400, "bad_request", reason);
        if serde_json::from_str::<Value>(selector).is_ok() {
            let body = format!("{{\"selector\":{selector}}}");
            database.post("/_feed").body(body).send().await.assert_error(400, "bad_request", reason);
        }
    }
    let answer = database.get("/_feed?conflicts_only=perhaps").expect(400).await;
    assert!(answer.json()["reason"].as_str().is_some_and(|reason| reason.contains("`conflicts_only`")));
}

/// How often selectors were put to documents.
async fn evaluations(database: &Database) -> u64 {
    database.api.metric("seqtide_filter_evaluations_total").await.expect("it is there")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_losing_leaves_say_is_remembered_for_the_next_feed() {
    let (_server, database) = fresh().await;
    // Where there is no feed, no rows are kept that could remember it.
    let _any_feed = live(&database, "").await;
    conflicts(&database).await;
    let query = format!("since=0&limit=1&style=all_docs&{}", selected(&json!({ "type": "order" })));
    let first = lines(&database, &query).await;
    assert!(first[0].contains("\"id\":\"both\",\"changes\":[{\"rev\":\"1-a\"}]"), "{first:?}");
    let before = evaluations(&database).await;
    assert!(before > 0);
    assert_eq!(lines(&database, &query).await, first);
    assert_eq!(evaluations(&database).await, before);
}

/// Asserts how often selectors are evaluated for one more document, which `feeds` all get as their `nth` row.
async fn assert_evaluated(database: &Database, feeds: &mut [Opened], nth: usize, expected: u64) {
    let before = evaluations(database).await;
    database.put(&format!("o-{nth}"), &json!({ "type": "order", "total": 50 })).await;
    for feed in feeds {
        feed.until(|text| text.matches("\"id\"").count() == nth).await;
    }
    assert_eq!(evaluations(database).await - before, expected, "{nth}");
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_with_equal_selectors_share_one_evaluation_a_change() {
    let (_server, database) = fresh().await;
    let spellings = [
        json!({ "type": "order", "total": { "$gt": 10 } }),
        json!({ "total": { "$gt": 10 }, "type": { "$eq": "order" } }),
    ];
    let queries = spellings.map(|selector| selected(&selector));
    let opening = (0..300).map(|n| live(&database, &queries[n % 2]));
    let mut feeds = join_all(opening).await;
    assert_evaluated(&database, &mut feeds, 1, 1).await;
    assert_evaluated(&database, &mut feeds, 2, 1).await;
    let _other = live(&database, &selected(&json!({ "total": { "$gt": 11 } }))).await;
    assert_evaluated(&database, &mut feeds, 3, 2).await;
}

/// Nothing bounded them but the number of feeds: 20 of these took 200 MB.
#[tokio::test(flavor = "multi_thread")]
async fn selectors_of_all_feeds_have_a_bound_in_memory() {
    let (_server, database) = fresh().await;
    let own = |feed: usize| {
        let letters = (0..16).map(|n| json!({ format!("f{feed}-{n}"): { "$regex": "\\w{9}" } }));
        json!({ "$or": letters.collect::<Vec<_>>() })
    };
    let open = async |selector: Value| database.post("/_feed").json(&json!({ "selector": selector })).open().await;
    let mut feeds = Vec::new();
    let refused = loop {
        let feed = open(own(feeds.len())).await;
        if feed.status() != 200 {
            break feed.to_end().await;
        }
        feeds.push(feed);
        assert!(feeds.len() < 60, "no bound");
    };
    assert!(refused.text().contains("more than 268435456 bytes of memory"), "{}", refused.text());
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")));
    // Who waits for what others wait for shares it.
    assert_eq!(open(own(0)).await.status(), 200);
    assert_eq!(open(json!({ "a": 1 })).await.status(), 200);
    drop(feeds);
    let next = async { while open(own(60)).await.status() != 200 {} };
    timeout(SOON, next).await.expect("room for another");
}
