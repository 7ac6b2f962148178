//! How the bytes of an answer are wrapped.

use super::chunks::Chunks;
use super::frames::Frames;
use crate::Error;
use crate::head::{BodyLength, Head};

/// A body as it comes.
pub(super) enum Body {
    /// As it is; so many bytes are still to come, or it ends with the connection.
    Plain(Option<usize>),
    /// HTTP/1.1 chunks.
    Chunked(Chunks),
    /// WebSocket frames.
    Frames(Frames),
}

impl Body {
    pub fn of(head: &Head) -> Body {
        match head.body {
            _ if head.status == 101 => Body::Frames(Frames::default()),
            BodyLength::Chunked => Body::Chunked(Chunks::default()),
            BodyLength::Known(length) => Body::Plain(Some(length)),
            BodyLength::UntilClose => Body::Plain(None),
        }
    }

    /// Takes the wrapping away, in place; how many bytes are left, from the beginning.
    pub fn decode(&mut self, bytes: &mut [u8]) -> Result<usize, Error> {
        match self {
            Body::Plain(Some(left)) => {
                let length = bytes.len().min(*left);
                *left -= length;
                Ok(length)
            }
            Body::Plain(None) => Ok(bytes.len()),
            Body::Chunked(chunks) => chunks.decode(bytes),
            Body::Frames(frames) => frames.decode(bytes),
        }
    }

    /// Whether the end has come.
    pub fn is_ended(&self) -> bool {
        match self {
            Body::Plain(left) => *left == Some(0),
            Body::Chunked(chunks) => chunks.is_ended(),
            Body::Frames(frames) => frames.is_ended(),
        }
    }

    /// Takes note that the connection has ended.
    pub fn end(&self) -> Result<(), &'static str> {
        match self {
            Body::Plain(None) => Ok(()),
            _ if self.is_ended() => Ok(()),
            _ => Err("the connection ended in the middle of the answer"),
        }
    }

    /// What is to be answered to a ping.
    pub fn take_pong(&mut self) -> Option<Vec<u8>> {
        match self {
            Body::Frames(frames) => frames.take_pong(),
            _ => None,
        }
    }
}
