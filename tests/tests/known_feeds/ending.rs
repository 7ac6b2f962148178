//! `DELETE /_feeds/{id}`: one feed ends, its reader learns why, and nobody else notices.

use seqtide_tests::database::fresh;
use seqtide_tests::doors::{FeedSocket, Item, feed_url};
use seqtide_tests::known_feeds::{feeds, feeds_when};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

const REVOKED: &str = r#"{"event":"end","seq":1,"reason":"revoked"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_ends_in_its_own_words_with_its_token_and_others_go_on() {
    let (server, database) = fresh().await;
    let changes = |feed: &str| format!("/_changes?feed={feed}&since=now&heartbeat=60000");
    let mut streams = Vec::new();
    for (path, accept, last) in [
        (changes("continuous"), "*/*", "{\"last_seq\":1,\"pending\":0}\n\n".to_owned()),
        (changes("eventsource"), "*/*", "id: 1\n\n\n".to_owned()),
        ("/_feed".to_owned(), "text/event-stream", format!("event: end\ndata: {REVOKED}\nid: 1\n\n")),
        ("/_feed".to_owned(), "*/*", format!("{REVOKED}\n")),
    ] {
        streams.push((database.get(&path).header("accept", accept).open().await, last));
    }
    let mut socket = FeedSocket::open(&feed_url(&server, &database, "since=now")).await.expect("a WebSocket");
    let mut other = database.get("/_feed").open().await;
    let all_live =
        |count: usize| move |feeds: &[Value]| feeds.len() == count && feeds.iter().all(|feed| feed["state"] == "live");
    let listed = feeds_when(&database.api, all_live(6)).await;
    database.put("a", &json!({})).await;
    for (stream, _) in &mut streams {
        stream.until(|text| text.contains("\"id\":\"a\"") && text.ends_with('\n')).await;
    }
    let stays = listed.iter().rfind(|feed| feed["kind"] == "lines").expect("two of lines")["id"].clone();
    for feed in listed.iter().filter(|feed| feed["id"] != stays) {
        database.api.request("DELETE", &format!("/_feeds/{}", feed["id"])).expect(200).await;
    }
    for (stream, last) in streams {
        let answer = stream.to_end().await;
        assert!(answer.text().ends_with(&last), "{last:?} ends {:?}", answer.text());
    }
    let (items, code) = socket.to_close().await;
    let revoked = Item::from_json(serde_json::from_str(REVOKED).expect("JSON"));
    assert_eq!((items.last(), code), (Some(&revoked), CloseCode::Normal));
    let left = feeds_when(&database.api, |feeds| feeds.len() == 1).await;
    assert_eq!(left[0]["id"], stays);
    database.put("b", &json!({})).await;
    other.until(|text| text.contains("\"id\":\"b\"")).await;
    for feed in listed.iter().filter(|feed| feed["id"] != stays) {
        database.api.request("DELETE", &format!("/_feeds/{}", feed["id"])).expect(404).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_longpoll_that_is_ended_is_answered_with_its_token() {
    let (_server, database) = fresh().await;
    database.put("a", &json!({})).await;
    let poll = database.get("/_changes?feed=longpoll&since=now&heartbeat=60000").open().await;
    let id = feeds(&database.api).await[0]["id"].clone();
    database.api.request("DELETE", &format!("/_feeds/{id}")).expect(200).await;
    let answer = poll.to_end().await.json();
    assert_eq!((&answer["results"], &answer["last_seq"]), (&json!([]), &json!(1)));
}
