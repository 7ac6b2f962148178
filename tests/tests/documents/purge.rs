//! `_purge`: revisions forgotten for good, and what feeds see of it.

use std::time::Instant;

use serde_json::{Value, json};

use super::{BAD_REV, MISSING, fresh};
use seqtide_tests::http::{Opened, SOON};
use seqtide_tests::server::assert_clean;
use seqtide_tests::{Database, Server};

/// A document with two leaves, 2-b and 2-c, the winner; both with a body, as has their parent 1-a.
async fn forked(database: &Database, id: &str) {
    for (rev, ids) in [("1-a", &["a"][..]), ("2-b", &["b", "a"]), ("2-c", &["c", "a"])] {
        let start = ids.len();
        let revisions = json!({ "start": start, "ids": ids });
        database.push(&[json!({ "_id": id, "_rev": rev, "_revisions": revisions, "is": rev })]).await;
    }
}

/// The rows of the feed: sequence, id and leaves.
async fn rows(database: &Database) -> Vec<(u64, String, Vec<String>)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let row = |row: &Value| {
        let leaves = row["changes"].as_array().expect("leaves").iter().map(|leaf| text(&leaf["rev"])).collect();
        (row["seq"].as_u64().expect("a number"), text(&row["id"]), leaves)
    };
    let changes = database.changes("style=all_docs").await;
    changes["results"].as_array().expect("rows").iter().map(row).collect()
}

