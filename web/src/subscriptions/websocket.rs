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
            text = connection.text(), if hearing.is_terminated() => match text {
                Ok(text) => hearing.set(hear(text).fuse()),
                Err(over) => return over,
            }
        }
    }
}
