//! Revisions and places of bodies inside other values.
//!
//! A header byte says what follows: bits 0-1 the kind of place, bit 2 a text hash (else 16 bytes), bit 3 a tombstone.

use super::{Malformed, Reader, as_text, put_varint};
use crate::model::body_place::{BodyKey, BodyPlace};
use crate::model::rev::{REV_HASH_MAX_BYTES, RevHash};
use crate::model::sequence::Sequence;

const PLACE_MASK: u8 = 0b11;
const PLACE_EMPTY: u8 = 0;
const PLACE_STORED: u8 = 1;
const PLACE_UNKNOWN: u8 = 2;
const TEXT_HASH: u8 = 1 << 2;
const TOMBSTONE: u8 = 1 << 3;

/// A revision's hash, whether it is a tombstone, and its body's place.
#[derive(Debug, PartialEq)]
pub(crate) struct Revision {
    pub hash: RevHash,
    pub deleted: bool,
    pub body: BodyPlace,
}

pub(crate) fn put(out: &mut Vec<u8>, hash: &RevHash, deleted: bool, body: BodyPlace) {
    let place = match body {
        BodyPlace::Empty => PLACE_EMPTY,
        BodyPlace::Stored { .. } => PLACE_STORED,
        BodyPlace::Unknown => PLACE_UNKNOWN,
    };
    let text = if matches!(hash, RevHash::Text(_)) { TEXT_HASH } else { 0 };
    out.push(place | text | if deleted { TOMBSTONE } else { 0 });
    if text != 0 {
        out.push(hash.as_bytes().len() as u8);
    }
    out.extend_from_slice(hash.as_bytes());
    if let BodyPlace::Stored { key, bytes } = body {
        put_varint(out, key.seq.to_integer());
        put_varint(out, u64::from(key.ordinal));
        put_varint(out, u64::from(bytes));
    }
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Revision, Malformed> {
    let header = reader.u8()?;
    if header & !(PLACE_MASK | TEXT_HASH | TOMBSTONE) != 0 {
        return Err(Malformed("unknown revision flags"));
    }
    let hash = match header & TEXT_HASH {
        0 => RevHash::Md5(reader.array()?),
        _ => read_text_hash(reader)?,
    };
    let body = match header & PLACE_MASK {
        PLACE_EMPTY => BodyPlace::Empty,
        PLACE_STORED => {
            let seq = Sequence::from_integer(reader.varint()?);
            BodyPlace::Stored { key: BodyKey { seq, ordinal: reader.number()? }, bytes: reader.number()? }
        }
        PLACE_UNKNOWN => BodyPlace::Unknown,
        _ => return Err(Malformed("unknown place of a body")),
    };
    Ok(Revision { hash, deleted: header & TOMBSTONE != 0, body })
}

fn read_text_hash(reader: &mut Reader<'_>) -> Result<RevHash, Malformed> {
    let len = usize::from(reader.u8()?);
    if len > REV_HASH_MAX_BYTES {
        return Err(Malformed("revision hash too long"));
    }
    Ok(RevHash::stored_text(as_text(reader.bytes(len)?)?))
}
