//! `validate_doc_update`, on every way a document can be written.

use serde_json::{Value, json};

use super::{changed, design, fresh, validator};
use seqtide_tests::{Database, Server};

const NO_BAD_ONES: &str = "function (doc) {
    if (doc.bad) throw({ forbidden: 'bad ones are not taken' });
    if (doc.who) throw({ unauthorized: 'not you' });
    if (doc.odd) throw new Error('odd');
}";

/// Throws all it is given.
const TELL: &str = "function (...given) { throw({ forbidden: JSON.stringify(given) }); }";

async fn guarded() -> (Server, Database) {
    let (server, database) = fresh().await;
    design(&database, "v", &validator(NO_BAD_ONES)).await;
    (server, database)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_write_is_validated() {
    let (_server, database) = guarded().await;
    let forbidden = (403, "forbidden", "bad ones are not taken");
    let bad = json!({ "_id": "a", "bad": 1 });
    let pushed = json!({ "_id": "a", "_rev": "1-x", "bad": 1 });
    for (method, path, body, (status, error, reason)) in [
        ("PUT", "/a", &bad, forbidden),
        ("POST", "", &bad, forbidden),
        ("PUT", "/a?new_edits=false", &pushed, forbidden),
        ("PUT", "/a", &json!({ "who": 1 }), (401, "unauthorized", "not you")),
        (
            "PUT",
            "/a",
            &json!({ "odd": 1 }),
            (500, "unknown_error", "validate_doc_update of _design/v failed: Error: odd"),
        ),
    ] {
        database.request(method, path).json(body).send().await.assert_error(status, error, reason);
    }
    let refused = json!({ "id": "a", "error": "forbidden", "reason": forbidden.2 });
    let good = database.bulk(&[bad.clone(), json!({ "_id": "b" })]).await;
    assert_eq!((&good[0], &good[1]["ok"]), (&refused, &json!(true)));
    let pushed = json!({ "new_edits": false, "docs": [pushed, { "_id": "c", "_rev": "1-x" }] });
    let answer = database.post("/_bulk_docs").json(&pushed).expect(201).await.json();
    assert_eq!(answer, json!([{ "id": "a", "rev": "1-x", "error": "forbidden", "reason": forbidden.2 }]));
    database.request("PUT", "/later?batch=ok").json(&bad).expect(202).await;
    database.request("PUT", "/b-2?batch=ok").json(&json!({})).expect(202).await;
    assert_eq!(changed(&database, "since=1").await, ["b", "c", "b-2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_and_copies_are_validated() {
    let (_server, database) = fresh().await;
    let rev = database.put("a", &json!({ "keep": true, "bad": true })).await.rev();
    let kept = "function (doc, old) { if (doc._deleted && old.keep) throw({ forbidden: 'kept' }); }";
    design(&database, "v", &validator(kept)).await;
    database.request("DELETE", &format!("/a?rev={rev}")).send().await.assert_error(403, "forbidden", "kept");
    design(&database, "v", &validator(NO_BAD_ONES)).await;
    let copy = database.request("COPY", "/a").header("destination", "b").send().await;
    copy.assert_error(403, "forbidden", "bad ones are not taken");
    database.request("DELETE", &format!("/a?rev={rev}")).expect(200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_given_the_new_and_the_old_document_the_user_and_the_security_object() {
    let (_server, database) = fresh().await;
    let rev = database.put("a", &json!({ "n": 1 })).await.rev();
    let hash = rev.split_once('-').expect("a rev").1.to_owned();
    design(&database, "v", &validator(TELL)).await;
    let told = async |method: &str, path: &str, body: Value| -> Value {
        let answer = database.request(method, path).json(&body).expect(403).await.json();
        serde_json::from_str(answer["reason"].as_str().expect("a reason")).expect("what it was given")
    };
    let user = json!({ "db": "db", "name": null, "roles": ["_admin"] });
    let security = json!({ "members": { "roles": ["_admin"] }, "admins": { "roles": ["_admin"] } });
    let old = json!({ "_id": "a", "_rev": rev, "n": 1 });
    let revisions = |start: u64, ids: &[&str]| json!({ "start": start, "ids": ids });
    let new = json!({ "_id": "b", "x": 1, "_revisions": revisions(0, &[]) });
    assert_eq!(told("PUT", "/b", json!({ "x": 1 })).await, json!([new, null, user, security]));
    let new = json!({ "_id": "a", "_rev": rev, "n": 2, "_revisions": revisions(1, &[&hash]) });
    assert_eq!(told("PUT", "/a", json!({ "_rev": rev, "n": 2 })).await, json!([new, old, user, security]));
    let pushed = json!({ "_revisions": revisions(3, &["c", "b", &hash]), "_deleted": true });
    let new = json!({ "_id": "a", "_rev": "3-c", "_revisions": revisions(3, &["c", "b", &hash]), "_deleted": true });
    assert_eq!(told("PUT", "/a?new_edits=false", pushed).await, json!([new, old, user, security]));
    // Another branch: nothing of it was here before.
    let new = json!({ "_id": "a", "_rev": "1-x", "_revisions": revisions(1, &["x"]) });
    assert_eq!(told("PUT", "/a?new_edits=false", json!({ "_rev": "1-x" })).await, json!([new, null, user, security]));
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_local_documents_and_what_is_known_are_not_asked_about() {
    let (_server, database) = fresh().await;
    let written = database.put("a", &json!({})).await;
    design(&database, "v", &validator(TELL)).await;
    database.request("PUT", "/a").json(&json!({})).expect(409).await;
    database.request("PUT", "/_local/checkpoint").json(&json!({ "bad": 1 })).expect(201).await;
    let known = json!({ "_rev": written.rev() });
    database.request("PUT", "/a?new_edits=false").json(&known).expect(201).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_one_document_in_a_request_see_each_other() {
    let (_server, database) = fresh().await;
    let rising = "function (doc, old) { if (doc.n !== (old ? old.n : 0) + 1) throw({ forbidden: 'not the next' }); }";
    design(&database, "v", &validator(rising)).await;
    let path = |start: u64, n: u64| {
        let ids: Vec<String> = (1..=start).rev().map(|generation| format!("r{generation}")).collect();
        json!({ "_id": "a", "_revisions": { "start": start, "ids": ids }, "n": n })
    };
    let docs = [path(1, 1), path(2, 2), path(3, 7), path(3, 3)];
    let answer = database.post("/_bulk_docs").json(&json!({ "new_edits": false, "docs": docs })).expect(201).await;
    let refused = json!([{ "id": "a", "rev": "3-r3", "error": "forbidden", "reason": "not the next" }]);
    assert_eq!(answer.json(), refused);
    let a = database.get("/a").expect(200).await.json();
    assert_eq!((&a["n"], &a["_rev"]), (&json!(3), &json!("3-r3")));
}

/// A revision that was allowed on one leaf must not be written on another one that came meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_moves_while_it_is_validated_is_validated_again() {
    let (_server, database) = fresh().await;
    let closed = "function (doc, old) {
        if (old && old.closed) throw({ forbidden: 'closed' });
        for (let n = 0; doc.slow && n < 5e6; n += 1);
    }";
    design(&database, "v", &validator(closed)).await;
    let push = async |doc: Value| {
        database.post("/_bulk_docs").json(&json!({ "new_edits": false, "docs": [doc] })).expect(201).await.json()
    };
    let mut moved = 0;
    for round in 0..100 {
        let id = format!("d{round}");
        database.push(&[json!({ "_id": id, "_rev": "1-a" })]).await;
        // It would be allowed on the first revision, and is not on the second, which is there before it is validated.
        let revisions = json!({ "start": 3, "ids": ["c", "b", "a"] });
        let third = json!({ "_id": id, "_revisions": revisions, "slow": true });
        let second = json!({ "_id": id, "_revisions": { "start": 2, "ids": ["b", "a"] }, "closed": true });
        let (answer, closing) = tokio::join!(push(third), push(second));
        assert_eq!(closing, json!([]));
        if answer == json!([]) {
            // It was there before the second, which has no body then.
            database.get(&format!("/{id}?rev=2-b")).expect(404).await;
            continue;
        }
        assert_eq!(answer[0]["reason"], "closed", "{answer}");
        assert_eq!(database.get(&format!("/{id}")).expect(200).await.json()["_rev"], "2-b");
        moved += 1;
        if moved == 5 {
            return;
        }
    }
    panic!("{moved} of 100 documents moved while they were validated");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_is_refused_again_to_a_request_that_is_sent_again() {
    let (_server, database) = guarded().await;
    let docs = json!({ "docs": [{ "_id": "a", "bad": 1 }, { "_id": "b" }] });
    let send = || database.post("/_bulk_docs").header("idempotency-key", "k").json(&docs).expect(201);
    let first = send().await;
    design(&database, "v", &json!({})).await;
    let again = send().await;
    assert_eq!((first.text(), again.header("idempotency-replayed")), (again.text(), Some("true")));
    assert_eq!(first.json()[0]["error"], "forbidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_that_cannot_be_run_refuse_every_write_until_they_are_mended() {
    let (mut server, database) = fresh().await;
    for (code, why) in [
        (validator("function ("), "validate_doc_update of _design/v failed: SyntaxError"),
        (json!({ "validate_doc_update": "f", "language": "erlang" }), "functions of _design/v cannot be run"),
        (validator("function () { for (;;); }"), "validate_doc_update of _design/v was stopped"),
    ] {
        design(&database, "v", &code).await;
        let answer = database.request("PUT", "/a").json(&json!({})).expect(500).await.json();
        let reason = answer["reason"].as_str().expect("a reason");
        assert!(reason.starts_with(why), "{reason}");
    }
    server.stop();
    server.restart_on_same_port_and_data();
    database.request("PUT", "/a").json(&json!({})).expect(500).await;
    design(&database, "v", &json!({})).await;
    database.put("a", &json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_design_document_must_allow_a_write() {
    let (_server, database) = guarded().await;
    design(&database, "w", &validator("function (doc) { if (!doc.type) throw({ forbidden: 'no type' }); }")).await;
    let docs = [json!({ "_id": "a", "bad": 1, "type": 1 }), json!({ "_id": "b" }), json!({ "_id": "c", "type": 1 })];
    let answer = database.bulk(&docs).await;
    let said: Vec<_> = answer.as_array().expect("items").iter().map(|item| item["reason"].as_str()).collect();
    assert_eq!(said, [Some("bad ones are not taken"), Some("no type"), None]);
}

/// Branches that begin below the ancestors that a document has at hand.
#[tokio::test(flavor = "multi_thread")]
async fn every_branch_of_a_long_history_is_validated() {
    let (_server, database) = guarded().await;
    let ids: Vec<String> = (1..=60).rev().map(|generation| format!("r{generation}")).collect();
    database.push(&[json!({ "_id": "a", "_revisions": { "start": 60, "ids": ids } })]).await;
    let branch = |hash: &str, bad: bool| {
        let doc = json!({ "_id": "a", "_revisions": { "start": 61, "ids": [hash, "r60"] } });
        if bad { json!({ "_id": "a", "_revisions": doc["_revisions"], "bad": 1 }) } else { doc }
    };
    let docs = json!({ "new_edits": false, "docs": [branch("a", false), branch("b", true), branch("c", false)] });
    let answer = database.post("/_bulk_docs").json(&docs).expect(201).await.json();
    assert_eq!(answer[0]["rev"], "61-b", "{answer}");
    assert_eq!(answer.as_array().map(Vec::len), Some(1), "{answer}");
    database.get("/a?rev=61-b").expect(404).await;
    database.get("/a?rev=61-c").expect(200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_is_found_however_the_design_document_is_written() {
    let (_server, database) = fresh().await;
    let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
    let body = format!(r#"{{"deep":{deep},"validate\u005fdoc_update":"() => {{ throw({{forbidden: 'no'}}); }}"}}"#);
    database.request("PUT", "/_design/v").header("content-type", "application/json").body(body).expect(201).await;
    database.request("PUT", "/a").json(&json!({})).send().await.assert_error(403, "forbidden", "no");
}

#[tokio::test(flavor = "multi_thread")]
async fn this_is_the_design_document_and_what_is_thrown_may_be_anything() {
    let (_server, database) = fresh().await;
    let code = "function (doc) {
        if (doc.type !== this.type) throw({ forbidden: { want: this.type } });
        if (doc.cyclic) { const why = {}; why.why = why; throw({ forbidden: why }); }
        if (doc.later) return Promise.resolve();
    }";
    design(&database, "v", &json!({ "type": "t", "validate_doc_update": code })).await;
    let doc = |more: Value| {
        let mut doc = json!({ "type": "t" });
        doc.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        doc
    };
    let docs = [doc(json!({})), json!({}), doc(json!({ "cyclic": 1 })), doc(json!({ "later": 1 })), doc(json!({}))];
    let answer = database.bulk(&docs).await;
    let said: Vec<_> = answer.as_array().expect("items").iter().map(|item| item["reason"].as_str()).collect();
    assert_eq!((said[0], said[1], said[4]), (None, Some(r#"{"want":"t"}"#), None), "{answer}");
    assert!(said[2].is_some_and(|why| why.starts_with("validate_doc_update of _design/v failed: ")), "{answer}");
    assert!(said[3].is_some_and(|why| why.contains("validate_doc_update is asynchronous")), "{answer}");
}

/// Many who go on from the same revision: one is first, and the others have a conflict, not a wait.
#[tokio::test(flavor = "multi_thread")]
async fn who_comes_late_has_a_conflict() {
    let (_server, database) = fresh().await;
    let rising = "function (doc, old) { if (old && doc.n !== old.n + 1) throw({ forbidden: 'not the next' }); }";
    design(&database, "v", &validator(rising)).await;
    database.put("a", &json!({ "n": 0 })).await;
    let count = async || {
        let mut written = 0;
        while written < 10 {
            let mut doc = database.get("/a").expect(200).await.json();
            doc["n"] = json!(doc["n"].as_u64().expect("a number") + 1);
            match database.request("PUT", "/a").json(&doc).send().await.status {
                201 => written += 1,
                409 => {}
                status => panic!("{status}"),
            }
        }
    };
    tokio::join!(count(), count(), count(), count());
    assert_eq!(database.get("/a").expect(200).await.json()["n"], 40);
}

/// What could not be found out is not remembered as an answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_keyed_request_is_not_remembered_when_a_function_fails() {
    let (_server, database) = fresh().await;
    let docs = json!({ "docs": [{ "_id": "a" }, { "_id": "b", "odd": 1 }] });
    let send = || database.post("/_bulk_docs").header("idempotency-key", "k").json(&docs);
    for (code, error) in [("throw new Error('odd')", "function_failed"), ("for (;;)", "function_stopped")] {
        design(&database, "v", &validator(&format!("function (doc) {{ if (doc.odd) {code}; }}"))).await;
        assert_eq!(send().expect(500).await.json()["error"], error);
        database.get("/a").expect(404).await;
    }
    design(&database, "v", &json!({})).await;
    let written = send().expect(201).await;
    assert_eq!((written.json()[1]["ok"].clone(), written.header("idempotency-replayed")), (json!(true), None));
}

/// Branches that come at once do not stand in each other's way.
#[tokio::test(flavor = "multi_thread")]
async fn branches_of_one_document_are_all_written() {
    let (_server, database) = guarded().await;
    database.push(&[json!({ "_id": "a", "_rev": "1-a" })]).await;
    let pushes = (0..60).map(|n| {
        let doc = json!({ "_id": "a", "_revisions": { "start": 3, "ids": [format!("c{n}"), format!("b{n}"), "x"] } });
        let request = database.post("/_bulk_docs").json(&json!({ "new_edits": false, "docs": [doc] }));
        tokio::spawn(async move { request.expect(201).await.json() })
    });
    for push in pushes.collect::<Vec<_>>() {
        assert_eq!(push.await.expect("an answer"), json!([]));
    }
    let leaves = database.get("/a?open_revs=all").header("accept", "application/json").expect(200).await.json();
    assert_eq!(leaves.as_array().map(Vec::len), Some(61));
}

/// After a purge the same revision may come again with other code.
#[tokio::test(flavor = "multi_thread")]
async fn a_design_document_that_was_purged_and_came_again_is_another_one() {
    let (_server, database) = fresh().await;
    let revision = |code: &str| json!({ "_id": "_design/v", "_rev": "1-a", "validate_doc_update": code });
    database.push(&[revision("() => {}")]).await;
    database.put("a", &json!({})).await;
    database.post("/_purge").json(&json!({ "_design/v": ["1-a"] })).expect(201).await;
    database.push(&[revision("() => { throw({ forbidden: 'no' }); }")]).await;
    database.request("PUT", "/b").json(&json!({})).send().await.assert_error(403, "forbidden", "no");
}
