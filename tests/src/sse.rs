//! A parser of server-sent events (WHATWG HTML, 9.2.6), fed in pieces of any size.

/// One dispatched event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event:` field; `message` when there was none.
    pub name: String,
    /// The `data:` lines, joined.
    pub data: String,
    /// The last `id:` seen so far on the stream.
    pub id: Option<String>,
}

/// What comes behind the line with which a feed begins that says when a browser comes back.
///
/// # Panics
/// When it begins otherwise.
pub fn behind_retry(stream: &str) -> &str {
    let retry = stream.strip_prefix("retry: ").and_then(|rest| rest.split_once('\n'));
    let (millis, rest) = retry.unwrap_or_else(|| panic!("no `retry:` at the beginning of {stream:?}"));
    millis.parse::<u64>().unwrap_or_else(|_| panic!("`retry:` is a number, not {millis:?}"));
    rest
}

/// What has been read so far. Events without a `data:` line are dropped, as a browser drops them.
#[derive(Default)]
pub struct SseParser {
    unread: Vec<u8>,
    name: String,
    data: Option<String>,
    id: Option<String>,
}

impl SseParser {
    /// Takes the next bytes and returns the events they complete.
    ///
    /// # Panics
    /// When a line is not UTF-8.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<SseEvent> {
        self.unread.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            let line = std::str::from_utf8(&line[..end]).expect("an event stream is UTF-8");
            events.extend(self.line(line.strip_suffix('\r').unwrap_or(line)));
        }
        events
    }

    fn line(&mut self, line: &str) -> Option<SseEvent> {
        if line.is_empty() {
            return self.dispatch();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "id" => self.id = Some(value.to_owned()),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let name = std::mem::take(&mut self.name);
        let data = self.data.take()?;
        let name = if name.is_empty() { "message".to_owned() } else { name };
        Some(SseEvent { name, data, id: self.id.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_one_byte_give_the_same_events() {
        let text =
            b"\ndata: {\"seq\":1}\nid: 1\n\nevent: heartbeat\ndata: \n\nid: 2\n\n: note\ndata: a\r\ndata: b\r\n\r\n";
        let whole = SseParser::default().push(text);
        let mut parser = SseParser::default();
        let bytewise: Vec<SseEvent> = text.iter().flat_map(|byte| parser.push(&[*byte])).collect();
        assert_eq!(whole, bytewise);
        let event = |name: &str, data: &str, id: &str| SseEvent {
            name: name.to_owned(),
            data: data.to_owned(),
            id: Some(id.to_owned()),
        };
        assert_eq!(
            whole,
            [event("message", "{\"seq\":1}", "1"), event("heartbeat", "", "1"), event("message", "a\nb", "2")]
        );
    }
}
