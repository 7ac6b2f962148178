//! WebSocket frames of a server, taken apart in place, however they were cut by reads. What their messages hold becomes
//! one run of bytes: a reader of rows does not need to know where a message ends.

use std::io::Cursor;

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, OpCode};

use crate::Error;

/// Longest head of a frame.
const HEAD_MAX: usize = 14;
/// Longest content of a control frame.
const CONTROL_MAX: u64 = 125;

/// Where in its frames a feed is.
#[derive(Default)]
pub(super) struct Frames {
    /// Bytes of the frame that are still to come.
    left: u64,
    /// Set in a control frame.
    control: Option<Control>,
    /// What has come of the next frame's head, or of a control frame's content.
    part: Vec<u8>,
    pong: Option<Vec<u8>>,
    is_ended: bool,
}

impl Frames {
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    pub fn take_pong(&mut self) -> Option<Vec<u8>> {
        self.pong.take()
    }

    /// Moves what the messages hold to the front; how many bytes that is.
    pub fn decode(&mut self, bytes: &mut [u8]) -> Result<usize, Error> {
        let (mut read, mut kept) = (0, 0);
        while read < bytes.len() && !self.is_ended {
            if self.left == 0 {
                self.part.push(bytes[read]);
                read += 1;
                self.take_head()?;
                continue;
            }
            let length = (bytes.len() - read).min(usize::try_from(self.left).unwrap_or(usize::MAX));
            if self.control.is_some() {
                self.part.extend_from_slice(&bytes[read..read + length]);
            } else {
                bytes.copy_within(read..read + length, kept);
                kept += length;
            }
            read += length;
            self.left -= length as u64;
            self.end_control()?;
        }
        Ok(kept)
    }

    fn take_head(&mut self) -> Result<(), Error> {
        let unreadable = |why: String| Error::Protocol(format!("a WebSocket frame cannot be read: {why}"));
        let parsed = FrameHeader::parse(&mut Cursor::new(&self.part)).map_err(|why| unreadable(why.to_string()))?;
        let Some((head, length)) = parsed else {
            let is_too_long = self.part.len() >= HEAD_MAX;
            return if is_too_long { Err(unreadable("its head has no end".to_owned())) } else { Ok(()) };
        };
        self.part.clear();
        self.left = length;
        self.control = match head.opcode {
            OpCode::Control(_) if length > CONTROL_MAX => {
                return Err(unreadable(format!("a control frame of {length} bytes")));
            }
            OpCode::Control(control) => Some(control),
            OpCode::Data(_) => None,
        };
        self.end_control()
    }

    /// Does what a control frame asks for, once it is there as a whole.
    fn end_control(&mut self) -> Result<(), Error> {
        if self.left > 0 {
            return Ok(());
        }
        match self.control.take() {
            Some(Control::Close) => self.is_ended = true,
            Some(Control::Ping) => self.pong = Some(pong(&self.part)?),
            _ => {}
        }
        self.part.clear();
        Ok(())
    }
}

/// A pong with what the ping held. A client masks its frames; with zeros that leaves them as they are.
fn pong(content: &[u8]) -> Result<Vec<u8>, Error> {
    let opcode = OpCode::Control(Control::Pong);
    let head = FrameHeader { opcode, mask: Some([0; 4]), ..FrameHeader::default() };
    let mut frame = Vec::new();
    head.format(content.len() as u64, &mut frame).map_err(|why| Error::Protocol(format!("a pong: {why}")))?;
    frame.extend_from_slice(content);
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_cut_anywhere_give_their_content_and_pings_are_answered() {
        let long = "x".repeat(300);
        let mut text = b"\x81\x03[1]\x89\x02hi\x01\x02[2\x80\x01]\x81\x7e\x01\x2c".to_vec();
        text.extend_from_slice(long.as_bytes());
        text.extend_from_slice(b"\x88\x02\x03\xe8");
        for piece in [1, 2, 3, 7, 100, text.len()] {
            let mut frames = Frames::default();
            let (mut whole, mut pongs) = (Vec::new(), Vec::new());
            for bytes in text.chunks(piece) {
                let mut bytes = bytes.to_vec();
                let kept = frames.decode(&mut bytes).unwrap();
                whole.extend_from_slice(&bytes[..kept]);
                pongs.extend(frames.take_pong());
            }
            assert_eq!(whole, format!("[1][2]{long}").as_bytes(), "in pieces of {piece}");
            assert_eq!(pongs, [b"\x8a\x82\0\0\0\0hi".to_vec()]);
            assert!(frames.is_ended());
        }
    }
}
