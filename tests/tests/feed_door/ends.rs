//! How a live feed ends: with an event that says why, whatever the form.

use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::{caught_up, end, fresh, live, open, write};
use seqtide_tests::doors::{FeedSocket, Item, feed_url};
use seqtide_tests::http::Opened;
use seqtide_tests::{Database, Server};

/// A feed of each form on a database whose update sequence is 1.
struct Feeds {
    lines: Opened,
    sse: Opened,
    socket: FeedSocket,
}

impl Feeds {
    async fn open(server: &Server, database: &Database) -> Feeds {
        write(database, &["a"]).await;
        let lines = live(database, "since=now").await;
        let mut sse = database.get("/_feed").header("accept", "text/event-stream").open().await;
        sse.until(|text| text.contains("caught-up") && text.ends_with("\n\n")).await;
        let mut socket = FeedSocket::open(&feed_url(server, database, "since=now")).await.expect("a WebSocket");
        assert_eq!(socket.items().await, [event(&open(1, 1))]);
        assert_eq!(socket.items().await, [event(&caught_up(1))]);
        Feeds { lines, sse, socket }
    }

    async fn assert_ended(mut self, reason: &str, code: CloseCode) {
        let end = end(1, reason);
        assert_eq!(self.lines.to_end().await.text(), format!("{}\n{}\n{end}\n", open(1, 1), caught_up(1)));
        let sse = self.sse.to_end().await;
        assert!(sse.text().ends_with(&format!("event: end\ndata: {end}\nid: 1\n\n")), "{:?}", sse.text());
        assert_eq!(self.socket.items().await, [event(&end)]);
        match self.socket.next().await {
            Some(Message::Close(Some(frame))) => assert_eq!(frame.code, code),
            other => panic!("expected a close, got {other:?}"),
        }
    }
}

fn event(text: &str) -> Item {
    Item::from_json(serde_json::from_str(text).expect("JSON"))
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_the_database_ends_its_feeds_with_deleted() {
    let (server, database) = fresh().await;
    let feeds = Feeds::open(&server, &database).await;
    database.request("DELETE", "").expect(200).await;
    feeds.assert_ended("deleted", CloseCode::Normal).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_the_server_ends_its_feeds_with_shutdown() {
    let (mut server, database) = fresh().await;
    let feeds = Feeds::open(&server, &database).await;
    server.terminate();
    feeds.assert_ended("shutdown", CloseCode::Away).await;
    assert_eq!(server.wait().code(), Some(0));
}
