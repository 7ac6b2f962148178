//! Writes with `new_edits=false`: revisions as another server made them.

use serde_json::{Value, json};

use super::{BAD_REV, fresh};

#[tokio::test(flavor = "multi_thread")]
async fn a_put_keeps_the_given_revision_and_never_conflicts() {
    let (_server, database) = fresh().await;
    database.put("a", &json!({ "x": 1 })).await;
    let body = json!({ "_rev": "1-other", "x": 9 });
    let answer = database.request("PUT", "/a?new_edits=false").json(&body).expect(201).await;
    assert_eq!(answer.json(), json!({ "ok": true, "id": "a", "rev": "1-other" }));
    let known = database.get("/a?conflicts=true").expect(200).await.json();
    assert_eq!(
        (&known["_rev"], &known["_conflicts"][0]),
        (&json!("1-other"), &json!("1-0785e9eb543380151003dc452c3a001a"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_win_over_rev_and_missing_ones_are_refused() {
    let (_server, database) = fresh().await;
    let body = json!({ "_id": "a", "_rev": "9-zz", "_revisions": { "start": 2, "ids": ["b", "a"] } });
    database.push(&[body]).await;
    assert_eq!(database.get("/a").expect(200).await.json()["_rev"], json!("2-b"));
    let docs = json!({ "docs": [{ "_id": "b" }], "new_edits": false });
    let reason = "When `new_edits: false`, the document needs `_rev` or `_revisions` specified";
    database.post("/_bulk_docs").json(&docs).send().await.assert_error(400, "bad_request", reason);
    let docs = json!({ "docs": [{ "_id": "b", "_rev": "bogus" }], "new_edits": false });
    let (status, error, reason) = BAD_REV;
    database.post("/_bulk_docs").json(&docs).send().await.assert_error(status, error, reason);
}

/// CouchDB has documents that pass these bounds, and its replicator does not get past a request that is refused.
#[tokio::test(flavor = "multi_thread")]
async fn what_passes_a_bound_that_couchdb_does_not_have_is_refused_alone() {
    let (_server, database) = fresh().await;
    let (deep, long_id) = (format!("{}1{}", "[".repeat(600), "]".repeat(600)), "i".repeat(501));
    let (hash, long_rev) = ("z".repeat(129), format!("1-{}", "z".repeat(129)));
    let docs = format!(
        r#"{{"_id":"a","_rev":"1-x"}},
        {{"_id":"{long_id}","_rev":"1-x"}},
        {{"_id":"deep","_rev":"1-x","n":{deep}}},
        {{"_id":"rev","_rev":"{long_rev}"}},
        {{"_id":"revisions","_revisions":{{"start":1,"ids":["{hash}"]}}}},
        {{"_id":"z","_rev":"1-x"}}"#
    );
    let push = |new_edits: bool| {
        let request = database.post("/_bulk_docs").header("content-type", "application/json");
        request.body(format!("{{\"new_edits\":{new_edits},\"docs\":[{docs}]}}"))
    };
    let refused = push(false).expect(201).await.json();
    let told = |item: &Value| json!([item["id"], item["rev"], item["error"]]);
    let expected = [
        json!([long_id, "1-x", "illegal_docid"]),
        json!(["deep", "1-x", "bad_request"]),
        json!(["rev", long_rev, "bad_request"]),
        json!(["revisions", null, "doc_validation"]),
    ];
    assert_eq!(refused.as_array().expect("a list").iter().map(told).collect::<Vec<_>>(), expected);
    for id in ["/a", "/z"] {
        assert_eq!(database.get(id).expect(200).await.json()["_rev"], json!("1-x"));
    }
    push(true).send().await.assert_status(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_revision_changes_nothing_and_keeps_its_first_body() {
    let (_server, database) = fresh().await;
    database.push(&[json!({ "_id": "a", "_rev": "1-x", "n": 1 })]).await;
    database.push(&[json!({ "_id": "a", "_rev": "1-x", "n": 2 })]).await;
    assert_eq!(database.get("/a").expect(200).await.json()["n"], json!(1));
    assert_eq!(database.info().await["update_seq"], json!(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ancestor_that_comes_late_changes_nothing() {
    let (_server, database) = fresh().await;
    let path = json!({ "start": 3, "ids": ["c", "b", "a"] });
    database.push(&[json!({ "_id": "a", "_rev": "3-c", "_revisions": path })]).await;
    database.push(&[json!({ "_id": "a", "_rev": "2-b", "n": 1 })]).await;
    assert_eq!(database.info().await["update_seq"], json!(1));
    assert_eq!(database.changes("style=all_docs").await["results"][0]["changes"], json!([{ "rev": "3-c" }]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_winner_does_not_depend_on_the_order_of_arrival() {
    let (_server, database) = fresh().await;
    let leaf = |id: &str, hash: &str, deleted: bool| {
        let path = json!({ "start": 2, "ids": [hash, "a"] });
        json!({ "_id": id, "_rev": format!("2-{hash}"), "_revisions": path, "_deleted": deleted })
    };
    let leaves = [("b", false), ("c", false), ("d", true)];
    for (id, order) in [("x", [0, 1, 2]), ("y", [2, 1, 0]), ("z", [1, 2, 0])] {
        for number in order {
            let (hash, deleted) = leaves[number];
            database.push(&[leaf(id, hash, deleted)]).await;
        }
        let row = database.changes("style=all_docs&descending=true&limit=1").await["results"][0].clone();
        assert_eq!(row["changes"], json!([{ "rev": "2-c" }, { "rev": "2-b" }, { "rev": "2-d" }]), "{id}");
        assert_eq!(database.get(&format!("/{id}")).expect(200).await.json()["_rev"], json!("2-c"), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hashes_are_printed_in_lower_case_and_of_any_length() {
    let (_server, database) = fresh().await;
    let upper = format!("1-{}", "ABCD".repeat(8));
    database.push(&[json!({ "_id": "a", "_rev": upper })]).await;
    assert_eq!(database.get("/a").expect(200).await.json()["_rev"], json!(upper.to_lowercase()));
    for (id, rev) in [("b", "1-abcdefghijklmnop"), ("c", "2-"), ("d", "0-x"), ("e", "1-Upper")] {
        database.push(&[json!({ "_id": id, "_rev": rev })]).await;
        assert_eq!(database.get(&format!("/{id}")).expect(200).await.json()["_rev"], json!(rev), "kept as it is");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_revisions_members_are_named() {
    let (_server, database) = fresh().await;
    for (revisions, reason) in [
        (json!({ "start": "x", "ids": ["a"] }), "_revisions.start isn't an integer."),
        (json!({ "start": 1, "ids": "a" }), "_revisions.ids isn't a array."),
        (json!({ "start": 1, "ids": [1] }), "RevId isn't a string"),
        (json!({ "start": 1, "ids": ["z".repeat(32)] }), "RevId isn't a valid hexadecimal"),
        (json!([]), "Bad special document member: _revisions"),
    ] {
        let docs = json!({ "docs": [{ "_id": "a", "_revisions": revisions }], "new_edits": false });
        database.post("/_bulk_docs").json(&docs).send().await.assert_error(400, "doc_validation", reason);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rev_that_fits_no_etag_is_answered_without() {
    let (_server, database) = fresh().await;
    for (id, rev) in [("a", "1-\u{1}\n"), ("b", "1-é"), ("c", "1-x\"y"), ("d", "1-x y")] {
        let request = database.request("PUT", &format!("/{id}?new_edits=false"));
        let put = request.json(&json!({ "_rev": rev })).expect(201).await;
        assert_eq!((put.rev().as_str(), put.header("etag")), (rev, None));
        let get = database.get(&format!("/{id}")).expect(200).await;
        assert_eq!((get.json(), get.header("etag")), (json!({ "_id": id, "_rev": rev }), None));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_revs_lists_what_is_missing_and_nothing_else() {
    let (_server, database) = fresh().await;
    let rev = database.put("a", &json!({})).await.rev();
    let asked = json!({ "a": [rev, "9-x"], "b": ["1-y"], "c": [] });
    let answer = database.post("/_missing_revs").json(&asked).expect(200).await;
    assert_eq!(answer.json(), json!({ "missing_revs": { "a": ["9-x"], "b": ["1-y"] } }));
    database.get("/_missing_revs").expect(405).await;
}

/// A replicator that asked for them was refused as a whole, and brought nothing.
#[tokio::test(flavor = "multi_thread")]
async fn revisions_whose_hashes_no_document_can_have_are_missing_and_are_refused_alone() {
    let (_server, database) = fresh().await;
    let rev = database.put("a", &json!({})).await.rev();
    let long = format!("1-{}", "z".repeat(129));
    let asked = json!({ "a": [long, rev, "9-x"], "b": [long], "c": [] });
    let answer = database.post("/_missing_revs").json(&asked).expect(200).await;
    assert_eq!(answer.json(), json!({ "missing_revs": { "a": ["9-x", long], "b": [long] } }));
    let answer = database.post("/_revs_diff").json(&asked).expect(200).await;
    let expected =
        json!({ "a": { "missing": ["9-x", long], "possible_ancestors": [rev] }, "b": { "missing": [long] } });
    assert_eq!(answer.json(), expected);
    let docs = json!({ "new_edits": false, "docs": [{ "_id": "b", "_rev": long }, { "_id": "d", "_rev": "1-d" }] });
    let refused = database.post("/_bulk_docs").json(&docs).expect(201).await.json();
    assert_eq!((&refused[0]["id"], refused.as_array().map(Vec::len)), (&json!("b"), Some(1)), "{refused}");
    database.get("/d").expect(200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_revs_limit_is_read_set_and_kept_to() {
    let (_server, database) = fresh().await;
    assert_eq!(database.get("/_revs_limit").expect(200).await.text(), "1000\n");
    for wrong in ["0", "-1", "1.5", "\"3\"", "x", ""] {
        database.request("PUT", "/_revs_limit").body(wrong).expect(400).await;
    }
    database.request("PUT", "/_revs_limit").body("3").expect(200).await;
    assert_eq!(database.get("/_revs_limit").expect(200).await.text(), "3\n");
    let mut rev = database.put("a", &json!({})).await.rev();
    for n in 0..5 {
        rev = database.put("a", &json!({ "_rev": rev, "n": n })).await.rev();
    }
    let revisions = &database.get("/a?revs=true").expect(200).await.json()["_revisions"];
    assert_eq!((&revisions["start"], revisions["ids"].as_array().map(Vec::len)), (&json!(6), Some(3)));
}
