//! Rows of `feed_index`, and the row of `meta` that says which fields it is of.

use super::{Malformed, Reader, put_text, put_varint};
use crate::model::sequence::Sequence;

const TAG: u8 = 1;

const KEY_BYTES: usize = 4 + 8 + Sequence::BYTES;

/// Where in a key the sequence starts: it is the key of the document's row in `by_seq`.
const SEQ_AT: usize = 4 + 8;

/// What a row says: the document at this sequence has the key under the field of this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexKey {
    /// The field's number.
    pub field: u32,
    /// The key.
    pub key: u64,
    /// The document's latest sequence.
    pub seq: Sequence,
}

impl IndexKey {
    /// The key of a row.
    pub fn to_bytes(self) -> [u8; KEY_BYTES] {
        let mut out = [0; KEY_BYTES];
        out[..4].copy_from_slice(&self.field.to_be_bytes());
        out[4..SEQ_AT].copy_from_slice(&self.key.to_be_bytes());
        out[SEQ_AT..].copy_from_slice(&self.seq.to_bytes());
        out
    }

    /// Reads the key of a row.
    ///
    /// # Errors
    /// [`Malformed`] when it is not 25 bytes.
    pub fn from_bytes(key: &[u8]) -> Result<IndexKey, Malformed> {
        let mut reader = Reader::new(key);
        let field = u32::from_be_bytes(reader.array()?);
        let key = u64::from_be_bytes(reader.array()?);
        let seq = Sequence::from_bytes(&reader.array()?);
        reader.end()?;
        Ok(IndexKey { field, key, seq })
    }
}

/// The sequence in the key of a row, as a key of `by_seq`.
///
/// # Errors
/// [`Malformed`] when the row's key is not 25 bytes.
pub fn seq_part(key: &[u8]) -> Result<&[u8], Malformed> {
    let part = key.get(SEQ_AT..).filter(|seq| seq.len() == Sequence::BYTES);
    part.ok_or(Malformed("key is not 25 bytes"))
}

/// Value of a row: its key says all.
pub fn encode_row() -> Vec<u8> {
    vec![TAG]
}

/// Checks the value of a row.
///
/// # Errors
/// [`Malformed`].
pub fn decode_row(value: &[u8]) -> Result<(), Malformed> {
    Reader::tagged(value, TAG)?.end()
}

/// What the index of a database's feed is of, and how far it is made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeedIndex {
    /// How the keys are made.
    pub keys_version: u64,
    /// The number that the next field gets. Numbers are given once, so that rows of a field that was given up are
    /// never taken for those of another.
    pub next_number: u32,
    /// The fields, in the order in which they were given.
    pub fields: Vec<IndexedField>,
    /// How far the fields are that are not ready.
    pub building: Option<Building>,
    /// Whether rows may be left of fields that were given up.
    pub garbage: bool,
}

/// A field of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedField {
    /// Stands for it in the rows' keys.
    pub number: u32,
    /// Whether all rows are there.
    pub ready: bool,
    /// Its path.
    pub path: String,
}

/// How far the fields are that are not ready: the rows of documents up to `done`, and above `until`, are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Building {
    /// Documents up to here were gone through.
    pub done: Sequence,
    /// The update sequence when it began.
    pub until: Sequence,
}

const GARBAGE: u8 = 1 << 0;
const BUILDING: u8 = 1 << 1;

/// Encodes what the index is of.
pub fn encode(index: &FeedIndex) -> Vec<u8> {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let mut out = vec![TAG, flag(index.garbage, GARBAGE) | flag(index.building.is_some(), BUILDING)];
    put_varint(&mut out, index.keys_version);
    put_varint(&mut out, u64::from(index.next_number));
    if let Some(Building { done, until }) = index.building {
        out.extend_from_slice(&done.to_bytes());
        out.extend_from_slice(&until.to_bytes());
    }
    put_varint(&mut out, index.fields.len() as u64);
    for IndexedField { number, ready, path } in &index.fields {
        put_varint(&mut out, u64::from(*number));
        out.push(u8::from(*ready));
        put_text(&mut out, path);
    }
    out
}

/// Decodes what the index is of.
///
/// # Errors
/// [`Malformed`].
pub fn decode(value: &[u8]) -> Result<FeedIndex, Malformed> {
    let mut reader = Reader::tagged(value, TAG)?;
    let flags = reader.u8()?;
    if flags & !(GARBAGE | BUILDING) != 0 {
        return Err(Malformed("unknown flags of an index"));
    }
    let (keys_version, next_number) = (reader.varint()?, reader.number()?);
    let building = match flags & BUILDING {
        0 => None,
        _ => Some(Building {
            done: Sequence::from_bytes(&reader.array()?),
            until: Sequence::from_bytes(&reader.array()?),
        }),
    };
    let fields = reader.list(|reader| {
        let (number, ready) = (reader.number()?, reader.u8()? != 0);
        Ok(IndexedField { number, ready, path: reader.text()?.to_owned() })
    })?;
    reader.end()?;
    Ok(FeedIndex { keys_version, next_number, fields, building, garbage: flags & GARBAGE != 0 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::tests::any_seq;

    proptest! {
        #[test]
        fn keys_round_trip_in_order(a in (any::<u32>(), any::<u64>(), any_seq()), b in (any::<u32>(), any::<u64>(), any_seq())) {
            let key = |(field, key, seq)| IndexKey { field, key, seq };
            prop_assert_eq!(IndexKey::from_bytes(&key(a).to_bytes()), Ok(key(a)));
            prop_assert_eq!(key(a).cmp(&key(b)), key(a).to_bytes().cmp(&key(b).to_bytes()));
            let bytes = key(a).to_bytes();
            prop_assert_eq!(seq_part(&bytes), Ok(&a.2.to_bytes()[..]));
        }

        #[test]
        fn definitions_round_trip(
            (keys_version, next_number, garbage) in any::<(u64, u32, bool)>(),
            building in prop::option::of((any_seq(), any_seq())),
            fields in prop::collection::vec((any::<u32>(), any::<bool>(), "\\PC{1,40}"), 0..4),
        ) {
            let fields = fields.into_iter().map(|(number, ready, path)| IndexedField { number, ready, path }).collect();
            let building = building.map(|(done, until)| Building { done, until });
            let index = FeedIndex { keys_version, next_number, fields, building, garbage };
            prop_assert_eq!(decode(&encode(&index)), Ok(index));
        }

        #[test]
        fn garbage_is_malformed_and_never_a_panic(value: Vec<u8>) {
            let _ = decode(&value);
            let _ = decode(&[&[TAG], &value[..]].concat());
            let _ = decode_row(&value);
            let _ = IndexKey::from_bytes(&value);
            let _ = seq_part(&value);
        }
    }
}
