//! Rows and events on their way out, put together to what a client gets at once.

use std::time::Duration;

use bytes::Bytes;
use seqtide::storage::json::write_json_string;

use crate::wire::form::Form;
use crate::wire::pieces::Pieces;

/// What stands before the first of the objects that leave together, between two, and behind the last: Server-Sent
/// Events and messages of a WebSocket have them as a JSON array.
fn around(form: Form) -> [&'static [u8]; 3] {
    match form {
        Form::Sse => [b"data: [", b",", b"]\nid: "],
        Form::Lines => [b"", b"\n", b"\n"],
        Form::Websocket => [b"[", b",", b"]"],
    }
}

/// Rows and events that leave together.
pub struct Message {
    form: Form,
    pieces: Pieces,
    is_empty: bool,
    /// How long its reader is to wait behind the end before it comes back, if it says so.
    retry: Option<Duration>,
}

impl Message {
    /// One of nothing so far.
    pub fn new(form: Form) -> Message {
        Message { form, pieces: Pieces::default(), is_empty: true, retry: None }
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// How long it is so far, in bytes.
    pub fn bytes(&self) -> usize {
        self.pieces.bytes()
    }

    /// Adds an object as it is.
    pub fn add(&mut self, json: Bytes) {
        let [before, between, _] = around(self.form);
        let is_first = std::mem::replace(&mut self.is_empty, false);
        self.pieces.add(Bytes::from_static(if is_first { before } else { between }));
        self.pieces.add(json);
    }

    /// Adds an object of one or more members as one of a subscription's.
    pub fn add_of(&mut self, sub: &Sub, json: &Bytes) {
        self.add(sub.0.clone());
        self.pieces.add(json.slice(1..));
    }

    /// Has the client wait for so long behind the end before it comes back, where the form says that beside the
    /// objects.
    pub fn come_back_after(&mut self, retry: Duration) {
        self.retry = Some(retry);
    }

    /// The whole, as it is sent. `id` is made where the form has one.
    pub fn finish(mut self, id: impl FnOnce() -> String) -> Pieces {
        let [_, _, after] = around(self.form);
        self.pieces.add(Bytes::from_static(after));
        if self.form.has_ids() {
            let retry = self.retry.map(|retry| format!("retry: {}\n", retry.as_millis())).unwrap_or_default();
            self.pieces.add(Bytes::from(format!("{}\n{retry}\n", id())));
        }
        self.pieces
    }
}

/// How a row or event begins that is a subscription's: `{"sub":NAME,`.
#[derive(Debug, Clone)]
pub struct Sub(Bytes);

impl Sub {
    /// Of the subscription with this name.
    pub fn of(name: &str) -> Sub {
        let mut json = b"{\"sub\":".to_vec();
        write_json_string(&mut json, name);
        json.push(b',');
        Sub(json.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(form: Form) -> String {
        let mut message = Message::new(form);
        assert!(message.is_empty());
        message.add(Bytes::from("{\"event\":\"x\"}"));
        message.add_of(&Sub::of("a\"b"), &Bytes::from("{\"seq\":1}"));
        let mut pieces = message.finish(|| "ID".to_owned());
        let bytes: Vec<u8> = std::iter::from_fn(|| pieces.take()).flatten().collect();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn each_form_has_the_same_objects() {
        let (event, row) = ("{\"event\":\"x\"}", "{\"sub\":\"a\\\"b\",\"seq\":1}");
        assert_eq!(whole(Form::Sse), format!("data: [{event},{row}]\nid: ID\n\n"));
        assert_eq!(whole(Form::Lines), format!("{event}\n{row}\n"));
        assert_eq!(whole(Form::Websocket), format!("[{event},{row}]"));
    }
}
