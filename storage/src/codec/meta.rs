//! Values of `meta`: what is true of the whole database.

use super::{Malformed, Reader, put_varint};
use crate::model::sequence::{SeqFormat, Sequence};

const TAG: u8 = 1;

/// The newest file format this version reads and writes.
pub const FORMAT: u64 = 5;

/// From this format on every row has a checksum.
pub(crate) const FORMAT_WITH_SEALS: u64 = 2;

/// What never changes in a database's life but by moving or restoring it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Random, told apart from every other database's.
    pub uuid: [u8; 16],
    /// When it was made, in seconds since 1970: CouchDB's `instance_start_time`.
    pub created_secs: u64,
    /// How it writes its sequences.
    pub seq_format: SeqFormat,
}

/// What every write changes: one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// The sequence of the newest change, its incarnation the database's.
    pub update_seq: Sequence,
    /// Documents whose winner is live.
    pub docs: u64,
    /// Documents whose winner is a tombstone.
    pub deleted_docs: u64,
    /// Bytes of the bodies that leaves have.
    pub body_bytes: u64,
    /// Bytes of the bodies that no leaf needs any more.
    pub garbage_bytes: u64,
}

impl Counters {
    /// How many rows `by_seq` has.
    pub fn rows(&self) -> u64 {
        self.docs.saturating_add(self.deleted_docs)
    }
}

/// Encodes the counters.
pub fn encode_counters(counters: &Counters) -> Vec<u8> {
    let mut out = vec![TAG];
    out.extend_from_slice(&counters.update_seq.to_bytes());
    for number in [counters.docs, counters.deleted_docs, counters.body_bytes, counters.garbage_bytes] {
        put_varint(&mut out, number);
    }
    out
}

/// Decodes the counters.
///
/// # Errors
/// [`Malformed`].
pub fn decode_counters(value: &[u8]) -> Result<Counters, Malformed> {
    let mut reader = Reader::tagged(value, TAG)?;
    let counters = Counters {
        update_seq: Sequence::from_bytes(&reader.array()?),
        docs: reader.varint()?,
        deleted_docs: reader.varint()?,
        body_bytes: reader.varint()?,
        garbage_bytes: reader.varint()?,
    };
    reader.end()?;
    Ok(counters)
}

/// Encodes the identity.
pub fn encode_identity(identity: &Identity) -> Vec<u8> {
    let mut out = vec![TAG];
    out.extend_from_slice(&identity.uuid);
    put_varint(&mut out, identity.created_secs);
    out.push(match identity.seq_format {
        SeqFormat::Integer => 0,
        SeqFormat::Versionstamp => 1,
    });
    out
}

/// Decodes the identity.
///
/// # Errors
/// [`Malformed`].
pub fn decode_identity(value: &[u8]) -> Result<Identity, Malformed> {
    let mut reader = Reader::tagged(value, TAG)?;
    let uuid = reader.array()?;
    let created_secs = reader.varint()?;
    let seq_format = match reader.u8()? {
        0 => SeqFormat::Integer,
        1 => SeqFormat::Versionstamp,
        _ => return Err(Malformed("unknown form of sequences")),
    };
    reader.end()?;
    Ok(Identity { uuid, created_secs, seq_format })
}

/// Encodes a plain number: `revs_limit`, `format`, the rows of a block.
pub fn encode_number(number: u64) -> Vec<u8> {
    let mut out = vec![TAG];
    put_varint(&mut out, number);
    out
}

/// Decodes a plain number.
///
/// # Errors
/// [`Malformed`].
pub fn decode_number(value: &[u8]) -> Result<u64, Malformed> {
    let mut reader = Reader::tagged(value, TAG)?;
    let number = reader.varint()?;
    reader.end()?;
    Ok(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::tests::any_seq;

    proptest! {
        #[test]
        fn meta_rows_round_trip(update_seq in any_seq(), docs: u64, body_bytes: u64, uuid: [u8; 16], number: u64) {
            let counters = Counters { update_seq, docs, deleted_docs: 3, body_bytes, garbage_bytes: 0 };
            prop_assert_eq!(decode_counters(&encode_counters(&counters)), Ok(counters));
            let identity = Identity { uuid, created_secs: number, seq_format: SeqFormat::Versionstamp };
            prop_assert_eq!(decode_identity(&encode_identity(&identity)), Ok(identity));
            prop_assert_eq!(decode_number(&encode_number(number)), Ok(number));
        }
    }
}
