//! Rows on their way into the tables, already as the bytes that a record of the log has of them: what is logged, laid
//! over LMDB in memory and put into it are the same bytes, copied once.

use std::sync::Arc;

use crate::codec::{Malformed, Reader, put_varint};
use crate::tables::Table;

const DELETE: u8 = 0;
const PUT: u8 = 1;

/// A row to write. What a batch does is a list of these, so that whatever carries them need not know their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    pub table: Table,
    pub key: &'a [u8],
    /// `None` removes the row, if it is there.
    pub value: Option<&'a [u8]>,
}

impl<'a> Row<'a> {
    /// Reads a row as a record has it.
    fn read(reader: &mut Reader<'a>) -> Result<Row<'a>, Malformed> {
        let table = usize::from(reader.u8()?);
        let table = Table::ALL.get(table).copied().ok_or(Malformed("unknown table"))?;
        let kind = reader.u8()?;
        let mut part = || {
            let length = reader.number()?;
            reader.bytes(length)
        };
        let key = part()?;
        let value = match kind {
            PUT => Some(part()?),
            DELETE => None,
            _ => return Err(Malformed("unknown change")),
        };
        Ok(Row { table, key, value })
    }

    /// The row at this place, where one is.
    fn at(bytes: &'a [u8], place: usize) -> Row<'a> {
        Row::read(&mut Reader::new(&bytes[place..])).expect("it was written there, or has been read there before")
    }
}

/// Rows to write, in order: of two with the same key the later counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rows {
    /// Room for a record's head, then the rows.
    bytes: Vec<u8>,
    places: Places,
}

/// Where the rows of a record begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Places {
    begins: Vec<usize>,
    /// How many of the rows may lie anywhere in their tables.
    scattered: usize,
}

impl Places {
    fn push(&mut self, begin: usize, table: Table, is_put: bool) {
        self.begins.push(begin);
        self.scattered += usize::from(lies_anywhere(table, is_put));
    }

    fn len(&self) -> usize {
        self.begins.len()
    }
}

/// What has rows to write into LMDB.
pub(crate) trait ToWrite {
    fn is_empty(&self) -> bool;

    /// The rows table by table, each in the order of its keys.
    fn in_order(&self) -> impl Iterator<Item = Row<'_>>;

    /// Whether they are so many that the disk is to take them bit by bit.
    fn are_many(&self) -> bool {
        false
    }

    /// Whether somebody waits until they are written, or soon will.
    fn are_awaited(&self) -> bool {
        true
    }
}

impl Default for Rows {
    fn default() -> Rows {
        Rows { bytes: vec![0; Rows::HEAD_BYTES], places: Places::default() }
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
        self.begin(table, PUT);
        self.part(key.as_ref());
        self.part(value.as_ref());
    }

    /// The same, with a value that this appends.
    pub fn put_written(&mut self, table: Table, key: impl AsRef<[u8]>, append: impl FnOnce(&mut Vec<u8>)) {
        self.begin(table, PUT);
        self.part(key.as_ref());
        let begin = self.bytes.len();
        append(&mut self.bytes);
        let end = self.bytes.len();
        // Its length goes in front of it, and is known by now.
        put_varint(&mut self.bytes, (end - begin) as u64);
        let length_bytes = self.bytes.len() - end;
        self.bytes[begin..].rotate_right(length_bytes);
    }

    pub fn delete(&mut self, table: Table, key: impl AsRef<[u8]>) {
        self.begin(table, DELETE);
        self.part(key.as_ref());
    }

    fn begin(&mut self, table: Table, kind: u8) {
        self.places.push(self.bytes.len(), table, kind == PUT);
        self.bytes.extend([table as u8, kind]);
    }

