//! GET and HEAD of single documents.

use serde_json::json;

use super::{BAD_REV, DELETED, MISSING, fresh};
use seqtide_tests::Database;
use seqtide_tests::http::escaped;

const B: &str = "2-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const C: &str = "2-cccccccccccccccccccccccccccccccc";
const D: &str = "3-dddddddddddddddddddddddddddddddd";
const ROOT: &str = "1-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn hash(rev: &str) -> &str {
    rev.split_once('-').expect("a rev").1
}

/// A document with two live leaves, `C` above `B`, and a deleted one, `D`, all from `ROOT`.
async fn conflicted(database: &Database) {
    let root = hash(ROOT);
    let path = |rev: &str, ids: &[&str]| json!({ "start": rev[..1].parse::<u64>().expect("a digit"), "ids": ids });
    database
        .push(&[
            json!({ "_id": "conf", "_rev": B, "_revisions": path(B, &[hash(B), root]), "w": "b" }),
            json!({ "_id": "conf", "_rev": C, "_revisions": path(C, &[hash(C), root]), "w": "c" }),
            json!({ "_id": "conf", "_rev": D, "_revisions": path(D, &[hash(D), "ee", root]), "_deleted": true }),
        ])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_etag_is_the_rev_and_answers_304() {
    let (_server, database) = fresh().await;
    let rev = database.put("a", &json!({ "x": 1 })).await.rev();
    let etag = format!("\"{rev}\"");
    for query in ["", "?revs=true", "?conflicts=true"] {
        let answer = database.get(&format!("/a{query}")).expect(200).await;
        assert_eq!(answer.header("etag"), Some(etag.as_str()), "{query}");
    }
    let head = database.request("HEAD", "/a").expect(200).await;
    assert_eq!((head.header("etag"), head.text()), (Some(etag.as_str()), ""));
    let cached = database.get("/a").header("if-none-match", &etag).expect(304).await;
    assert_eq!((cached.header("etag"), cached.text()), (Some(etag.as_str()), ""));
    assert_eq!(cached.header("cache-control"), Some("must-revalidate"));
    database.get("/a").header("if-none-match", "\"1-00\"").expect(200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_lists_live_losing_leaves_and_drops_the_etag() {
    let (_server, database) = fresh().await;
    conflicted(&database).await;
    let answer = database.get("/conf?conflicts=true").expect(200).await;
    assert_eq!(answer.json(), json!({ "_id": "conf", "_rev": C, "w": "c", "_conflicts": [B] }));
    assert_eq!(answer.header("etag"), None);
    database.put("plain", &json!({})).await;
    assert!(database.get("/plain?conflicts=true").expect(200).await.json().get("_conflicts").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn rev_reads_any_leaf_deleted_or_not() {
    let (_server, database) = fresh().await;
    conflicted(&database).await;
    let read = async |query: &str| database.get(&format!("/conf?{query}")).expect(200).await.json();
    assert_eq!(read(&format!("rev={B}")).await, json!({ "_id": "conf", "_rev": B, "w": "b" }));
    assert_eq!(read(&format!("rev={D}")).await, json!({ "_id": "conf", "_rev": D, "_deleted": true }));
    assert_eq!(read(&format!("rev={ROOT}&latest=true")).await["_rev"], json!(C), "latest is the winner");
    assert_eq!(read(&format!("rev={B}&latest=true")).await["_rev"], json!(C), "from another branch too");
}

/// Other leaves, and a place in the feed, are a document's and not a revision's: beside a revision that was named they
/// would list that revision itself, and leave out the winner.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_of_a_document_stands_beside_its_winner_alone() {
    let (_server, database) = fresh().await;
    conflicted(&database).await;
    let read = async |query: &str| {
        let request =
            database.get(&format!("/conf?{query}&meta=true&local_seq=true")).header("accept", "application/json");
        request.expect(200).await.json()
    };
    assert!(read("").await.get("_conflicts").is_some());
    assert_eq!(read(&format!("rev={B}")).await, json!({ "_id": "conf", "_rev": B, "w": "b" }));
    for leaf in read("open_revs=all").await.as_array().expect("a list") {
        let leaf = leaf["ok"].as_object().expect("a document");
        assert!(leaf.keys().all(|name| ["_id", "_rev", "_deleted", "w"].contains(&name.as_str())), "{leaf:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_latest_of_a_deleted_document_is_deleted() {
    let (_server, database) = fresh().await;
    let rev = database.put("gone", &json!({})).await.rev();
    database.request("DELETE", &format!("/gone?rev={rev}")).expect(200).await;
    let latest = database.get(&format!("/gone?rev={rev}&latest=true")).send().await;
    latest.assert_error(404, "not_found", "deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_and_malformed_revisions() {
    let (_server, database) = fresh().await;
    database.put("a", &json!({})).await;
    let (status, error, reason) = MISSING;
    for rest in ["/a?rev=9-abc", "/nope", "/nope?rev=1-abc"] {
        database.get(rest).send().await.assert_error(status, error, reason);
    }
    let (status, error, reason) = BAD_REV;
    database.get("/a?rev=abc").send().await.assert_error(status, error, reason);
}

#[tokio::test(flavor = "multi_thread")]
async fn revs_lists_the_ancestry_newest_first() {
    let (_server, database) = fresh().await;
    let mut revs = vec![database.put("a", &json!({ "n": 0 })).await.rev()];
    for n in 1..30 {
        let last = revs.last().expect("one at least").clone();
        revs.push(database.put("a", &json!({ "n": n, "_rev": last })).await.rev());
    }
    let ids: Vec<&str> = revs.iter().rev().map(|rev| hash(rev)).collect();
    let document = database.get("/a?revs=true").expect(200).await.json();
    assert_eq!(document["_revisions"], json!({ "start": 30, "ids": ids }));
    let by_open_revs = database.get(&format!("/a?revs=true&open_revs={}", escaped(&json!([revs[29]]).to_string())));
    let leaves = by_open_revs.header("accept", "application/json").expect(200).await.json();
    assert_eq!(leaves[0]["ok"]["_revisions"]["ids"], json!(ids));
}

#[tokio::test(flavor = "multi_thread")]
async fn members_come_in_couchdb_s_order_and_the_body_in_its_own() {
    let (_server, database) = fresh().await;
    let rev = database.put("a", &json!({})).await.rev();
    let body = format!("{{\"z\":1,\"_rev\":\"{rev}\",\"a\":{{\"y\":1,\"b\":2}},\"é\":\"/é\\u0001\"}}");
    let rev = database.request("PUT", "/a").body(body).expect(201).await.rev();
    let (generation, newest) = rev.split_once('-').expect("a rev");
    assert_eq!(generation, "2");
    let text = database.get("/a").expect(200).await.text().to_owned();
    assert_eq!(
        text,
        format!("{{\"_id\":\"a\",\"_rev\":\"{rev}\",\"z\":1,\"a\":{{\"y\":1,\"b\":2}},\"é\":\"/é\\u0001\"}}\n")
    );
    let text = database.get("/a?revs=true").expect(200).await.text().to_owned();
    let revisions =
        format!("\"_revisions\":{{\"start\":2,\"ids\":[\"{newest}\",\"967a00dff5e02add41819138abb3284d\"]}}}}\n");
    assert!(text.ends_with(&revisions), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn open_revs_all_is_every_leaf_ascending() {
    let (_server, database) = fresh().await;
    conflicted(&database).await;
    let answer = database.get("/conf?open_revs=all").header("accept", "application/json").expect(200).await;
    let revs: Vec<_> =
        answer.json().as_array().expect("a list").iter().map(|leaf| leaf["ok"]["_rev"].clone()).collect();
    assert_eq!(revs, [json!(B), json!(C), json!(D)]);
    let (status, error, reason) = MISSING;
    let nothing = database.get("/nope?open_revs=all").header("accept", "application/json").send().await;
    nothing.assert_error(status, error, reason);
}

#[tokio::test(flavor = "multi_thread")]
async fn open_revs_of_a_list_tells_what_is_missing() {
    let (_server, database) = fresh().await;
    conflicted(&database).await;
    let ask = async |id: &str, query: &str| {
        let request = database.get(&format!("/{id}?{query}")).header("accept", "application/json");
        request.expect(200).await.json()
    };
    let list = escaped(&json!([C, "9-z"]).to_string());
    let answer = ask("conf", &format!("open_revs={list}")).await;
    assert_eq!(answer, json!([{ "ok": { "_id": "conf", "_rev": C, "w": "c" } }, { "missing": "9-z" }]));
    assert_eq!(ask("nope", &format!("open_revs={list}")).await, json!([{ "missing": C }, { "missing": "9-z" }]));
    let root = escaped(&json!([ROOT]).to_string());
    let latest = ask("conf", &format!("open_revs={root}&latest=true")).await;
    let revs: Vec<_> = latest.as_array().expect("a list").iter().map(|leaf| leaf["ok"]["_rev"].clone()).collect();
    assert_eq!(revs, [json!(B), json!(C), json!(D)], "all leaves below it");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_leaf_is_deleted_by_its_own_revision() {
    let (_server, database) = fresh().await;
    conflicted(&database).await;
    let delete = async |rev: &str| database.request("DELETE", &format!("/conf?rev={rev}")).expect(200).await.rev();
    delete(C).await;
    assert_eq!(database.get("/conf").expect(200).await.json()["_rev"], json!(B));
    let onto_deleted_leaf = delete(D).await;
    assert!(onto_deleted_leaf.starts_with("4-"), "a tombstone on a tombstone while another leaf lives");
    delete(B).await;
    let (status, error, reason) = DELETED;
    database.get("/conf").send().await.assert_error(status, error, reason);
}

/// A deleted document that is made again keeps its tombstone among the ancestors, and the tombstone stays one.
#[tokio::test(flavor = "multi_thread")]
async fn a_tombstone_that_was_built_on_is_still_a_tombstone() {
    let (_server, database) = fresh().await;
    let first = database.put("a", &json!({ "n": 1 })).await.rev();
    let second = database.request("DELETE", &format!("/a?rev={first}")).expect(200).await.rev();
    let third = database.put("a", &json!({ "n": 3 })).await.rev();
    let tombstone = database.get(&format!("/a?rev={second}")).expect(200).await.json();
    assert_eq!(tombstone, json!({ "_id": "a", "_rev": second, "_deleted": true }));
    let info = database.get("/a?revs_info=true").expect(200).await;
    let expected = json!([
        { "rev": third, "status": "available" },
        { "rev": second, "status": "deleted" },
        { "rev": first, "status": "available" },
    ]);
    assert_eq!((&info.json()["_revs_info"], info.header("etag")), (&expected, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn meta_is_revs_info_and_both_kinds_of_conflicts() {
    let (_server, database) = fresh().await;
    conflicted(&database).await;
    let deleted = database.get("/conf?deleted_conflicts=true").expect(200).await;
    assert_eq!(deleted.json(), json!({ "_id": "conf", "_rev": C, "w": "c", "_deleted_conflicts": [D] }));
    assert_eq!(deleted.header("etag"), None);
    let meta = database.get("/conf?meta=true").expect(200).await.json();
    let expected = json!({
        "_id": "conf",
        "_rev": C,
        "w": "c",
        "_revs_info": [{ "rev": C, "status": "available" }, { "rev": ROOT, "status": "missing" }],
        "_conflicts": [B],
        "_deleted_conflicts": [D],
    });
    assert_eq!(meta, expected);
    let placed = database.get("/conf?local_seq=true").expect(200).await;
    assert_eq!((&placed.json()["_local_seq"], placed.header("etag")), (&json!(1), None));
}
