//! HTTP/1.1 chunks, taken apart in place, however they were cut by reads.

use crate::Error;

/// Longest line with a chunk's size.
const LINE_MAX: usize = 256;
/// What ends a chunk.
const END: usize = 2;

/// Where in its chunks a body is.
#[derive(Default)]
pub(super) struct Chunks {
    /// Bytes of the chunk that are still to come, its end included.
    left: usize,
    /// What has come of the line with the next one's size.
    line: Vec<u8>,
    is_ended: bool,
}

impl Chunks {
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Moves what the chunks hold to the front; how many bytes that is.
    pub fn decode(&mut self, bytes: &mut [u8]) -> Result<usize, Error> {
        let (mut read, mut kept) = (0, 0);
        while read < bytes.len() && !self.is_ended {
            if self.left == 0 {
                self.line.push(bytes[read]);
                read += 1;
                self.take_line()?;
                continue;
            }
            let length = self.left.min(bytes.len() - read);
            let content = length.min(self.left.saturating_sub(END));
            bytes.copy_within(read..read + content, kept);
            kept += content;
            read += length;
            self.left -= length;
        }
        Ok(kept)
    }

    fn take_line(&mut self) -> Result<(), Error> {
        match httparse::parse_chunk_size(&self.line) {
            Ok(httparse::Status::Complete((_, 0))) => self.is_ended = true,
            Ok(httparse::Status::Complete((_, size))) => {
                self.left = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(END);
                self.line.clear();
            }
            Ok(httparse::Status::Partial) if self.line.len() < LINE_MAX => {}
            _ => {
                let line = String::from_utf8_lossy(&self.line);
                return Err(Error::Protocol(format!("{line:?} is no size of a chunk")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cut_anywhere_give_their_content() {
        let text = b"5\r\nhello\r\n1;x=y\r\n,\r\n6\r\n\r\nyou\n\r\n0\r\n\r\n";
        for piece in 1..=text.len() {
            let mut chunks = Chunks::default();
            let mut whole = Vec::new();
            for bytes in text.chunks(piece) {
                let mut bytes = bytes.to_vec();
                let kept = chunks.decode(&mut bytes).unwrap();
                whole.extend_from_slice(&bytes[..kept]);
            }
            assert_eq!(whole, b"hello,\r\nyou\n", "in pieces of {piece}");
            assert!(chunks.is_ended());
        }
        assert!(Chunks::default().decode(&mut b"data: x\r\n".to_vec()).is_err());
    }
}