    /// Appends bytes with their length in front.
    fn part(&mut self, bytes: &[u8]) {
        put_varint(&mut self.bytes, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// The rows of a record, which begin at these places.
    pub fn of_record(record: &[u8], places: Places) -> Rows {
        Rows { bytes: record.to_vec(), places }
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// How many of them may each lie on a page of their own among all that are written with them: rows that are taken
    /// away, and documents, say, whose ids come in any order. Others are put in behind those of their table, or are
    /// few.
    pub fn scattered(&self) -> usize {
        self.places.scattered
    }

    /// The length of a record of them.
    pub fn record_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// What they take in memory for as long as one of them is shared.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The rows as a record has them, behind the room for its head.
    pub fn record(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The rows as they came.
    pub fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        self.places.begins.iter().map(|&place| Row::at(&self.bytes, place))
    }
}

impl ToWrite for Rows {
    fn is_empty(&self) -> bool {
        self.places.begins.is_empty()
    }

    fn in_order(&self) -> impl Iterator<Item = Row<'_>> {
        let mut rows: Vec<_> = self.iter().collect();
        rows.sort_by(|one, other| (one.table, one.key).cmp(&(other.table, other.key)));
        rows.into_iter()
    }
}

/// Whether rows of this table that are put in, or taken away, may each have a page to itself.
fn lies_anywhere(table: Table, is_put: bool) -> bool {
    let puts_anywhere = match table {
        Table::Docs | Table::History | Table::Local | Table::Transactions | Table::FeedIndex => true,
        Table::BySeq | Table::Bodies | Table::TransactionAges | Table::Times => false,
        // In no order either, but on few pages.
        Table::Blocks | Table::Meta => false,
    };
    puts_anywhere || !is_put
}

/// Goes through a record's rows; gives where each of them begins.
///
/// # Errors
/// [`Malformed`] when it has something else behind its head.
pub(crate) fn places(record: &[u8]) -> Result<Places, Malformed> {
    let mut reader = Reader::new(record.get(Rows::HEAD_BYTES..).ok_or(Malformed("ends too early"))?);
    let mut places = Places::default();
    while !reader.is_empty() {
        let begin = record.len() - reader.left();
        let Row { table, value, .. } = Row::read(&mut reader)?;
        places.push(begin, table, value.is_some());
    }
    Ok(places)
}

/// Rows that share the record that they are.
pub(crate) struct SharedRows {
    record: Arc<Vec<u8>>,
    places: Places,
}

impl From<Rows> for SharedRows {
    fn from(Rows { bytes, places }: Rows) -> SharedRows {
        SharedRows { record: Arc::new(bytes), places }
    }
}

impl SharedRows {
    /// As it was written.
    pub fn record(&self) -> &Arc<Vec<u8>> {
        &self.record
    }

    /// What they take in memory for as long as one of them is shared.
    pub fn memory_bytes(&self) -> usize {
        self.record.capacity()
    }

    /// How many of them [may lie anywhere](Rows::scattered).
    pub fn scattered(&self) -> usize {
        self.places.scattered
    }

    /// The rows as they came.
    pub fn into_rows(self) -> impl Iterator<Item = SharedRow> {
        let SharedRows { record, places } = self;
        places.begins.into_iter().map(move |place| {
            let place = u32::try_from(place).expect("a record says in 4 bytes how long it is");
            SharedRow { record: Arc::clone(&record), place }
        })
    }
}

/// A row that shares the bytes of its record with the record's others.
#[derive(Clone)]
pub(crate) struct SharedRow {
    /// One pointer: one that has the length with it would take as much again, of each row in memory.
    record: Arc<Vec<u8>>,
    place: u32,
}

impl SharedRow {
    /// The first of its bytes.
    pub fn first_byte(&self) -> u8 {
        self.record[self.place as usize]
    }

    pub fn row(&self) -> Row<'_> {
        Row::at(&self.record, self.place as usize)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Rows {
        pub fn into_shared(self) -> impl Iterator<Item = SharedRow> {
            SharedRows::from(self).into_rows()
        }

        /// Puts a row; `None` takes it away.
        pub fn set(&mut self, table: Table, key: impl AsRef<[u8]>, value: Option<impl AsRef<[u8]>>) {
            match value {
                Some(value) => self.put(table, key, value),
                None => self.delete(table, key),
            }
        }
    }

    /// Of few keys, so that some come twice.
    pub fn any_rows() -> impl Strategy<Value = Rows> {
        let key = prop::collection::vec(0u8..3, 0..3).prop_flat_map(|key| {
            // Some that are longer than one byte tells.
            prop_oneof![4 => Just(key.clone()), 1 => Just([&[1; 130], &key[..]].concat())]
        });
        let value = prop::option::of(prop::collection::vec(any::<u8>(), 0..200));
        let row = (prop::sample::select(&Table::ALL[..]), key, value);
        prop::collection::vec(row, 0..12).prop_map(|list| {
            let mut rows = Rows::default();
            for (table, key, value) in list {
                rows.set(table, key, value);
            }
            rows
        })
    }

    proptest! {
        #[test]
        fn rows_are_the_same_in_a_record_and_in_memory(rows in any_rows()) {
            let shared: Vec<_> = rows.clone().into_shared().collect();
            let read = Rows::of_record(&rows.bytes, places(&rows.bytes).unwrap());
            prop_assert_eq!(&read, &rows);
            prop_assert!(rows.iter().eq(shared.iter().map(SharedRow::row)));
            prop_assert_eq!(SharedRows::from(read).scattered(), rows.scattered());
        }

        #[test]
        fn values_that_are_appended_are_as_those_that_are_given(rows in any_rows()) {
            let mut appended = Rows::default();
            for Row { table, key, value } in rows.iter() {
                match value {
                    Some(value) => appended.put_written(table, key, |out| out.extend_from_slice(value)),
                    None => appended.delete(table, key),
                }
            }
            prop_assert_eq!(appended, rows);
        }

        /// Small numbers are tables, kinds and lengths.
        #[test]
        fn what_passes_for_rows_once_is_read_as_the_same_rows_from_then_on(
            bytes in prop::collection::vec(prop_oneof![9 => 0u8..4, 1 => any::<u8>()], 0..40),
        ) {
            let record = [&[0; Rows::HEAD_BYTES], &bytes[..]].concat();
            if let Ok(places) = places(&record) {
                let read = Rows::of_record(&record, places.clone());
                prop_assert_eq!(read.iter().count(), places.len());
                let mut written = Rows::default();
                read.iter().for_each(|row| written.set(row.table, row.key, row.value));
                prop_assert!(written.iter().eq(read.iter()));
                let shared: Vec<_> = read.into_shared().collect();
                prop_assert!(written.iter().eq(shared.iter().map(SharedRow::row)));
            }
        }

        #[test]
        fn rows_are_written_in_the_order_of_their_keys_and_the_later_of_two_is_the_later(rows in any_rows()) {
            let place = |row: &Row<'_>| (row.table, row.key.to_vec());
            let in_order: Vec<_> = rows.in_order().collect();
            prop_assert!(in_order.is_sorted_by_key(place));
            for row in &in_order {
                let same = |other: &Row<'_>| place(other) == place(row);
                let written = in_order.iter().copied().filter(same);
                prop_assert!(written.eq(rows.iter().filter(same)));
            }
        }
    }
}
