//! `snapshot=true`: what there is, word where that ends, then what changes.

use serde_json::json;

use super::{caught_up, end, fresh, lines, lines_behind, live, open, write};
use seqtide_tests::doors::{FeedSocket, Item, feed_url};

fn snapshot_end(seq: u64) -> String {
    format!("{{\"event\":\"snapshot-end\",\"seq\":{seq}}}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_has_what_is_current_and_then_everything_behind_it_on_every_form() {
    let (server, database) = fresh().await;
    let rows = write(&database, &["a", "gone", "b"]).await;
    let rev = database.get("/gone").expect(200).await.json()["_rev"].clone();
    database.request("DELETE", &format!("/gone?rev={}", rev.as_str().expect("a rev"))).expect(200).await;
    let expected = [open(0, 4), rows[0].clone(), rows[2].clone(), snapshot_end(4), caught_up(4), end(4, "caught-up")];
    for since in ["", "&since=0", "&since=now"] {
        let answer = database.get(&format!("/_feed?snapshot=true&live=false{since}")).expect(200).await;
        assert_eq!(answer.text().lines().collect::<Vec<_>>(), expected, "{since}");
    }
    let request = database.get("/_feed?snapshot=true&live=false").header("accept", "text/event-stream");
    let sse = request.expect(200).await;
    let ended = format!("event: snapshot-end\ndata: {}\nid: 4\n\n", snapshot_end(4));
    assert!(sse.text().contains(&format!("id: 3\n\n{ended}event: caught-up\n")), "{:?}", sse.text());
    let mut socket =
        FeedSocket::open(&feed_url(&server, &database, "snapshot=true&live=false")).await.expect("a WebSocket");
    let items: Vec<Item> =
        expected.iter().map(|text| Item::from_json(serde_json::from_str(text).expect("JSON"))).collect();
    assert_eq!(socket.to_close().await.0, items);

    let mut feed = live(&database, "snapshot=true").await;
    let more = write(&database, &["c"]).await;
    let rev = database.get("/a").expect(200).await.json()["_rev"].clone();
    database.request("DELETE", &format!("/a?rev={}", rev.as_str().expect("a rev"))).expect(200).await;
    let text = feed.until(|text| text.contains("\"deleted\":true") && text.ends_with('\n')).await;
    assert!(text.contains(&format!("{}\n{}\n{}\n", snapshot_end(4), caught_up(4), more[0])), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_snapshot_goes_on_behind_its_token_and_tells_what_was_deleted() {
    let (_server, database) = fresh().await;
    let rows = write(&database, &["a", "b", "c"]).await;
    let rev = database.get("/a").expect(200).await.json()["_rev"].clone();
    database.request("DELETE", &format!("/a?rev={}", rev.as_str().expect("a rev"))).expect(200).await;
    for (query, token) in [("snapshot=true&live=false", Some("1")), ("snapshot=true&live=false&since=1", None)] {
        let request = database.get(&format!("/_feed?{query}")).header("accept", "text/event-stream");
        let request = match token {
            Some(token) => request.header("last-event-id", token),
            None => request,
        };
        let answer = request.expect(200).await;
        let names: Vec<&str> = answer.text().lines().filter(|line| line.starts_with("data: ")).collect();
        assert_eq!(names[1..3], [format!("data: {}", rows[1]), format!("data: {}", rows[2])]);
        assert!(names[3].contains("\"id\":\"a\"") && names[3].contains("\"deleted\":true"), "{names:?}");
        assert_eq!(names[4], format!("data: {}", snapshot_end(4)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_may_be_filtered_limited_empty_or_end_at_a_place() {
    let (_server, database) = fresh().await;
    assert_eq!(
        lines(&database, "snapshot=true&live=false").await,
        [snapshot_end(0), caught_up(0), end(0, "caught-up")]
    );
    let rows = write(&database, &["a", "x1", "b", "x2"]).await;
    let found = lines(&database, "snapshot=true&live=false&prefix=x").await;
    assert_eq!(found, [rows[1].clone(), rows[3].clone(), snapshot_end(4), caught_up(4), end(4, "caught-up")]);
    assert_eq!(lines(&database, "snapshot=true&limit=1").await, [rows[0].clone(), end(1, "limit")]);
    assert_eq!(lines(&database, "snapshot=true&until=2").await, [rows[0].clone(), rows[1].clone(), end(2, "until")]);
    let (opening, _) = lines_behind(&database, "snapshot=true&until=2&since=99").await;
    assert_eq!(opening["event"], json!("rewind"));
}
