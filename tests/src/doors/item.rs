//! What comes out of a door.

use serde_json::Value;

/// A row or an event of a feed.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A change, with the token to continue after it.
    Row {
        /// Where to continue.
        token: String,
        /// The row: `seq`, `id`, `changes` and what was asked for.
        row: Value,
    },
    /// Anything else, with the token to continue after it where it carries one.
    Event {
        /// `opened`, `heartbeat`, `caught-up`, `end`, `rewind`; `last_seq` for the last line of a continuous feed.
        name: String,
        /// Where to continue.
        token: Option<String>,
        /// The whole event.
        body: Value,
    },
}

impl Item {
    /// An item as lines and WebSocket carry it.
    pub fn from_json(body: Value) -> Item {
        if let Some(name) = body["event"].as_str() {
            return Item::Event { name: name.to_owned(), token: Some(token_of(&body["seq"])), body };
        }
        if body.get("last_seq").is_some() {
            return Item::Event { name: "last_seq".to_owned(), token: None, body };
        }
        Item::Row { token: token_of(&body["seq"]), row: body }
    }

    /// Where to continue after it.
    pub fn token(&self) -> Option<&str> {
        match self {
            Item::Row { token, .. } => Some(token),
            Item::Event { token, .. } => token.as_deref(),
        }
    }

    /// Whether it only says that the feed is alive.
    pub fn is_heartbeat(&self) -> bool {
        matches!(self, Item::Event { name, .. } if name == "heartbeat")
    }

    /// The row, if it is one.
    pub fn row(&self) -> Option<&Value> {
        match self {
            Item::Row { row, .. } => Some(row),
            Item::Event { .. } => None,
        }
    }
}

/// Whether token `later` stands for a later change than `earlier`. Both text forms of a sequence, decimal digits
/// without leading zeros and 26 hex digits, sort by length, then as text.
pub fn follows(later: &str, earlier: &str) -> bool {
    (later.len(), later) > (earlier.len(), earlier)
}

/// A `seq` member as a token.
fn token_of(seq: &Value) -> String {
    match seq {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => panic!("a seq should be a number or text, not {other}"),
    }
}
