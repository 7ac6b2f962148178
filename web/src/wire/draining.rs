//! The last event for readers of Server-Sent Events, who come back by themselves, while the server is being stopped.

use std::time::Duration;

/// What stands before and behind a `draining` as an event of its own.
pub const EVENT: [&str; 2] = ["event: draining\ndata: ", ""];
/// The same as one of a list.
pub const LIST: [&str; 2] = ["data: [", "]"];

/// A Server-Sent Event that says when to come back.
pub fn come_back(retry: Duration, [before, behind]: [&str; 2]) -> String {
    let retry = retry.as_millis();
    format!("{before}{{\"event\":\"draining\",\"retry\":{retry}}}{behind}\nretry: {retry}\n\n")
}
