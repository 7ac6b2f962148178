//! Value of `by_seq`: what a plain feed needs of a document, without a look elsewhere.
//!
//! Source of the fields: CouchDB RFC 003, "Index entry".

use super::revision::{self, Revision};
use super::{Malformed, Reader, as_text, keys, put_varint};
use crate::model::body_place::{BodyKey, BodyPlace};
use crate::model::rev::RevId;
use crate::model::sequence::Sequence;

const TAG: u8 = 1;
/// The winner's body is the first one written at the row's own sequence; its length follows instead of its place.
const BODY_HERE: u8 = 1;
/// The winner's body lies where the revision says.
const BODY_ELSEWHERE: u8 = 0;

/// A row of `by_seq`, its id not yet copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRow<'a> {
    /// The document's latest sequence.
    pub seq: Sequence,
    /// The document's id.
    pub id: &'a str,
    /// The winner's revision.
    pub rev: RevId,
    /// Whether the winner is a tombstone.
    pub deleted: bool,
    /// How many leaves the document has, tombstones included.
    pub branches: u32,
    /// Where the winner's body lies.
    pub body: BodyPlace,
}

/// Encodes the value of a row.
pub fn encode(row: &ChangeRow<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(32 + row.id.len());
    out.push(TAG);
    put_varint(&mut out, u64::from(row.branches));
    put_varint(&mut out, row.rev.generation);
    match row.body {
        BodyPlace::Stored { key, bytes } if key == first_body_at(row.seq) => {
            out.push(BODY_HERE);
            put_varint(&mut out, u64::from(bytes));
            revision::put(&mut out, &row.rev.hash, row.deleted, BodyPlace::Empty);
        }
        place => {
            out.push(BODY_ELSEWHERE);
            revision::put(&mut out, &row.rev.hash, row.deleted, place);
        }
    }
    out.extend_from_slice(row.id.as_bytes());
    out
}

fn first_body_at(seq: Sequence) -> BodyKey {
    BodyKey { seq, ordinal: 0 }
}

/// Decodes a row from its key and value.
///
/// # Errors
/// [`Malformed`].
pub fn decode<'a>(key: &[u8], value: &'a [u8]) -> Result<ChangeRow<'a>, Malformed> {
    let seq = keys::read_seq(key)?;
    let mut reader = Reader::tagged(value, TAG)?;
    let branches = reader.number()?;
    let generation = reader.varint()?;
    let bytes_here = match reader.u8()? {
        BODY_HERE => Some(reader.number()?),
        BODY_ELSEWHERE => None,
        _ => return Err(Malformed("unknown place of a body")),
    };
    let Revision { hash, deleted, body } = revision::read(&mut reader)?;
    let body = bytes_here.map_or(body, |bytes| BodyPlace::Stored { key: first_body_at(seq), bytes });
    let id = as_text(reader.rest())?;
    Ok(ChangeRow { seq, id, rev: RevId::new(generation, hash), deleted, branches, body })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::tests::{any_hash, any_place, any_seq};

    proptest! {
        #[test]
        fn rows_round_trip(seq in any_seq(), id in "\\PC{1,40}", hash in any_hash(), generation: u64, deleted: bool,
                           branches: u32, place in any_place(), here: bool, bytes: u32) {
            let body = if here { BodyPlace::Stored { key: first_body_at(seq), bytes } } else { place };
            let row = ChangeRow { seq, id: &id, rev: RevId::new(generation, hash), deleted, branches, body };
            let value = encode(&row);
            prop_assert_eq!(decode(&keys::seq(seq), &value), Ok(row));
        }
    }
}
