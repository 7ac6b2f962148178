//! How rows look as bytes: one file a kind of value. `docs/storage-format.md` draws them.
//!
//! Keys are big-endian, so that LMDB's byte order is the order meant. Each value starts with a format tag. Decoding
//! never panics: what cannot be read is [`Malformed`], which the reader names by table and key.

pub mod body;
pub mod change;
pub mod feed_index;
pub mod head;
pub mod history;
pub mod keys;
pub mod local;
pub mod meta;
pub(crate) mod revision;
pub mod times;
pub mod transaction;

/// A stored value that does not read as it should: what was wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// Reads a value front to back.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(value: &'a [u8]) -> Reader<'a> {
        Reader { rest: value }
    }

    /// Starts a value by checking its format tag.
    pub fn tagged(value: &'a [u8], tag: u8) -> Result<Reader<'a>, Malformed> {
        let mut reader = Reader::new(value);
        if reader.u8()? == tag { Ok(reader) } else { Err(Malformed("unknown format tag")) }
    }

    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(Malformed("ends too early"))?;
        self.rest = rest;
        Ok(bytes)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Malformed("ends too early"))?;
        self.rest = rest;
        Ok(*bytes)
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// An unsigned LEB128 number.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        // Most numbers are small.
        match self.rest {
            [byte @ 0..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed("number too large"))
    }

    /// A varint that must fit the type.
    pub fn number<T: TryFrom<u64>>(&mut self) -> Result<T, Malformed> {
        T::try_from(self.varint()?).map_err(|_| Malformed("number too large"))
    }

    /// Text with its length in front.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        let len = self.number()?;
        as_text(self.bytes(len)?)
    }

    /// A count, and so many of what `read` reads.
    pub fn list<T>(&mut self, read: impl FnMut(&mut Self) -> Result<T, Malformed>) -> Result<Vec<T>, Malformed> {
        let count = self.number()?;
        self.times(count, read)
    }

    /// So many of what `read` reads.
    pub fn times<T>(
        &mut self,
        count: usize,
        mut read: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        // Each takes a byte at least: a count that is wrong reserves no more than the value has.
        let mut list = Vec::with_capacity(count.min(self.rest.len()));
        for _ in 0..count {
            list.push(read(self)?);
        }
        Ok(list)
    }

    /// All that is left.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Checks that nothing is left.
    pub fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed("has bytes left over")) }
    }
}

pub(crate) fn as_text(bytes: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(bytes).map_err(|_| Malformed("text is not UTF-8"))
}

/// Appends an unsigned LEB128 number.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends text with its length in front.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::body_place::{BodyKey, BodyPlace};
    use crate::model::rev::RevHash;
    use crate::model::sequence::Sequence;

    pub(crate) fn any_hash() -> impl Strategy<Value = RevHash> {
        prop_oneof![
            any::<[u8; 16]>().prop_map(RevHash::Md5),
            "[a-zA-Z0-9é]{0,31}".prop_map(|t| RevHash::stored_text(&t))
        ]
    }

    pub(crate) fn any_seq() -> impl Strategy<Value = Sequence> {
        (any::<u8>(), 0..1u64 << 45).prop_map(|(incarnation, version)| Sequence::new(incarnation, version))
    }

    pub(crate) fn any_place() -> impl Strategy<Value = BodyPlace> {
        let stored = (any_seq(), any::<u32>(), any::<u32>())
            .prop_map(|(seq, ordinal, bytes)| BodyPlace::Stored { key: BodyKey { seq, ordinal }, bytes });
        prop_oneof![Just(BodyPlace::Empty), Just(BodyPlace::Unknown), stored]
    }

    proptest! {
        #[test]
        fn varints_round_trip(value: u64) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.varint(), Ok(value));
            prop_assert!(reader.end().is_ok());
        }

        #[test]
        fn garbage_is_malformed_and_never_a_panic(value: Vec<u8>) {
            let _ = head::decode(&value);
            let _ = head::decode_summary(&value);
            let _ = change::decode(&[0; 13], &value);
            let _ = change::decode(&value, &value);
            let _ = body::decode(&value);
            let _ = history::decode(&value);
            let _ = local::decode(&value);
            let _ = meta::decode_counters(&value);
            let _ = meta::decode_identity(&value);
            let _ = Reader::new(&value).varint();
        }
    }

    #[test]
    fn varints_beyond_64_bits_are_refused() {
        assert!(Reader::new(&[0xff; 11]).varint().is_err());
        assert!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]).varint().is_err());
    }
}
