//! `leave=true`: who is told when a document leaves, on every form.

use serde_json::{Value, json};

use super::{caught_up, end, fresh, lines, live};
use seqtide_tests::Database;
use seqtide_tests::doors::{FeedSocket, feed_url};
use seqtide_tests::http::escaped;

async fn orders(database: &Database) -> (String, String) {
    let open_order = database.put("o-1", &json!({ "status": "open" })).await.rev();
    database.put("o-2", &json!({ "status": "open" })).await;
    let other = database.put("c-1", &json!({ "status": "gone" })).await.rev();
    (open_order, other)
}

fn query() -> String {
    format!("leave=true&include_docs=true&selector={}", escaped(&json!({ "status": "open" }).to_string()))
}

/// The rows of the next message.
async fn rows(socket: &mut FeedSocket) -> Vec<Value> {
    socket.items().await.iter().filter_map(|item| item.row().cloned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_leaves_is_told_once_without_its_document_and_one_that_was_never_in_is_not() {
    let (server, database) = fresh().await;
    let (order, other) = orders(&database).await;
    let mut feed = live(&database, &format!("since=0&{}", query())).await;
    let mut sse =
        database.get(&format!("/_feed?since=now&{}", query())).header("accept", "text/event-stream").open().await;
    sse.until(|text| text.contains("caught-up")).await;
    let mut socket =
        FeedSocket::open(&feed_url(&server, &database, &format!("since=now&{}", query()))).await.expect("one");
    for event in ["opened", "caught-up"] {
        assert!(format!("{:?}", socket.items().await).contains(event));
    }
    let done = database.put("o-1", &json!({ "_rev": order, "status": "done" })).await;
    let left = format!("{{\"seq\":4,\"id\":\"o-1\",\"changes\":[{{\"rev\":\"{}\"}}],\"left\":true}}", done.rev());
    // Each has come so far: what is written over before that is passed over.
    feed.until(|text| text.contains(&left) && text.ends_with('\n')).await;
    sse.until(|text| text.contains("id: 4\n\n")).await;
    let mut told = rows(&mut socket).await;
    // It has left: nothing more is told of it, nor of what was never in.
    let paid = database.put("o-1", &json!({ "_rev": done.rev(), "status": "paid" })).await.rev();
    database.request("DELETE", &format!("/o-1?rev={paid}")).expect(200).await;
    database.request("DELETE", &format!("/c-1?rev={other}")).expect(200).await;
    let rev = database.get("/o-2").expect(200).await.json()["_rev"].as_str().expect("a rev").to_owned();
    let gone = database.request("DELETE", &format!("/o-2?rev={rev}")).expect(200).await;
    let deleted = format!(
        "{{\"seq\":8,\"id\":\"o-2\",\"changes\":[{{\"rev\":\"{}\"}}],\"deleted\":true,\"left\":true}}",
        gone.rev()
    );
    let text = feed.until(|text| text.contains(&deleted) && text.ends_with('\n')).await;
    let behind: Vec<&str> = text.lines().skip_while(|line| !line.contains("caught-up")).skip(1).collect();
    assert_eq!(behind, [left.as_str(), &deleted]);
    let text = sse.until(|text| text.contains("id: 8\n\n")).await;
    assert!(text.contains(&format!("data: {left}\nid: 4\n\ndata: {deleted}\nid: 8\n\n")), "{text}");
    told.extend(rows(&mut socket).await);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|row| row["left"] == json!(true) && row.get("doc").is_none()), "{told:?}");

    // Who comes back behind what it has is told what left since; who begins is told of nothing it never had.
    let resumed = lines(&database, &format!("since=3&live=false&{}", query())).await;
    let ids: Vec<Value> = resumed
        .iter()
        .filter(|line| line.contains("\"left\""))
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].clone())
        .collect();
    assert_eq!(ids, [json!("o-1"), json!("o-2")], "{resumed:?}");
    assert_eq!(lines(&database, &format!("since=0&live=false&{}", query())).await, [caught_up(8), end(8, "caught-up")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_filter_only_deletions_leave() {
    let (_server, database) = fresh().await;
    let mut feed = live(&database, "leave=true").await;
    let rev = database.put("a", &json!({})).await.rev();
    database.request("DELETE", &format!("/a?rev={rev}")).expect(200).await;
    let text = feed.until(|text| text.contains("\"left\"") && text.ends_with('\n')).await;
    assert!(text.ends_with("\"deleted\":true,\"left\":true}\n"), "{text}");
    let refused = database.get("/_feed?leave=perhaps").expect(400).await.json();
    assert!(refused["reason"].as_str().is_some_and(|reason| reason.contains("`leave`")), "{refused}");
}
