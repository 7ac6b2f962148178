//! Rows on their way into the tables, already as the bytes that a record of the log has of them: what is logged, laid
//! over LMDB in memory and put into it are the same bytes, copied once.

use std::ops::Range;

use bytes::Bytes;

use crate::codec::{Malformed, Reader, put_varint};
use crate::tables::Table;

const DELETE: u8 = 0;
const PUT: u8 = 1;

/// A row to write. What a batch does is a list of these, so that whatever carries them need not know their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row<B> {
    pub table: Table,
    pub key: B,
    /// `None` removes the row, if it is there.
    pub value: Option<B>,
}

impl<B> Row<B> {
    fn map<'a, C>(&'a self, part: impl Fn(&'a B) -> C) -> Row<C> {
        Row { table: self.table, key: part(&self.key), value: self.value.as_ref().map(part) }
    }
}

/// Rows to write, in order: of two with the same key the later counts.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    /// Room for a record's head, then the rows.
    bytes: Vec<u8>,
    /// Where keys and values are.
    places: Vec<Row<Range<usize>>>,
}

/// What has rows to write into LMDB.
pub(crate) trait ToWrite {
    fn is_empty(&self) -> bool;

    /// The rows table by table, each in the order of its keys.
    fn in_order(&self) -> impl Iterator<Item = Row<&[u8]>>;
}

impl Default for Rows {
    fn default() -> Rows {
        Rows { bytes: vec![0; Rows::HEAD_BYTES], places: Vec::new() }
    }
}

impl Rows {
    /// The head that a record has before its rows.
    pub const HEAD_BYTES: usize = 24;

    /// Makes room for rows of about so many bytes.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    pub fn put(&mut self, table: Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.bytes.extend([table as u8, PUT]);
        let (key, value) = (self.part(key.as_ref()), Some(self.part(value.as_ref())));
        self.places.push(Row { table, key, value });
    }

    pub fn delete(&mut self, table: Table, key: impl AsRef<[u8]>) {
        self.bytes.extend([table as u8, DELETE]);
        let key = self.part(key.as_ref());
        self.places.push(Row { table, key, value: None });
    }

    /// Appends bytes with their length in front.
    fn part(&mut self, bytes: &[u8]) -> Range<usize> {
        put_varint(&mut self.bytes, bytes.len() as u64);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The length of a record of them.
    pub fn record_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The rows as a record has them, behind the room for its head.
    pub fn record(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The rows as they came.
    pub fn iter(&self) -> impl Iterator<Item = Row<&[u8]>> {
        self.places.iter().map(|place| place.map(|range| &self.bytes[range.clone()]))
    }

    /// The rows as they came, sharing what they are made of.
    pub fn into_shared(self) -> impl Iterator<Item = Row<Bytes>> {
        shared(Bytes::from(self.bytes), self.places)
    }
}

impl ToWrite for Rows {
    fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn in_order(&self) -> impl Iterator<Item = Row<&[u8]>> {
        let mut rows: Vec<_> = self.iter().collect();
        rows.sort_by(|one, other| (one.table, one.key).cmp(&(other.table, other.key)));
        rows.into_iter()
    }
}

/// Where the rows of a record are in the bytes behind its head.
pub(crate) fn places(bytes: &[u8]) -> Result<Vec<Row<Range<usize>>>, Malformed> {
    let mut reader = Reader::new(bytes);
    let mut places = Vec::new();
    while !reader.is_empty() {
        let table = reader.u8()?;
        let table = Table::ALL.get(usize::from(table)).copied().ok_or(Malformed("unknown table"))?;
        let kind = reader.u8()?;
        let mut part = || {
            let length: usize = reader.number()?;
            reader.bytes(length)?;
            let end = bytes.len() - reader.left();
            Ok(end - length..end)
        };
        let key = part()?;
        let value = match kind {
            PUT => Some(part()?),
            DELETE => None,
            _ => return Err(Malformed("unknown change")),
        };
        places.push(Row { table, key, value });
    }
    Ok(places)
}

/// The rows at these places, sharing what they are made of.
pub(crate) fn shared(bytes: Bytes, places: Vec<Row<Range<usize>>>) -> impl Iterator<Item = Row<Bytes>> {
    places.into_iter().map(move |place| place.map(|range| bytes.slice(range.clone())))
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Of few keys, so that some come twice.
    pub fn any_rows() -> impl Strategy<Value = Rows> {
        let key = prop::collection::vec(0u8..3, 0..3);
        let value = prop::option::of(prop::collection::vec(any::<u8>(), 0..200));
        let row = (prop::sample::select(&Table::ALL[..]), key, value);
        prop::collection::vec(row, 0..12).prop_map(|list| {
            let mut rows = Rows::default();
            for (table, key, value) in list {
                match value {
                    Some(value) => rows.put(table, key, value),
                    None => rows.delete(table, key),
                }
            }
            rows
        })
    }

    proptest! {
        #[test]
        fn rows_are_the_same_in_a_record_and_in_memory(rows in any_rows()) {
            let shared: Vec<_> = rows.clone().into_shared().collect();
            let logged = &rows.bytes[Rows::HEAD_BYTES..];
            let read = super::shared(Bytes::copy_from_slice(logged), places(logged).unwrap());
            prop_assert!(read.eq(shared.iter().cloned()));
            prop_assert!(rows.iter().eq(shared.iter().map(|row| row.map(|part| &part[..]))));
        }

        #[test]
        fn rows_are_written_in_the_order_of_their_keys_and_the_later_of_two_is_the_later(rows in any_rows()) {
            let place = |row: &Row<&[u8]>| (row.table, row.key.to_vec());
            let in_order: Vec<_> = rows.in_order().collect();
            prop_assert!(in_order.is_sorted_by_key(place));
            for row in &in_order {
                let same = |other: &Row<&[u8]>| place(other) == place(row);
                let written = in_order.iter().copied().filter(same);
                prop_assert!(written.eq(rows.iter().filter(same)));
            }
        }
    }
}
