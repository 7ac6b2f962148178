//! Functions that are not there, cannot be run, or throw.

use serde_json::json;

use super::{changed, design, filter, fresh};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_or_not_named_rightly_is_said() {
    let (_server, database) = fresh().await;
    let broken =
        json!({ "filters": { "f": "(doc) => true", "broken": "function (", "five": "5" }, "views": { "v": {} } });
    design(&database, "d", &broken).await;
    design(&database, "erl", &json!({ "language": "erlang", "filters": { "f": "fun() -> true end." } })).await;
    let form = "`filter` must be of the form `designname/filtername`";
    let not_run =
        "functions of _design/erl cannot be run: its language is \"erlang\", and \"javascript\" is the only one here";
    for (query, status, error, reason) in [
        ("filter=d", 400, "bad_request", form),
        ("filter=d/f/g", 400, "bad_request", form),
        ("filter=none/f", 404, "not_found", "missing"),
        ("filter=d/none", 404, "not_found", "missing json key: none"),
        ("filter=_view", 400, "bad_request", "`view` filter parameter is not provided."),
        ("filter=_view&view=d", 400, "bad_request", "`view` must be of the form `designname/viewname`"),
        ("filter=_view&view=d/none", 404, "not_found", "missing json key: none"),
        ("filter=_view&view=d/v", 404, "not_found", "missing json key: map"),
        ("filter=erl/f", 400, "bad_request", not_run),
        (
            "filter=d/five",
            500,
            "function_failed",
            "filters.five of _design/d failed: TypeError: filters.five is not a function",
        ),
    ] {
        database.get(&format!("/_changes?{query}")).send().await.assert_error(status, error, reason);
    }
    for (query, reason) in [
        ("filter=d/f&view=d/v", "give either `filter` or `view`, not both"),
        ("query={}", "`query` is what a `filter` function is asked with, and none is given"),
        ("filter=d/f&query=[]", "`query` is a JSON object, not \"[]\""),
        ("filter=d", form),
        ("filter=_doc_ids", "`_doc_ids` is a filter of `_changes`; here that is the option `doc_ids`"),
        ("filter=_design", "`_design` is a filter of `_changes`; here that is the option `prefix`, as `_design/`"),
    ] {
        database.get(&format!("/_feed?{query}")).send().await.assert_error(400, "bad_request", reason);
    }
    for (query, reason) in [
        ("filter=none/f", "there is no _design/none"),
        ("filter=d/none", "_design/d has no filters.none"),
        ("view=d/none", "_design/d has no views.none"),
    ] {
        database.get(&format!("/_feed?{query}")).send().await.assert_error(404, "not_found", reason);
    }
    let broken = database.get("/_changes?filter=d/broken").expect(500).await.json();
    let reason = broken["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("filters.broken of _design/d failed: SyntaxError"), "{reason}");
    let path = "/_design/d";
    let design = database.get(path).expect(200).await.json();
    let rev = design["_rev"].as_str().expect("a rev");
    database.request("DELETE", &format!("{path}?rev={rev}")).expect(200).await;
    database.get("/_changes?filter=d/f").send().await.assert_error(404, "not_found", "deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_throws_ends_its_feed_by_name_and_no_other() {
    let (_server, database) = fresh().await;
    design(&database, "d", &filter("function (doc) { return doc.a.b; }")).await;
    let said = |id: &str| {
        format!("filters.f of _design/d failed: TypeError: cannot read property 'b' of undefined (document \"{id}\")")
    };
    database.put("a", &json!({ "a": { "b": true } })).await;
    database.get("/_changes?filter=d/f").send().await.assert_error(500, "function_failed", &said("_design/d"));

    let mut failing = database.get("/_feed?filter=d/f").header("accept", "text/event-stream").open().await;
    let mut other = database.get("/_feed").open().await;
    for feed in [&mut failing, &mut other] {
        feed.until(|text| text.contains("caught-up") && text.ends_with('\n')).await;
    }
    database.put("b", &json!({ "a": { "b": true } })).await;
    failing.until(|text| text.contains("\"id\":\"b\"")).await;
    database.put("c", &json!({})).await;
    let last = failing.until(|text| text.contains("event: error\n") && text.ends_with("\n\n")).await;
    let reason = serde_json::Value::from(said("c"));
    let error =
        format!("event: error\ndata: {{\"event\":\"error\",\"error\":\"function_failed\",\"reason\":{reason}}}\n\n");
    assert!(last.ends_with(&error), "{last}");
    assert!(!last.contains("\"id\":\"c\""), "{last}");
    other.until(|text| text.contains("\"id\":\"c\"")).await;
    assert_eq!(changed(&database, "since=1").await, ["a", "b", "c"]);
}
