//! `_revs_diff`: which of these revisions are missing here.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{BAD_REV, fresh};

#[tokio::test(flavor = "multi_thread")]
async fn any_known_node_is_not_missing_and_lower_leaves_may_be_ancestors() {
    let (_server, database) = fresh().await;
    let path = |start: u64, ids: &[&str]| json!({ "start": start, "ids": ids });
    database
        .push(&[
            json!({ "_id": "a", "_rev": "3-c", "_revisions": path(3, &["c", "b", "a"]) }),
            json!({ "_id": "a", "_rev": "2-x", "_revisions": path(2, &["x", "a"]), "_deleted": true }),
        ])
        .await;
    let ask = async |body: serde_json::Value| database.post("/_revs_diff").json(&body).expect(200).await.json();
    let known = json!({ "a": ["1-a", "2-b", "3-c", "2-x"] });
    assert_eq!(ask(known).await, json!({}), "leaves, ancestors and tombstones are known");
    let answer = ask(json!({ "a": ["3-c", "9-z"], "new": ["1-x"] })).await;
    let missing =
        json!({ "a": { "missing": ["9-z"], "possible_ancestors": ["3-c", "2-x"] }, "new": { "missing": ["1-x"] } });
    assert_eq!(answer, missing);
    assert_eq!(
        ask(json!({ "a": ["3-q"] })).await["a"]["possible_ancestors"],
        json!(["2-x"]),
        "below its generation only"
    );
    assert_eq!(ask(json!({ "a": ["1-q"] })).await["a"], json!({ "missing": ["1-q"] }), "none is no member");
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_named() {
    let (_server, database) = fresh().await;
    let (status, error, reason) = BAD_REV;
    let answer = database.post("/_revs_diff").json(&json!({ "a": ["bogus"] })).send().await;
    answer.assert_error(status, error, reason);
    let answer = database.post("/_revs_diff").json(&json!([1])).send().await;
    answer.assert_error(400, "bad_request", "Request body must be a JSON object");
    database.post("/_revs_diff").json(&json!({ "a": "1-x" })).send().await.assert_status(400);
}

/// Each revision was looked for along every branch: a minute and more, in one state of the database that is kept as
/// long.
#[tokio::test(flavor = "multi_thread")]
async fn many_revisions_are_compared_with_a_document_of_many_branches() {
    let (branches, deep, asked) = (20, 1000, 90_000);
    let (_server, database) = fresh().await;
    let branch = |branch: usize| {
        let ids: Vec<String> = (1..=deep).rev().map(|at| format!("{branch}-{at}")).collect();
        json!({ "_id": "a", "_rev": format!("{deep}-{}", ids[0]), "_revisions": { "start": deep, "ids": ids } })
    };
    database.push(&(0..branches).map(branch).collect::<Vec<_>>()).await;
    let known = (1..=deep).map(|at| format!("{at}-7-{at}"));
    let others = (0..asked).map(|at| format!("{}-other{at}", 1 + at % deep));
    let named: Vec<String> = known.chain(others.clone()).collect();
    let began = Instant::now();
    let answer = database.post("/_revs_diff").json(&json!({ "a": named })).expect(200).await.json();
    assert_eq!(answer["a"]["missing"], json!(others.collect::<Vec<_>>()));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}
