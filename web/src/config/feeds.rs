//! The section `[feeds]`: the times of `_changes` and `_feed`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::check::some_time;
use super::error::ConfigError;
use super::millis;

/// Times a feed keeps when its request names none. In the file each key ends in `_ms`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Feeds {
    /// Heartbeat of a `_feed`.
    #[serde(rename = "heartbeat_ms", with = "millis")]
    pub heartbeat: Duration,
    /// Longest wait of a `_changes` feed for a change. Source: CouchDB configuration, `changes_timeout`.
    #[serde(rename = "changes_timeout_ms", with = "millis")]
    pub changes_timeout: Duration,
    /// How long a WebSocket opened without options waits for its first message.
    #[serde(rename = "websocket_start_ms", with = "millis")]
    pub websocket_start: Duration,
    /// How long it is to take at most to give new rows to all live feeds; 0 for no bound.
    #[serde(rename = "round_ms", with = "millis")]
    pub round: Duration,
    /// The shortest time after which a reader of Server-Sent Events is told to come back when its connection breaks.
    #[serde(rename = "retry_ms", with = "millis")]
    pub retry: Duration,
    /// How long the end of all feeds takes at a shutdown; at 0 they end at once.
    #[serde(rename = "drain_ms", with = "millis")]
    pub drain: Duration,
}

impl Feeds {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        some_time("feeds.heartbeat_ms", self.heartbeat)?;
        some_time("feeds.changes_timeout_ms", self.changes_timeout)?;
        some_time("feeds.websocket_start_ms", self.websocket_start)?;
        some_time("feeds.retry_ms", self.retry)
    }
}
