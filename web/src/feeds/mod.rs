//! Feeds as the framework serves them: the body of an answer, and a WebSocket.

pub mod body;
mod saying_why;
pub mod stopping;
pub mod websocket;