/// Waits for a live feed to tell more, and gives what it told since it was asked last.
async fn told(feed: &mut Opened, last: &str) -> String {
    let before = feed.so_far().len();
    feed.until(|text| text[before..].contains(last) && text.ends_with('\n')).await[before..].to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn leaves_go_and_the_answer_names_them() {
    let (_server, database) = fresh().await;
    forked(&database, "p").await;
    let named = json!({ "p": ["2-c", "1-a", "2-z"], "unknown": ["1-x"], "none": [] });
    let answer = database.post("/_purge").json(&named).expect(201).await;
    assert_eq!(answer.text(), "{\"purge_seq\":null,\"purged\":{\"none\":[],\"p\":[\"2-c\"],\"unknown\":[]}}\n");
    assert_eq!(answer.seq(), 4);
    let doc = database.get("/p?conflicts=true&revs=true").expect(200).await.json();
    let left = json!({ "_id": "p", "_rev": "2-b", "_revisions": { "start": 2, "ids": ["b", "a"] }, "is": "2-b" });
    assert_eq!(doc, left, "neither a conflict nor a tombstone is left of it");
    let (status, error, reason) = MISSING;
    database.get("/p?rev=2-c").send().await.assert_error(status, error, reason);
    database.get("/p?rev=1-a").expect(200).await;
    let nothing = database.post("/_purge").json(&json!({ "p": ["2-c"] })).expect(201).await;
    assert_eq!((nothing.json()["purged"].clone(), nothing.seq()), (json!({ "p": [] }), 4), "it is gone already");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_document_is_forgotten_and_starts_afresh() {
    let (server, database) = fresh().await;
    database.put("s", &json!({})).await;
    forked(&database, "p").await;
    assert_eq!(database.purge(&json!({ "p": ["2-b", "2-c"] })).await, json!({ "p": ["2-b", "2-c"] }));
    let (status, error, reason) = MISSING;
    for gone in ["/p", "/p?rev=2-b", "/p?rev=2-c", "/p?rev=1-a"] {
        database.get(gone).send().await.assert_error(status, error, reason);
    }
    let info = database.info().await;
    assert_eq!((&info["doc_count"], &info["doc_del_count"]), (&json!(1), &json!(0)));
    assert_eq!((&info["update_seq"], &info["purge_seq"]), (&json!(5), &json!(1)));
    assert_eq!((&info["sizes"]["active"], &info["sizes"]["external"]), (&json!(0), &json!(0)), "no body is left");
    let diff = database.post("/_revs_diff").json(&json!({ "p": ["2-b"] })).expect(200).await;
    assert_eq!(diff.json(), json!({ "p": { "missing": ["2-b"] } }), "a replicator may bring it back");
    assert_clean(server.data_dir());
    let again = database.put("p", &json!({})).await;
    assert_eq!((again.rev().as_str(), again.seq()), ("1-967a00dff5e02add41819138abb3284d", 6));
    let doc = database.get("/p?revs=true").expect(200).await.json();
    assert_eq!(doc["_revisions"]["start"], json!(1));
}

/// Who polls until it has what an answer's sequence says is not kept waiting.
#[tokio::test(flavor = "multi_thread")]
async fn a_feed_of_what_there_is_ends_at_the_update_sequence() {
    let (_server, database) = fresh().await;
    database.put("a", &json!({})).await;
    let rev = database.put("b", &json!({})).await.rev();
    database.purge(&json!({ "b": [rev] })).await;
    let feed = database.get("/_feed?since=0&live=false").header("accept", "application/x-ndjson").expect(200).await;
    let ends: Vec<Value> = feed.text().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let seqs: Vec<_> = ends.iter().rev().take(2).map(|end| (&end["event"], &end["seq"])).collect();
    assert_eq!(seqs, [(&json!("end"), &json!(3)), (&json!("caught-up"), &json!(3))]);
    assert_eq!(database.changes("since=0").await["last_seq"], json!(1), "CouchDB's is its last row's");
}

#[tokio::test(flavor = "multi_thread")]
async fn tombstones_are_purged_like_any_leaf() {
    let (_server, database) = fresh().await;
    let rev = database.put("a", &json!({ "n": 1 })).await.rev();
    let tombstone = database.request("DELETE", &format!("/a?rev={rev}")).expect(200).await.rev();
    database.purge(&json!({ "a": [tombstone] })).await;
    let info = database.info().await;
    assert_eq!((&info["doc_count"], &info["doc_del_count"]), (&json!(0), &json!(0)));
    assert_eq!(rows(&database).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_move_in_the_order_of_the_request() {
    let (_server, database) = fresh().await;
    for id in ["a", "b", "c"] {
        forked(&database, id).await;
    }
    let request = database.post("/_purge").header("content-type", "application/json");
    let answer = request.body(r#"{"c":["2-b"],"b":["2-b","2-c"],"a":["2-c"],"c":["2-c"]}"#).expect(201).await;
    let purged = "{\"purge_seq\":null,\"purged\":{\"b\":[\"2-b\",\"2-c\"],\"a\":[\"2-c\"],\"c\":[\"2-c\"]}}\n";
    assert_eq!(answer.text(), purged, "of a member given twice the last counts");
    let text = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(rows(&database).await, [(11, "a".to_owned(), text(&["2-b"])), (12, "c".to_owned(), text(&["2-b"]))]);
    assert_eq!((answer.seq(), database.info().await["purge_seq"].clone()), (12, json!(3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_feeds_show_a_leaf_s_purge_and_never_a_document_s() {
    let (_server, database) = fresh().await;
    database.put("s", &json!({})).await;
    forked(&database, "p").await;
    let mut continuous = database.get("/_changes?feed=continuous&since=0&style=all_docs&heartbeat=100").open().await;
    let mut native = database.get("/_feed?since=0&style=all_docs&heartbeat=100").open().await;
    let row = |seq: u64, leaves: &str| format!("{{\"seq\":{seq},\"id\":\"p\",\"changes\":[{leaves}]}}\n");
    for feed in [&mut continuous, &mut native] {
        assert!(told(feed, "2-b").await.contains(&row(4, r#"{"rev":"2-c"},{"rev":"2-b"}"#)));
    }
    let longpoll = tokio::spawn(database.get("/_changes?feed=longpoll&since=4&style=all_docs").send());
    database.purge(&json!({ "p": ["2-c"] })).await;
    let moved = row(5, r#"{"rev":"2-b"}"#);
    for feed in [&mut continuous, &mut native] {
        assert!(told(feed, "2-b").await.contains(&moved));
    }
    assert!(longpoll.await.expect("an answer").text().contains(moved.trim_end()));

    database.purge(&json!({ "p": ["2-b"] })).await;
    let silence = told(&mut native, "{\"event\":\"heartbeat\",\"seq\":6,\"pending\":0}").await;
    assert!(!silence.contains("\"p\""), "a heartbeat tells of the sequence it took, and nothing else does: {silence}");
    let last = database.put("last", &json!({})).await;
    for feed in [&mut continuous, &mut native] {
        let next = told(feed, "\"last\"").await;
        assert!(
            next.contains(&format!("{{\"seq\":{},\"id\":\"last\"", last.seq())) && !next.contains("\"p\""),
            "{next}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_resumes_from_anywhere_is_not_given_what_was_purged() {
    let (_server, database) = fresh().await;
    database.put("s", &json!({})).await;
    forked(&database, "p").await;
    database.put("last", &json!({})).await;
    database.purge(&json!({ "p": ["2-b", "2-c"] })).await;
    for since in 0..=6 {
        for feed in [
            "/_changes?",
            "/_changes?feed=longpoll&timeout=1&",
            "/_changes?feed=continuous&timeout=1&",
            "/_feed?live=false&",
        ] {
            let answer = database.get(&format!("{feed}since={since}&include_docs=true")).expect(200).await;
            let text = answer.text();
            assert!(!text.contains("\"p\"") && !text.contains("2-b"), "{feed} since {since}: {text}");
            assert_eq!(text.contains("\"last\""), since < 5, "{feed} since {since}: {text}");
        }
    }
    for listing in ["/_all_docs", "/_all_docs?keys=[\"p\"]", "/_changes?filter=_doc_ids&doc_ids=[\"p\"]"] {
        let text = database.get(listing).expect(200).await.text().to_owned();
        assert!(!text.contains("2-b") && !text.contains("2-c"), "{listing}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_purged_stays_so_after_a_crash() {
    let (mut server, database) = fresh().await;
    for id in ["gone", "moved"] {
        forked(&database, id).await;
    }
    database.purge(&json!({ "gone": ["2-b", "2-c"], "moved": ["2-c"] })).await;
    let (before, info) = (rows(&database).await, database.info().await);
    server.kill();
    assert_clean(server.data_dir());
    server.restart_on_same_port_and_data();
    assert_eq!(rows(&database).await, before);
    let after = database.info().await;
    for member in ["update_seq", "purge_seq", "doc_count", "instance_start_time"] {
        assert_eq!(after[member], info[member], "{member}");
    }
    assert_eq!(after["purge_seq"], json!(2));
    database.get("/gone").expect(404).await;
    assert_eq!(database.put("next", &json!({})).await.seq(), 9, "the purge's sequences are not given again");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_stemming_had_cut_off_are_swept_after_the_purge() {
    let (server, database) = fresh().await;
    let mut rev = database.put("long", &json!({ "n": 0 })).await.rev();
    for n in 1..60 {
        rev = database.put("long", &json!({ "_rev": rev, "n": n })).await.rev();
    }
    database.request("PUT", "/_revs_limit").body("5").expect(200).await;
    rev = database.put("long", &json!({ "_rev": rev, "n": "stemmed" })).await.rev();
    database.purge(&json!({ "long": [rev] })).await;
    assert_clean(server.data_dir());
    let start = Instant::now();
    while database.info().await["sizes"]["active"] != json!(0) {
        assert!(start.elapsed() < SOON, "bodies of a purged document are left: {}", database.info().await);
    }
    assert_clean(server.data_dir());
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_named_and_nothing_is_purged() {
    let (_server, database) = fresh().await;
    forked(&database, "p").await;
    let post = |body: &'static str| database.post("/_purge").header("content-type", "application/json").body(body);
    let list = |id: &str| format!("{id:?} must be a list of revisions: {{\"id\":[\"1-…\"]}}");
    for (body, reason) in [
        ("", "invalid UTF-8 JSON".to_owned()),
        ("{\"p\":[\"2-c\"]", "invalid UTF-8 JSON".to_owned()),
        ("[\"p\"]", "Request body must be a JSON object".to_owned()),
        ("{\"p\":[\"2-c\"],\"q\":\"2-b\"}", list("q")),
        ("{\"p\":[\"2-c\"],\"q\":{}}", list("q")),
        ("{\"p\":[\"2-c\",1]}", list("p")),
        ("{\"p\":null}", list("p")),
    ] {
        post(body).send().await.assert_error(400, "bad_request", &reason);
    }
    let (status, error, reason) = BAD_REV;
    for body in ["{\"p\":[\"2-c\",\"x\"]}", "{\"p\":[\"2-c\"],\"unknown\":[\"\"]}"] {
        post(body).send().await.assert_error(status, error, reason);
    }
    let underscore = "Only reserved document ids may start with underscore.";
    post("{\"p\":[\"2-c\"],\"_x\":[\"1-a\"]}").send().await.assert_error(400, "illegal_docid", underscore);
    database.post("/_purge").body("{}").send().await.assert_status(415);
    for method in ["GET", "PUT", "DELETE"] {
        database.request(method, "/_purge").send().await.assert_error(405, "method_not_allowed", "Only POST allowed");
    }
    assert_eq!(database.info().await["update_seq"], json!(3));
    assert_eq!(post("{}").expect(201).await.json(), json!({ "purge_seq": null, "purged": {} }));
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_and_revisions_of_a_request_have_a_limit() {
    let server = Server::launch().arg("--limits-bulk-docs-max=2").start();
    let database = Database::create(&server, "db").await;
    for (too_many, what) in [
        (json!({ "a": [], "b": [], "c": [] }), "documents"),
        (json!({ "a": ["1-a"], "b": ["1-a", "1-b"] }), "revisions"),
    ] {
        let reason = format!("`_purge` names too many {what}: at most 2 are accepted");
        database.post("/_purge").json(&too_many).send().await.assert_error(413, "too_large", &reason);
    }
    assert_eq!(database.purge(&json!({ "a": ["1-a"], "b": ["1-b"] })).await, json!({ "a": [], "b": [] }));
}
