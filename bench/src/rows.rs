//! Documents in the bytes of a feed, found by what each load writes into them. Nothing else of the bytes is looked at.

use memchr::memmem::Finder;

use crate::documents::{Stamp, StampFinder};

/// How a row of Seqtide begins; its events begin otherwise.
pub(crate) const ROW: &[u8] = br#"{"seq":"#;

/// Finds documents.
pub(crate) struct Rows {
    /// Set where each document is in a row with a sequence.
    rows: Option<Finder<'static>>,
    stamps: StampFinder,
}

impl Rows {
    pub fn new(has_sequences: bool) -> Rows {
        Rows { rows: has_sequences.then(|| Finder::new(ROW)), stamps: StampFinder::default() }
    }

    /// Tells of every document that is there as a whole; how many bytes need not be shown again.
    pub fn take(&self, bytes: &[u8], mut found: impl FnMut(Stamp, Option<u64>)) -> usize {
        let mut taken = 0;
        loop {
            let rest = &bytes[taken..];
            let row = match &self.rows {
                Some(rows) => rows.find(rest),
                None => Some(0),
            };
            // What may be the beginning of a row is kept.
            let Some(row) = row else { return taken.max((bytes.len() + 1).saturating_sub(ROW.len())) };
            let Some((stamp, end)) = self.stamps.find(&rest[row..]) else { return taken + row };
            found(stamp, self.rows.as_ref().map(|_| sequence(&rest[row + ROW.len()..])));
            taken += row + end;
        }
    }
}

/// The number at the beginning of these bytes.
fn sequence(bytes: &[u8]) -> u64 {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |value: u64, digit| value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
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
                let rows = Rows::new(has_sequences);
                let (mut unread, mut found) = (Vec::new(), Vec::new());
                for bytes in text.chunks(piece) {
                    unread.extend_from_slice(bytes);
                    let taken = rows.take(&unread, |stamp, seq| found.push((stamp.number, seq)));
                    unread.drain(..taken);
                }
                let expected = [(1, 10), (0, 11), (2, 120)];
                let expected = expected.map(|(number, seq)| (number, has_sequences.then_some(seq)));
                assert_eq!(found, expected, "in pieces of {piece}");
                assert!(!has_sequences || unread.len() < ROW.len(), "what is no row is not kept");
            }
        }
    }
}
