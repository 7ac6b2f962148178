//! What the engine and a worker process say to each other: JSON in frames, over the worker's standard input and output.
//!
//! A frame is its length in 4 bytes, big-endian, and that many bytes. The engine asks, the worker answers, one at a
//! time. A worker runs what strangers have written, so nothing it says is trusted beyond its form.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The longest frame, in bytes: a page of documents with room to spare.
pub const FRAME_BYTES_MAX: usize = 128 << 20;
/// The longest message of a function that is passed on, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 1000;
/// Most design documents a worker keeps compiled.
pub const DESIGNS_MAX: usize = 8;

/// What a worker is asked.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// Which design document: another one, or another revision of it, has another key.
    pub design: String,
    /// The design document; absent when the worker has been given it before. One that is given when the worker has
    /// [`DESIGNS_MAX`] makes it forget all of them first.
    pub source: Option<Box<RawValue>>,
    /// What to run.
    pub call: Call,
}

/// A function of a design document, and what it is given.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// `filters.NAME(doc, req)`, for each document.
    Filter {
        /// The function's name.
        name: String,
        /// What the feed was asked for, an object.
        req: Box<RawValue>,
        /// The documents.
        docs: Vec<Box<RawValue>>,
    },
    /// `views.NAME.map(doc)`, for each document: whether it emits.
    Map {
        /// The view's name.
        name: String,
        /// The documents.
        docs: Vec<Box<RawValue>>,
    },
    /// `validate_doc_update(new, old, user, security)`, for each new revision.
    Validate {
        /// What is to be written.
        writes: Vec<Proposed>,
        /// Who writes it.
        user: Box<RawValue>,
        /// The database's security object.
        security: Box<RawValue>,
    },
}

/// A revision that is to be written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Proposed {
    /// The document as it is to be.
    pub new: Box<RawValue>,
    /// The document it goes on from, or `null`.
    pub old: Box<RawValue>,
}

impl Call {
    /// How many documents it is about.
    pub fn documents(&self) -> usize {
        match self {
            Call::Filter { docs, .. } | Call::Map { docs, .. } => docs.len(),
            Call::Validate { writes, .. } => writes.len(),
        }
    }

    /// The function's place in its design document.
    pub fn place(&self) -> String {
        match self {
            Call::Filter { name, .. } => format!("filters.{name}"),
            Call::Map { name, .. } => format!("views.{name}.map"),
            Call::Validate { .. } => "validate_doc_update".to_owned(),
        }
    }
}

impl Proposed {
    /// How many bytes of JSON it is.
    pub fn bytes(&self) -> usize {
        self.new.get().len() + self.old.get().len()
    }
}

/// What a worker answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Of each document, whether it passes.
    Passes(Vec<bool>),
    /// Of each new revision, whether it may be written.
    Verdicts(Vec<Verdict>),
    /// The function could not be compiled, or a filter threw.
    Failed(String),
    /// The function was cut short by a limit. The worker is of no use any more.
    Stopped(String),
}

/// Whether a revision may be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may.
    Allowed,
    /// The function threw `{forbidden: …}`.
    Forbidden(String),
    /// The function threw `{unauthorized: …}`.
    Unauthorized(String),
    /// The function threw something else.
    Failed(String),
}

/// Writes a message as a frame.
///
/// # Errors
/// [`io::Error`], also when the message is longer than a frame may be.
pub fn write_frame(out: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    out.write_all(&frame(message)?)?;
    out.flush()
}

/// A message as a frame.
///
/// # Errors
/// [`io::Error`] when it is longer than a frame may be.
pub fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let length = frame.len() - 4;
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, too_long(length)));
    }
    frame[..4].copy_from_slice(&(length as u32).to_be_bytes());
    Ok(frame)
}

/// Reads a frame's message; `None` at the end of the input.
///
/// # Errors
/// [`io::Error`], also for what is no message.
pub fn read_frame<T: for<'a> Deserialize<'a>>(input: &mut impl Read) -> io::Result<Option<T>> {
    let mut head = [0; 4];
    match input.read_exact(&mut head) {
        Err(end) if end.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut body = vec![0; body_length(head)?];
    input.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}

/// How long the frame behind a head is.
///
/// # Errors
/// [`io::Error`] when it is longer than a frame may be.
pub fn body_length(head: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_be_bytes(head) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, too_long(length)));
    }
    Ok(length)
}

fn too_long(length: usize) -> String {
    format!("a frame of {length} bytes: at most {FRAME_BYTES_MAX} are allowed")
}

/// Cuts a message that a function made down to what is passed on.
pub fn shortened(message: &str) -> String {
    match message.char_indices().find(|(at, char)| at + char.len_utf8() > MESSAGE_BYTES_MAX) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn frames_go_through_a_pipe() {
        let docs = vec![raw(r#"{"_id":"a","n":1.0}"#), raw("{}")];
        let call = Call::Filter { name: "f".into(), req: raw(r#"{"query":{}}"#), docs };
        let request = Request { design: "k".into(), source: Some(raw("{}")), call };
        let mut pipe = Vec::new();
        write_frame(&mut pipe, &request).unwrap();
        write_frame(&mut pipe, &Answer::Passes(vec![true, false])).unwrap();
        let mut input = &pipe[..];
        let read: Request = read_frame(&mut input).unwrap().unwrap();
        assert_eq!((read.design.as_str(), read.call.place().as_str()), ("k", "filters.f"));
        let Call::Filter { docs, .. } = read.call else { panic!("another call") };
        assert_eq!(docs[0].get(), r#"{"_id":"a","n":1.0}"#);
        assert_eq!(read_frame::<Answer>(&mut input).unwrap(), Some(Answer::Passes(vec![true, false])));
        assert_eq!(read_frame::<Answer>(&mut input).unwrap(), None);
    }

    #[test]
    fn what_is_too_long_or_cut_off_is_refused() {
        assert!(body_length([0xff; 4]).is_err());
        assert!(read_frame::<Answer>(&mut &[0, 0, 0, 9, b'"'][..]).is_err());
        assert_eq!(shortened(&"é".repeat(MESSAGE_BYTES_MAX)).len(), MESSAGE_BYTES_MAX + "…".len());
        assert_eq!(shortened("short"), "short");
    }
}
