//! Filter and map functions choose, on every door.

use serde_json::{Value, json};

use super::{changed, design, filter, fresh, ids};
use seqtide_tests::doors::{FeedSocket, feed_url};
use seqtide_tests::http::escaped;
use seqtide_tests::{Database, Server};

const BY_TYPE: &str = "function (doc, req) { return doc.type === req.query.type; }";

/// Documents of the types x and y, one of them a tombstone, and a design document with the filter `f` and the view `x`.
async fn typed() -> (Server, Database) {
    let (server, database) = fresh().await;
    let mut functions = filter(BY_TYPE);
    functions["views"] = json!({ "x": { "map": "function (doc) { if (doc.type === 'x') emit(doc._id); }" } });
    design(&database, "d", &functions).await;
    let docs = [
        json!({ "_id": "a", "type": "x" }),
        json!({ "_id": "b", "type": "y" }),
        json!({ "_id": "c", "type": "x", "_deleted": true }),
        json!({ "_id": "d" }),
    ];
    database.bulk(&docs).await;
    (server, database)
}

/// The ids of a feed's rows, one JSON text a line or after `data: `.
fn listed(text: &str) -> Vec<String> {
    let rows = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let rows = rows.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    rows.filter_map(|row| Some(row.get("id")?.as_str()?.to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_function_chooses_at_every_form_of_changes() {
    let (_server, database) = typed().await;
    for (query, expected) in
        [("type=x", &["a", "c"][..]), ("type=y", &["b"]), ("type=z", &[]), ("Type=x", &["_design/d", "d"])]
    {
        let query = format!("filter=d/f&{query}");
        assert_eq!(changed(&database, &query).await, expected, "{query}");
        let post = database.post(&format!("/_changes?{query}")).json(&json!({})).expect(200).await.json();
        assert_eq!(ids(&post["results"]), expected, "{query}");
        assert_eq!((&post["last_seq"], &post["pending"]), (&json!(5), &json!(0)));
        for feed in ["continuous", "eventsource"] {
            let answer = database.get(&format!("/_changes?feed={feed}&timeout=1&{query}")).expect(200).await;
            assert_eq!(listed(answer.text()), expected, "{feed} {query}");
        }
    }
    let poll = database.get("/_changes?feed=longpoll&filter=d/f&type=y").expect(200).await.json();
    assert_eq!(ids(&poll["results"]), ["b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_with_a_slash_is_escaped_twice_at_the_door_of_couchdb() {
    let (_server, database) = typed().await;
    let is_y = "function (doc) { if (doc.type === 'y') emit(doc._id); }";
    let functions = json!({ "filters": { "a/b": "(doc) => doc.type === 'y'" }, "views": { "a/b": { "map": is_y } } });
    design(&database, "of%2Fy", &functions).await;
    for query in ["filter=of%252Fy/a%252Fb", "filter=_view&view=of%252fy%2Fa%252fb"] {
        assert_eq!(changed(&database, query).await, ["b"], "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_function_chooses_at_every_form_of_the_native_door() {
    let (server, database) = typed().await;
    let (options, asked) = (json!({ "since": 0, "live": false, "filter": "d/f", "query": { "type": "x" } }), "a c");
    let query = format!("since=0&live=false&filter=d/f&query={}", escaped(r#"{"type":"x"}"#));
    for accept in ["application/x-ndjson", "text/event-stream"] {
        let got = database.get(&format!("/_feed?{query}")).header("accept", accept).expect(200).await;
        let posted = database.post("/_feed").header("accept", accept).json(&options).expect(200).await;
        assert_eq!((listed(got.text()).join(" "), listed(posted.text()).join(" ")), (asked.into(), asked.into()));
    }
    for (query, message) in [(query.as_str(), None), ("", Some(options.to_string()))] {
        let mut socket = FeedSocket::open(&feed_url(&server, &database, query)).await.expect("a WebSocket");
        if let Some(message) = message {
            socket.send(&message).await;
        }
        let (items, _) = socket.to_close().await;
        let ids: Vec<_> = items.iter().filter_map(|item| item.row()?["id"].as_str()).collect();
        assert_eq!(ids.join(" "), asked);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_function_passes_what_it_emits_something_for() {
    let (_server, database) = typed().await;
    assert_eq!(changed(&database, "filter=_view&view=d/x").await, ["a", "c"]);
    let native = database.get("/_feed?since=0&live=false&view=d/x").expect(200).await;
    assert_eq!(listed(native.text()), ["a", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_given_besides_a_function_must_hold_too() {
    let (_server, database) = typed().await;
    let of_x = format!("since=0&live=false&filter=d/f&query={}", escaped(r#"{"type":"x"}"#));
    let selector = format!("selector={}", escaped(r#"{"_deleted":{"$exists":false}}"#));
    for (more, expected) in [
        ("prefix=c", &["c"][..]),
        ("doc_ids=[\"a\",\"b\"]", &["a"]),
        (selector.as_str(), &["a"]),
        ("conflicts_only=true", &[]),
        ("limit=1", &["a"]),
    ] {
        let rows = database.get(&format!("/_feed?{of_x}&{more}")).expect(200).await;
        assert_eq!(listed(rows.text()), expected, "{more}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_tokens_count_what_was_looked_at() {
    let (_server, database) = typed().await;
    let page = |query: &str| database.get(&format!("/_changes?filter=d/f&type=x&{query}"));
    let first = page("limit=1").expect(200).await.json();
    assert_eq!(
        (ids(&first["results"]), &first["last_seq"], &first["pending"]),
        (vec!["a".into()], &json!(2), &json!(3))
    );
    let rest = page("since=2").expect(200).await.json();
    assert_eq!((ids(&rest["results"]), &rest["last_seq"], &rest["pending"]), (vec!["c".into()], &json!(5), &json!(0)));
    let back = page("descending=true").expect(200).await.json();
    assert_eq!(ids(&back["results"]), ["c", "a"]);
    let doc = page("include_docs=true&limit=1").expect(200).await.json();
    assert_eq!(doc["results"][0]["doc"]["type"], "x");
}

/// As recorded from CouchDB: with `style=all_docs` each leaf is tested, and only those that pass are listed.
#[tokio::test(flavor = "multi_thread")]
async fn with_all_leaves_a_losing_one_may_pass_alone() {
    let (_server, database) = fresh().await;
    design(&database, "d", &filter("function (doc) { return doc.wins === false; }")).await;
    let leaf = |rev: &str, wins: bool| json!({ "_id": "a", "_rev": rev, "wins": wins });
    database.push(&[leaf("1-b", true), leaf("1-a", false)]).await;
    assert_eq!(changed(&database, "filter=d/f").await, [""; 0]);
    let rows = database.get("/_changes?filter=d/f&style=all_docs").expect(200).await.json();
    assert_eq!(rows["results"], json!([{ "seq": 2, "id": "a", "changes": [{ "rev": "1-a" }] }]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_feed_is_given_what_passes_and_its_heartbeats_move_on_with_what_does_not() {
    let (_server, database) = typed().await;
    let query = format!("filter=d/f&heartbeat=50&query={}", escaped(r#"{"type":"x"}"#));
    let mut feed = database.get(&format!("/_feed?{query}")).open().await;
    feed.until(|text| text.contains("caught-up")).await;
    database.put("y-1", &json!({ "type": "y" })).await;
    feed.until(|text| text.ends_with("{\"event\":\"heartbeat\",\"seq\":6,\"pending\":0}\n")).await;
    database.put("x-1", &json!({ "type": "x" })).await;
    let text = feed.until(|text| text.contains("x-1")).await;
    assert_eq!(listed(&text), ["x-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_keeps_the_revision_of_the_function_it_began_with() {
    let (_server, database) = typed().await;
    let mut old = database.get("/_changes?feed=continuous&since=now&filter=d/f&type=x").open().await;
    old.until(|text| text == "\n").await;
    design(&database, "d", &filter("function () { return true; }")).await;
    database.put("y-2", &json!({ "type": "y" })).await;
    database.put("x-2", &json!({ "type": "x" })).await;
    let text = old.until(|text| text.contains("x-2")).await;
    assert_eq!(listed(&text), ["x-2"]);
    assert_eq!(changed(&database, "since=6&filter=d/f&type=x").await, ["y-2", "x-2"]);
}
