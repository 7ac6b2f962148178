//! Many subscriptions over WebSocket: what the client says changes what it gets.

use std::pin::pin;

use futures_util::future::{Fuse, FusedFuture};
use futures_util::{FutureExt, StreamExt};

use super::together::Subscriptions;
use crate::feeds::websocket::{Connection, Over};
use crate::wire::heard::CloseCode;

/// Serves a connection until it is over. `hear` does what a message asks for, one after the other.
pub async fn serve(mut connection: Connection, subscriptions: Subscriptions, hear: impl AsyncFn(String)) {
    connection.keep_texts();
    let over = follow(&mut connection, subscriptions, hear).await;
    connection.close(over).await;
}

async fn follow(connection: &mut Connection, mut subscriptions: Subscriptions, hear: impl AsyncFn(String)) -> Over {
    let mut hearing = pin!(Fuse::terminated());
    loop {
        let is_its_turn = hearing.is_terminated();
        tokio::select! {
            message = subscriptions.next() => {
                let Some(message) = message else {
                    let code = if subscriptions.ended_with_server() { CloseCode::Away } else { CloseCode::Normal };
                    return Over::Close(code, String::new());
                };
                if let Err(over) = connection.send_text(message).await {
                    return over;
                }
            }
            () = &mut hearing => {}
            text = next_text(connection, is_its_turn) => match text {
                Ok(text) => hearing.set(hear(text).fuse()),
                Err(over) => return over,
            }
        }
    }
}

/// The client's next text, where it is its turn; it is listened to in any case.
async fn next_text(connection: &mut Connection, is_its_turn: bool) -> Result<String, Over> {
    if is_its_turn { connection.text().await } else { Err(connection.listen().await) }
}
