//! The native door over WebSocket: a connection follows one feed.

use std::convert::Infallible;
use std::time::Duration;

use seqtide::{Feed, Source};
use tokio::time::timeout;

use super::{Connection, Over, late_options};
use crate::cut_short;
use crate::error::ApiError;
use crate::wire::heard::CloseCode;
use crate::wire::native;

/// How a connection's feed gets its options.
pub enum Start<O, P> {
    /// The URL has them.
    Now(O),
    /// The first message has them, read by `parse`; without one for so long, they are the defaults.
    AtMessage { parse: P, within: Duration },
}

/// Serves a connection until it is over. `open` opens its feed; when the server ends, so does who has not asked for one
/// yet.
pub async fn serve<O, S: Source>(
    mut connection: Connection,
    start: Start<O, impl FnOnce(&str) -> Result<O, ApiError>>,
    open: impl AsyncFnOnce(O) -> Result<Feed<S>, seqtide::Error>,
    server_ends: impl Future<Output = ()>,
) {
    let over = match follow(&mut connection, start, open, server_ends).await {
        Err(over) => over,
        Ok(never) => match never {},
    };
    connection.close(over).await;
}

async fn follow<O, S: Source>(
    connection: &mut Connection,
    start: Start<O, impl FnOnce(&str) -> Result<O, ApiError>>,
    open: impl AsyncFnOnce(O) -> Result<Feed<S>, seqtide::Error>,
    server_ends: impl Future<Output = ()>,
) -> Result<Infallible, Over> {
    let options = match start {
        Start::Now(options) => Ok(options),
        Start::AtMessage { parse, within } => tokio::select! {
            first = timeout(within, connection.text()) => match first {
                Ok(first) => parse(&first?),
                Err(_elapsed) => parse("{}"),
            },
            () = server_ends => return Err(Over::Close(CloseCode::Away, String::new())),
        },
    };
    connection.incoming.heard.bound_messages();
    let options = match options {
        Ok(options) => options,
        Err(refused) => return Err(refuse(&refused)),
    };
    // A function may take long to answer for its first page.
    let opened = tokio::select! {
        opened = open(options) => opened,
        over = connection.listen() => return Err(over),
    };
    let mut feed = opened.map_err(|error| refuse(&error.into()))?;
    feed.read_by(connection.client);
    let _cutting = connection.cutter.cut_when(feed.overdue());
    loop {
        if let Some(likeness) = feed.likeness()
            && let Some(socket) = connection.socket()
        {
            return Err(connection.leave(socket?, likeness, feed));
        }
        tokio::select! {
            event = feed.next() => match event {
                Ok(Some(event)) => {
                    if let Some(item) = native::item(&feed, event) {
                        connection.send(&feed, &item).await?;
                    }
                }
                Ok(None) => return Err(Over::Close(CloseCode::Normal, String::new())),
                Err(error) => {
                    cut_short::feed(&feed, &error);
                    return Err(connection.fail(&error.into()).await?);
                }
            },
            text = connection.text() => {
                text?;
                return Err(late_options());
            }
        }
    }
}

/// There is no feed, and why.
fn refuse(refused: &ApiError) -> Over {
    let code = if refused.is_passing() { CloseCode::Again } else { CloseCode::Policy };
    Over::Close(code, refused.reason().to_owned())
}
