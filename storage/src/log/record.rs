//! A record of the log: what one commit writes, as rows, under a checksum.

use crate::codec::Reader;
use crate::codec::meta::Identity;
use crate::rows::{self, Places, Rows};

/// Length and checksum.
pub const PREFIX_BYTES: usize = 8;
/// Where a record has its generation.
pub const GENERATION_AT: usize = PREFIX_BYTES;
/// Where a record has its number.
pub const NUMBER_AT: usize = PREFIX_BYTES + 8;

/// A record that was read.
#[derive(Debug)]
pub struct Record<'b> {
    /// Of the segment's use in which it was written.
    pub generation: u64,
    /// The number of its commit.
    pub number: u64,
    /// All of it.
    pub bytes: &'b [u8],
    /// Of its rows.
    places: Places,
}

impl Record<'_> {
    /// What it writes, in order.
    pub fn into_rows(self) -> Rows {
        Rows::of_record(self.bytes, self.places)
    }
}

/// The database that records are of. Its uuid comes first under their checksums: what another database wrote is no
/// record here, wherever files were copied to, and nobody who does not know the uuid can put one into a document.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    sum: u32,
}

impl Origin {
    pub fn of(identity: &Identity) -> Origin {
        Origin { sum: crc32c::crc32c(&identity.uuid) }
    }

    fn checksum(self, body: &[u8]) -> u32 {
        crc32c::crc32c_append(self.sum, body)
    }
}

/// Makes a record of rows: length and checksum of the rest, in 4 bytes each; generation and number, in 8 bytes each;
/// the rows. Numbers are big-endian. The checksum is CRC-32C of the database's uuid and that rest.
pub fn encode(origin: Origin, generation: u64, number: u64, rows: &mut Rows) -> &[u8] {
    let record = rows.record();
    record[GENERATION_AT..NUMBER_AT].copy_from_slice(&generation.to_be_bytes());
    record[NUMBER_AT..Rows::HEAD_BYTES].copy_from_slice(&number.to_be_bytes());
    let length = u32::try_from(record.len() - PREFIX_BYTES).unwrap_or(u32::MAX);
    let sum = origin.checksum(&record[PREFIX_BYTES..]);
    record[..4].copy_from_slice(&length.to_be_bytes());
    record[4..PREFIX_BYTES].copy_from_slice(&sum.to_be_bytes());
    record
}

/// What stands at the beginning of a record.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    /// How long the record is, with it.
    pub record_bytes: usize,
    sum: u32,
    pub generation: u64,
    pub number: u64,
}

/// Reads the head of what may be a record; `None` where these are too few bytes for one.
pub fn head(bytes: &[u8]) -> Option<Head> {
    let mut reader = Reader::new(bytes.get(..Rows::HEAD_BYTES)?);
    let (length, sum) = (reader.array().ok()?, u32::from_be_bytes(reader.array().ok()?));
    let (generation, number) = (reader.array().ok()?, reader.array().ok()?);
    let record_bytes = PREFIX_BYTES.saturating_add(u32::from_be_bytes(length) as usize);
    Some(Head { record_bytes, sum, generation: u64::from_be_bytes(generation), number: u64::from_be_bytes(number) })
}

/// Reads the record at the beginning of these bytes; `None` where there is none that is whole.
pub fn decode(origin: Origin, bytes: &[u8]) -> Option<Record<'_>> {
    let Head { record_bytes, sum, generation, number } = head(bytes)?;
    let bytes = bytes.get(..record_bytes)?;
    // Gone through before it is summed up: what only looks like a record is soon found out, and a sum takes its time.
    let places = rows::places(bytes).ok()?;
    (origin.checksum(&bytes[PREFIX_BYTES..]) == sum).then_some(Record { generation, number, bytes, places })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::sequence::SeqFormat;
    use crate::rows::tests::any_rows;

    fn origin(uuid: u8) -> Origin {
        Origin::of(&Identity { uuid: [uuid; 16], created_secs: 0, seq_format: SeqFormat::Integer })
    }

    proptest! {
        #[test]
        fn records_round_trip(generation: u64, number: u64, mut rows in any_rows(), behind: Vec<u8>) {
            let mut bytes = encode(origin(1), generation, number, &mut rows).to_vec();
            let length = bytes.len();
            bytes.extend_from_slice(&behind);
            prop_assert!(decode(origin(2), &bytes).is_none(), "another database's");
            let record = decode(origin(1), &bytes).unwrap();
            prop_assert_eq!((record.generation, record.number, record.bytes.len()), (generation, number, length));
            prop_assert_eq!(record.into_rows(), rows);
        }

        #[test]
        fn a_record_that_was_changed_or_cut_is_none(mut rows in any_rows(), at: prop::sample::Index, flip in 1u8..) {
            let bytes = encode(origin(1), 3, 9, &mut rows);
            let mut changed = bytes.to_vec();
            changed[at.index(bytes.len())] ^= flip;
            prop_assert!(decode(origin(1), &changed).is_none());
            prop_assert!(decode(origin(1), &bytes[..at.index(bytes.len())]).is_none());
        }

        #[test]
        fn garbage_is_no_record_and_never_a_panic(bytes: Vec<u8>) {
            let _ = decode(origin(1), &bytes);
        }
    }

    #[test]
    fn zeros_are_no_record() {
        assert!(decode(origin(1), &[0; 4096]).is_none());
    }
}
