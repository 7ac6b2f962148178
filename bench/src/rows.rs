//! Rows in the bytes of a feed, and the documents in them, found by what each load writes into them. Nothing else of
//! the bytes is looked at.

use memchr::memmem::Finder;

use crate::documents::{Stamp, StampFinder};
use crate::feed::without;

/// How a row of Seqtide begins; its events begin otherwise.
const ROW: &[u8] = br#"{"seq":"#;
/// Digits of the longest sequence.
const DIGITS_MAX: usize = 20;

/// Finds rows.
pub(crate) struct Rows(Finder<'static>);

impl Default for Rows {
    fn default() -> Rows {
        Rows(Finder::new(ROW))
    }
}

impl Rows {
    /// Tells of every row whose sequence is there as a whole, with that where it is a number; how many bytes need not
    /// be shown again.
    pub fn take(&self, bytes: &[u8], mut found: impl FnMut(Option<u64>)) -> usize {
        for row in self.0.find_iter(bytes) {
            let behind = &bytes[row + ROW.len()..];
            if behind.len() < DIGITS_MAX && behind.iter().all(u8::is_ascii_digit) {
                return row;
            }
            found(sequence(behind));
        }
        // No whole row fits into what is shown again.
        without(ROW, bytes)
    }
}

/// The number at the beginning of these bytes, where there is one.
fn sequence(bytes: &[u8]) -> Option<u64> {
    let digits = bytes.iter().take(DIGITS_MAX).take_while(|byte| byte.is_ascii_digit());
    digits.fold(None, |value: Option<u64>, digit| {
        Some(value.unwrap_or(0).wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
    })
}

/// Finds documents.
pub(crate) struct Documents {
    /// Set where each document is in a row with a sequence.
    rows: Option<Rows>,
    stamps: StampFinder,
}

impl Documents {
    pub fn new(has_sequences: bool) -> Documents {
        Documents { rows: has_sequences.then(Rows::default), stamps: StampFinder::default() }
    }

    /// Tells of every document that is there as a whole; how many bytes need not be shown again.
    pub fn take(&self, bytes: &[u8], mut found: impl FnMut(Stamp, Option<u64>)) -> usize {
        let mut taken = 0;
        loop {
            let rest = &bytes[taken..];
            let row = match &self.rows {
                Some(rows) => rows.0.find(rest),
                None => Some(0),
            };
            let Some(row) = row else { return taken.max(without(ROW, bytes)) };
            let Some((stamp, end)) = self.stamps.find(&rest[row..]) else { return taken + row };
            found(stamp, self.rows.as_ref().and_then(|_| sequence(&rest[row + ROW.len()..])));
            taken += row + end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents;

    fn row(seq: u64, number: u64) -> Vec<u8> {
        let mut put = Vec::new();
        documents::write_put("/db", Stamp::of(number), &mut put);
        let document = &put[put.len() - documents::BYTES..];
        [format!("data: {{\"seq\":{seq},\"id\":\"x\",\"doc\":").as_bytes(), document, b"}\nid: 1\n\n"].concat()
    }

    #[test]
    fn documents_cut_anywhere_are_found_once() {
        let beat = b"event: heartbeat\ndata: {\"event\":\"heartbeat\",\"seq\":9}\n\n".to_vec();
        let text = [beat.clone(), row(10, 1), beat.clone(), row(11, 0), row(120, 2), beat].concat();
        for has_sequences in [true, false] {
            for piece in [1, 3, 50, 333, text.len()] {
                let documents = Documents::new(has_sequences);
                let (mut unread, mut found) = (Vec::new(), Vec::new());
                for bytes in text.chunks(piece) {
                    unread.extend_from_slice(bytes);
                    let taken = documents.take(&unread, |stamp, seq| found.push((stamp.number, seq)));
                    unread.drain(..taken);
                }
                let expected = [(1, 10), (0, 11), (2, 120)];
                let expected = expected.map(|(number, seq)| (number, has_sequences.then_some(seq)));
                assert_eq!(found, expected, "in pieces of {piece}");
                assert!(!has_sequences || unread.len() < ROW.len(), "what is no row is not kept");
            }
        }
    }

    #[test]
    fn rows_cut_anywhere_are_counted_once_with_their_whole_sequence() {
        let text = br#"{"results":[{"seq":7,"id":"a"},{"seq":12345,"id":"b"},{"seq":"8-g1"}],"last_seq":"8-g1"}"#;
        for piece in 1..=text.len() {
            let rows = Rows::default();
            let (mut unread, mut found) = (Vec::new(), Vec::new());
            for bytes in text.chunks(piece) {
                unread.extend_from_slice(bytes);
                let taken = rows.take(&unread, |seq| found.push(seq));
                unread.drain(..taken);
            }
            assert_eq!(found, [Some(7), Some(12_345), None], "in pieces of {piece}");
            assert!(unread.len() < ROW.len(), "what is no row is not kept");
        }
    }
}
