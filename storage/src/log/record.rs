//! A record of the log: what one commit writes, as rows, under a checksum.

use crate::codec::meta::Identity;
use crate::codec::{Malformed, Reader, put_varint};
use crate::tables::{Row, RowChange, Rows, Table};

/// Length and checksum.
pub const HEAD_BYTES: usize = 8;
/// A record takes no more than its rows do, as [`row_bytes`] counts them, and this.
pub const OWN_BYTES: usize = HEAD_BYTES + 16;
/// Where a record has its generation.
pub const GENERATION_AT: usize = HEAD_BYTES;
/// Where a record has its number.
pub const NUMBER_AT: usize = HEAD_BYTES + 8;

const DELETE: u8 = 0;
const PUT: u8 = 1;

/// A record that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Of the segment's use in which it was written.
    pub generation: u64,
    /// The number of its commit.
    pub number: u64,
    /// What it writes, in order. What was appended is put.
    pub rows: Vec<Row>,
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

/// A record as bytes: length and checksum of the rest, in 4 bytes each, then generation and number in 8 bytes each, all
/// big-endian, then the rows. The checksum is CRC-32C of the database's uuid and that rest.
pub fn encode(origin: Origin, generation: u64, number: u64, rows: &Rows) -> Vec<u8> {
    let bytes: usize = rows.0.iter().map(row_bytes).sum();
    let mut out = Vec::with_capacity(OWN_BYTES + bytes);
    out.extend_from_slice(&[0; HEAD_BYTES]);
    out.extend_from_slice(&generation.to_be_bytes());
    out.extend_from_slice(&number.to_be_bytes());
    for Row { table, key, change } in &rows.0 {
        out.push(*table as u8);
        match change {
            RowChange::Put(value) | RowChange::Append(value) => {
                out.push(PUT);
                put_bytes(&mut out, key);
                put_bytes(&mut out, value);
            }
            RowChange::Delete => {
                out.push(DELETE);
                put_bytes(&mut out, key);
            }
        }
    }
    let length = u32::try_from(out.len() - HEAD_BYTES).unwrap_or(u32::MAX);
    out[..4].copy_from_slice(&length.to_be_bytes());
    let sum = origin.checksum(&out[HEAD_BYTES..]);
    out[4..HEAD_BYTES].copy_from_slice(&sum.to_be_bytes());
    out
}

/// The most bytes a row takes in a record, and about as many as it takes in memory.
pub fn row_bytes(row: &Row) -> usize {
    let value = match &row.change {
        RowChange::Put(value) | RowChange::Append(value) => value.len(),
        RowChange::Delete => 0,
    };
    row.key.len() + value + 12
}

/// Reads the record at the beginning of these bytes, and how long it is; `None` where there is none that is whole.
pub fn decode(origin: Origin, bytes: &[u8]) -> Option<(Record, usize)> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(*length) as usize;
    let body = rest.get(..length)?;
    // Read before it is summed up: what only looks like a record is soon found out, and a sum takes its time.
    let record = read(body).ok()?;
    (origin.checksum(body) == u32::from_be_bytes(*sum)).then_some((record, HEAD_BYTES + length))
}

fn read(body: &[u8]) -> Result<Record, Malformed> {
    let mut reader = Reader::new(body);
    let (generation, number) = (u64::from_be_bytes(reader.array()?), u64::from_be_bytes(reader.array()?));
    let mut rows = Vec::new();
    while !reader.is_empty() {
        let table = reader.u8()?;
        let table = Table::ALL.get(usize::from(table)).copied().ok_or(Malformed("unknown table"))?;
        let kind = reader.u8()?;
        let key = read_bytes(&mut reader)?;
        let change = match kind {
            PUT => RowChange::Put(read_bytes(&mut reader)?),
            DELETE => RowChange::Delete,
            _ => return Err(Malformed("unknown change")),
        };
        rows.push(Row { table, key, change });
    }
    Ok(Record { generation, number, rows })
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn read_bytes(reader: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
    let length = reader.number()?;
    Ok(reader.bytes(length)?.to_vec())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::sequence::SeqFormat;

    pub fn any_rows() -> impl Strategy<Value = Vec<Row>> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..40);
        let change = prop_oneof![bytes().prop_map(RowChange::Put), Just(RowChange::Delete)];
        let row = (prop::sample::select(&Table::ALL[..]), bytes(), change);
        prop::collection::vec(row.prop_map(|(table, key, change)| Row { table, key, change }), 0..8)
    }

    fn origin(uuid: u8) -> Origin {
        Origin::of(&Identity { uuid: [uuid; 16], created_secs: 0, seq_format: SeqFormat::Integer })
    }

    proptest! {
        #[test]
        fn records_round_trip(generation: u64, number: u64, rows in any_rows(), behind: Vec<u8>) {
            let mut bytes = encode(origin(1), generation, number, &Rows(rows.clone()));
            let length = bytes.len();
            bytes.extend_from_slice(&behind);
            prop_assert_eq!(decode(origin(2), &bytes), None, "another database's");
            prop_assert_eq!(decode(origin(1), &bytes), Some((Record { generation, number, rows }, length)));
        }

        #[test]
        fn a_record_that_was_changed_or_cut_is_none(rows in any_rows(), at: prop::sample::Index, flip in 1u8..) {
            let bytes = encode(origin(1), 3, 9, &Rows(rows));
            let mut changed = bytes.clone();
            changed[at.index(bytes.len())] ^= flip;
            prop_assert_eq!(decode(origin(1), &changed), None);
            prop_assert_eq!(decode(origin(1), &bytes[..at.index(bytes.len())]), None);
        }

        #[test]
        fn garbage_is_no_record_and_never_a_panic(bytes: Vec<u8>) {
            let _ = decode(origin(1), &bytes);
        }
    }

    #[test]
    fn zeros_are_no_record() {
        assert_eq!(decode(origin(1), &[0; 4096]), None);
    }
}
