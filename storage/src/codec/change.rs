//! Value of `by_seq`: what a plain feed needs of a document, without a look elsewhere.
//!
//! Source of the fields: CouchDB RFC 003, "Index entry".

use super::revision::{self, Revision};
use super::{Malformed, Reader, as_text, keys, put_varint};
use crate::change::{Previous, PreviousWinner};
use crate::model::body_place::{BodyKey, BodyPlace};
use crate::model::rev::RevId;
use crate::model::sequence::Sequence;

/// Of rows that say what the document was before.
const TAG: u8 = 2;
/// Of rows from before file format 5.
const TAG_WITHOUT_PREVIOUS: u8 = 1;
/// The document was nothing before.
const NEW: u8 = 0;
/// It had a winner, of which the other bits tell.
const HAD_WINNER: u8 = 1;
const WAS_DELETED: u8 = 1 << 1;
/// Behind these bits it is said where its body lies: nowhere, as it is empty; first of what was written at its own
/// sequence; at a sequence and ordinal that follow; or where is not known.
const BODY_SHIFT: u8 = 2;
const BODY_EMPTY: u8 = 0;
const BODY_FIRST: u8 = 1;
const BODY_AT: u8 = 2;
const BODY_UNKNOWN: u8 = 3;
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
    /// What the document was before.
    pub previous: Previous,
}

/// Encodes the value of a row.
pub fn encode(row: &ChangeRow<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + row.id.len());
    put(&mut out, row);
    out
}

/// Appends the value of a row.
pub(crate) fn put(out: &mut Vec<u8>, row: &ChangeRow<'_>) {
    out.push(if row.previous == Previous::Unknown { TAG_WITHOUT_PREVIOUS } else { TAG });
    put_varint(out, u64::from(row.branches));
    put_varint(out, row.rev.generation);
    match row.body {
        BodyPlace::Stored { key, bytes } if key == first_body_at(row.seq) => {
            out.push(BODY_HERE);
            put_varint(out, u64::from(bytes));
            revision::put(out, &row.rev.hash, row.deleted, BodyPlace::Empty);
        }
        place => {
            out.push(BODY_ELSEWHERE);
            revision::put(out, &row.rev.hash, row.deleted, place);
        }
    }
    put_previous(out, row.seq, row.previous);
    out.extend_from_slice(row.id.as_bytes());
}

fn put_previous(out: &mut Vec<u8>, seq: Sequence, previous: Previous) {
    let PreviousWinner { seq: at, deleted, leaves, body } = match previous {
        Previous::Unknown => return,
        Previous::Nothing => return out.push(NEW),
        Previous::Winner(winner) => winner,
    };
    let place: u8 = match body {
        BodyPlace::Empty => BODY_EMPTY,
        BodyPlace::Stored { key, .. } if key == first_body_at(at) => BODY_FIRST,
        BodyPlace::Stored { .. } => BODY_AT,
        BodyPlace::Unknown => BODY_UNKNOWN,
    };
    out.push(HAD_WINNER | if deleted { WAS_DELETED } else { 0 } | place << BODY_SHIFT);
    put_varint(out, seq.to_integer().saturating_sub(at.to_integer()));
    put_varint(out, u64::from(leaves));
    if let BodyPlace::Stored { key, bytes } = body {
        if place == BODY_AT {
            put_varint(out, key.seq.to_integer());
            put_varint(out, u64::from(key.ordinal));
        }
        put_varint(out, u64::from(bytes));
    }
}

fn read_previous(reader: &mut Reader<'_>, seq: Sequence) -> Result<Previous, Malformed> {
    let header = reader.u8()?;
    if header == NEW {
        return Ok(Previous::Nothing);
    }
    if header & HAD_WINNER == 0 || header >> BODY_SHIFT > BODY_UNKNOWN {
        return Err(Malformed("unknown kind of what was before"));
    }
    let ago = reader.varint()?;
    let at = seq.to_integer().checked_sub(ago).filter(|_| ago > 0).map(Sequence::from_integer);
    let at = at.ok_or(Malformed("what was before does not lie below"))?;
    let leaves = reader.number()?;
    let body = match header >> BODY_SHIFT {
        BODY_EMPTY => BodyPlace::Empty,
        BODY_FIRST => BodyPlace::Stored { key: first_body_at(at), bytes: reader.number()? },
        BODY_AT => {
            let key = BodyKey { seq: Sequence::from_integer(reader.varint()?), ordinal: reader.number()? };
            BodyPlace::Stored { key, bytes: reader.number()? }
        }
        _ => BodyPlace::Unknown,
    };
    Ok(Previous::Winner(PreviousWinner { seq: at, deleted: header & WAS_DELETED != 0, leaves, body }))
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
    let without = value.first() == Some(&TAG_WITHOUT_PREVIOUS);
    let mut reader = Reader::tagged(value, if without { TAG_WITHOUT_PREVIOUS } else { TAG })?;
    let branches = reader.number()?;
    let generation = reader.varint()?;
    let bytes_here = match reader.u8()? {
        BODY_HERE => Some(reader.number()?),
        BODY_ELSEWHERE => None,
        _ => return Err(Malformed("unknown place of a body")),
    };
    let Revision { hash, deleted, body } = revision::read(&mut reader)?;
    let body = bytes_here.map_or(body, |bytes| BodyPlace::Stored { key: first_body_at(seq), bytes });
    let previous = if without { Previous::Unknown } else { read_previous(&mut reader, seq)? };
    let id = as_text(reader.rest())?;
    Ok(ChangeRow { seq, id, rev: RevId::new(generation, hash), deleted, branches, body, previous })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::tests::{any_hash, any_place, any_seq};

    fn any_previous() -> impl Strategy<Value = Previous> {
        let winner = (any_seq(), any::<bool>(), any::<u32>(), any_place(), any::<bool>(), any::<u32>());
        let winner = winner.prop_map(|(seq, deleted, leaves, place, here, bytes)| {
            let body = if here { BodyPlace::Stored { key: first_body_at(seq), bytes } } else { place };
            Previous::Winner(PreviousWinner { seq, deleted, leaves, body })
        });
        prop_oneof![Just(Previous::Nothing), Just(Previous::Unknown), winner]
    }

    proptest! {
        #[test]
        fn rows_round_trip(seq in any_seq(), id in "\\PC{1,40}", hash in any_hash(), generation: u64, deleted: bool,
                           branches: u32, place in any_place(), here: bool, bytes: u32, previous in any_previous()) {
            let body = if here { BodyPlace::Stored { key: first_body_at(seq), bytes } } else { place };
            let previous = match previous {
                Previous::Winner(winner) if winner.seq >= seq => Previous::Nothing,
                previous => previous,
            };
            let row = ChangeRow { seq, id: &id, rev: RevId::new(generation, hash), deleted, branches, body, previous };
            let value = encode(&row);
            prop_assert_eq!(decode(&keys::seq(seq), &value), Ok(row));
        }
    }
}
