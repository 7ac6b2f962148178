//! The same request again.

use serde_json::{Value, json};

use super::{CONFLICT, assert_replay, assert_same, edit, fresh, is_replay, put, rows, update_seq};
use seqtide_tests::http::{Answer, Request};
use seqtide_tests::{Database, Server};

/// Makes a request that can be sent again.
type Sending<'a> = Box<dyn Fn() -> Request + 'a>;

#[tokio::test(flavor = "multi_thread")]
async fn f11_a_put_sent_again_answers_the_same_and_takes_no_sequence() {
    let (_server, database) = fresh().await;
    let first = put(&database, "a", "k", &json!({ "n": 1 })).expect(201).await;
    assert_eq!(first.seq(), 1);
    for _ in 0..3 {
        assert_replay(&first, &put(&database, "a", "k", &json!({ "n": 1 })).send().await);
    }
    assert_eq!((update_seq(&database).await, rows(&database).await), (json!(1), vec![("a".to_owned(), 1)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn f12_an_edit_in_between_does_not_matter() {
    let (_server, database) = fresh().await;
    let first = put(&database, "a", "k", &json!({ "n": 1 })).expect(201).await;
    edit(&database, "a", &first.rev()).await;
    assert_replay(&first, &put(&database, "a", "k", &json!({ "n": 1 })).send().await);
    assert_eq!(rows(&database).await, [("a".to_owned(), 2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn f13_a_conflict_leaves_the_key_free() {
    let (_server, database) = fresh().await;
    let rev = database.put("a", &json!({})).await.rev();
    let again = || put(&database, "a", "k", &json!({ "n": 2 }));
    let refused = again().send().await;
    refused.assert_error(CONFLICT.0, CONFLICT.1, CONFLICT.2);
    database.request("DELETE", &format!("/a?rev={rev}")).expect(200).await;
    let first = again().expect(201).await;
    assert!(!is_replay(&first), "it runs");
    assert_replay(&first, &again().send().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn f16_without_a_key_an_identical_edit_is_a_conflict() {
    let (_server, database) = fresh().await;
    database.put("a", &json!({ "n": 1 })).await;
    let refused = database.request("PUT", "/a").json(&json!({ "n": 1 })).send().await;
    refused.assert_error(CONFLICT.0, CONFLICT.1, CONFLICT.2);
}

/// Every kind of write: what is sent, and what happens before it is sent again so that it could not be made then.
#[tokio::test(flavor = "multi_thread")]
async fn every_write_is_repeated_whatever_the_database_has_become() {
    let (mut server, database) = fresh().await;
    let there = database.put("there", &json!({ "n": 1 })).await.rev();
    let gone = database.put("gone", &json!({ "n": 1 })).await.rev();
    let purged = database.put("purged", &json!({ "n": 1 })).await.rev();
    let source = database.put("source", &json!({ "n": 1 })).await.rev();
    database.request("PUT", "/_local/gone").json(&json!({})).expect(201).await;

    let bulk = json!({ "docs": [
        { "_id": "b" }, { "n": "made" }, { "_id": "there" }, { "_id": "_local/b" }, { "n": "made" }, { "_id": "" },
    ] });
    let pushed = json!({ "new_edits": false, "docs": [
        { "_id": "p", "_rev": "1-x" }, { "_id": "p", "_rev": "1-x" }, { "_id": "q", "_rev": "1-y", "_attachments": {"a": {}} },
    ] });
    let request = |method: &str, rest: &str| database.request(method, rest);
    let purge = json!({ "purged": [purged] });
    let writes: Vec<(&str, Sending<'_>)> = vec![
        ("PUT", Box::new(|| request("PUT", "/new").json(&json!({ "n": 1 })))),
        (
            "PUT with If-Match",
            Box::new(|| request("PUT", "/there").header("if-match", &there).json(&json!({ "n": 2 }))),
        ),
        ("PUT of a tombstone", Box::new(|| request("PUT", "/tomb").json(&json!({ "_deleted": true })))),
        ("DELETE", Box::new(|| request("DELETE", &format!("/gone?rev={gone}")))),
        ("POST with an id", Box::new(|| request("POST", "").json(&json!({ "_id": "posted" })))),
        ("POST without", Box::new(|| request("POST", "").json(&json!({ "n": 1 })))),
        ("POST of a local one", Box::new(|| request("POST", "").json(&json!({ "_id": "_local/posted" })))),
        ("COPY", Box::new(|| request("COPY", "/source").header("destination", "copy"))),
        ("_bulk_docs", Box::new(|| request("POST", "/_bulk_docs").json(&bulk))),
        ("_bulk_docs, replicated", Box::new(|| request("POST", "/_bulk_docs").json(&pushed))),
        ("_local", Box::new(|| request("PUT", "/_local/new").json(&json!({ "n": 1 })))),
        ("_local, DELETE", Box::new(|| request("DELETE", "/_local/gone?rev=0-1"))),
        ("_purge", Box::new(|| request("POST", "/_purge").json(&purge))),
        ("_revs_limit", Box::new(|| request("PUT", "/_revs_limit").body("17"))),
        ("_feed_index", Box::new(|| request("PUT", "/_feed_index").json(&json!({ "fields": ["n"] })))),
        ("_design, escaped", Box::new(|| request("PUT", "/_design%2Fd").json(&json!({})))),
    ];
    let send = async |name: &str, write: &dyn Fn() -> Request| write().header("idempotency-key", name).send().await;
    let mut answers = Vec::new();
    for (name, write) in &writes {
        let first = send(name, write).await;
        assert!(first.status < 300 && !is_replay(&first), "{name}: {first:?}");
        answers.push(first);
    }
    let results = answers[8].json();
    let result =
        |at: usize| results[at]["error"].as_str().or(results[at]["rev"].as_str()).expect("a result").to_owned();
    assert_eq!((result(2).as_str(), result(3).as_str()), ("conflict", "0-1"), "{results}");
    assert_eq!(answers[9].json()[0]["error"], json!("not_implemented"), "{:?}", answers[9]);

    database.request("DELETE", &format!("/source?rev={source}")).expect(200).await;
    database.request("PUT", "/_local/new").json(&json!({ "_rev": "0-1" })).expect(201).await;
    database.request("PUT", "/_revs_limit").body("18").expect(200).await;
    let before = (update_seq(&database).await, rows(&database).await);
    for restarted in [false, true] {
        if restarted {
            server.stop();
            server.restart_on_same_port_and_data();
        }
        for ((name, write), first) in writes.iter().zip(&answers) {
            assert_replay(first, &send(name, write).await);
        }
        assert_eq!((update_seq(&database).await, rows(&database).await), before);
    }
    assert_eq!(database.get("/_revs_limit").expect(200).await.text(), "18\n");
    let local = database.get("/_local/new").expect(200).await.json();
    assert_eq!(local["_rev"], json!("0-2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_made_by_the_server_are_those_of_the_first_time() {
    let (_server, database) = fresh().await;
    let docs = json!({ "docs": [{ "n": 1 }, { "_id": "named" }, { "n": 2 }] });
    let post = || database.post("/_bulk_docs").header("idempotency-key", "k").json(&docs);
    let first = post().expect(201).await;
    assert_replay(&first, &post().send().await);
    let made: Vec<Value> = first.json().as_array().expect("a list").iter().map(|result| result["id"].clone()).collect();
    assert_ne!(made[0], made[2]);
    let listed = database.get("/_all_docs").expect(200).await.json();
    assert_eq!(listed["total_rows"], json!(3));
    let another = database.post("/_bulk_docs").header("idempotency-key", "l").json(&docs).expect(201).await;
    assert!(another.json()[0]["id"] != made[0] && another.json()[1]["error"] == json!("conflict"), "{another:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_belongs_to_one_database() {
    let (server, database) = fresh().await;
    let other = Database::create(&server, "other").await;
    let first = put(&database, "a", "k", &json!({})).expect(201).await;
    let elsewhere = put(&other, "a", "k", &json!({})).expect(201).await;
    assert!(!is_replay(&elsewhere), "{elsewhere:?}");
    assert_replay(&first, &put(&database, "a", "k", &json!({})).send().await);
    // Nor does it outlive its database.
    database.request("DELETE", "").expect(200).await;
    Database::create(&server, "db").await;
    assert!(!is_replay(&put(&database, "a", "k", &json!({})).expect(201).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_bulk_is_one_request() {
    let server = Server::start();
    let database = Database::create(&server, "db").await;
    let docs: Vec<Value> = (0..5_000).map(|n| json!({ "n": n, "pad": "x".repeat(60) })).collect();
    let body = json!({ "docs": docs });
    let post = || database.post("/_bulk_docs").header("idempotency-key", "k").json(&body);
    let first = post().expect(201).await;
    assert_same(&first, &post().send().await);
    assert_eq!(update_seq(&database).await, json!(5_000));
}

/// What had been refused took the outcome of the document behind it, and that one counted as in conflict.
#[tokio::test(flavor = "multi_thread")]
async fn documents_refused_alone_have_their_own_answers_whatever_is_refused_by_then() {
    let folder = tempfile::tempdir().expect("a folder");
    let with_bound = |bytes: u64| {
        Server::launch().data_dir(folder.path()).arg(format!("--limits-document-bytes-max={bytes}")).start()
    };
    let docs = json!([
        { "_id": "big", "_rev": "1-a", "v": "x".repeat(3000) },
        { "_id": "pictured", "_rev": "1-a", "_attachments": { "a": { "data": "" } } },
        { "_id": "small", "_rev": "1-a" },
    ]);
    let post = |database: &Database, key: &str| {
        let body = json!({ "new_edits": false, "docs": docs });
        database.post("/_bulk_docs").header("idempotency-key", key).json(&body)
    };
    let refused = |answer: &Answer| -> Vec<Value> {
        answer.json().as_array().expect("a list").iter().map(|result| json!([result["id"], result["error"]])).collect()
    };

    let low = with_bound(1000);
    let database = Database::create(&low, "db").await;
    let first = post(&database, "low").expect(201).await;
    let both = [json!(["big", "document_too_large"]), json!(["pictured", "not_implemented"])];
    assert_eq!(refused(&first), both);
    drop(low);
    let high = with_bound(100_000);
    let database = Database::at(&high, "db");
    assert_replay(&first, &post(&database, "low").send().await);
    database.get("/big").expect(404).await;
    let taken = post(&database, "high").expect(201).await;
    assert_eq!(refused(&taken), both[1..]);
    database.get("/big").expect(200).await;
    drop(high);
    let low = with_bound(1000);
    assert_replay(&taken, &post(&Database::at(&low, "db"), "high").send().await);
}
