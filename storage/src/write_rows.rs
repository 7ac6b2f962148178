//! Rows into LMDB: sealed, and appended where they can be.

use heed::{PutFlags, RwTxn};

use crate::codec::meta;
use crate::error::StorageError;
use crate::rows::Row;
use crate::seal::seal;
use crate::tables::{Handle, Handles, META_COMMIT, Table};

/// Writes rows in a transaction. Those behind a table's last one are appended: LMDB then fills its pages.
pub(crate) struct WriteRows<'t, 'env> {
    txn: &'t mut RwTxn<'env>,
    handles: Handles,
    /// No key of a table is above this one, once it is known.
    last_keys: [Option<Vec<u8>>; Table::ALL.len()],
    /// The row being written, as it is stored.
    stored: Vec<u8>,
}

impl<'t, 'env> WriteRows<'t, 'env> {
    pub fn new(txn: &'t mut RwTxn<'env>, handles: Handles) -> WriteRows<'t, 'env> {
        WriteRows { txn, handles, last_keys: Default::default(), stored: Vec::new() }
    }

    pub fn write(&mut self, row: Row<'_>) -> Result<(), StorageError> {
        let Row { table, key, value } = row;
        let handle = self.handles.of(table);
        let Some(value) = value else {
            handle.delete(self.txn, key)?;
            return Ok(());
        };
        seal(&mut self.stored, table, key, value);
        let flags = if self.is_last(table, key)? { PutFlags::APPEND } else { PutFlags::empty() };
        Ok(handle.put_with_flags(self.txn, flags, key, &self.stored)?)
    }

    /// Whether a key is above all others of its table, which it is about to join.
    fn is_last(&mut self, table: Table, key: &[u8]) -> Result<bool, StorageError> {
        let last = match &mut self.last_keys[table as usize] {
            Some(last) => last,
            unknown => {
                let last = self.handles.of(table).last(self.txn)?;
                unknown.insert(last.map_or_else(Vec::new, |(key, _)| key.to_vec()))
            }
        };
        let is_last = **last < *key;
        if is_last {
            last.clear();
            last.extend_from_slice(key);
        }
        Ok(is_last)
    }
}

/// Each commit says under a checksum which one it is: LMDB's meta pages, which decide which commit is read, have none.
pub(crate) fn note_commit(txn: &mut RwTxn<'_>, meta: Handle<'_>) -> Result<(), StorageError> {
    let (number, mut stored) = (meta::encode_number(txn.id() as u64), Vec::new());
    seal(&mut stored, Table::Meta, META_COMMIT, &number);
    Ok(meta.put(txn, META_COMMIT, &stored)?)
}

#[cfg(test)]
mod tests {
    use crate::env::{Durability, Env, EnvOptions};
    use crate::error::StorageError;
    use crate::room::Room;
    use crate::rows::Rows;
    use crate::tables::Table;

    const ROWS: u32 = 2000;
    const VALUE_BYTES: usize = 100;

    /// Writes rows with these keys in two commits; gives the bytes that the tables need then.
    fn used_bytes(keys: impl Fn(u32) -> u32) -> usize {
        let folder = tempfile::tempdir().unwrap();
        let (map_bytes, durability) = (64 << 20, Durability::Relaxed);
        let options = EnvOptions { map_bytes, map_bytes_max: map_bytes, readers_max: 8, durability, tell: |_, _| {} };
        let env = Env::open(folder.path(), options).unwrap();
        for numbers in [0..ROWS / 2, ROWS / 2..ROWS] {
            let plan = |_: crate::view::View<'_>| {
                let mut rows = Rows::default();
                for number in numbers.clone().rev() {
                    rows.put(Table::Bodies, keys(number).to_be_bytes(), [1; VALUE_BYTES]);
                    rows.delete(Table::Bodies, b"none");
                }
                Ok::<_, StorageError>((rows, ()))
            };
            env.write(Room::Ordinary, plan, |()| {}).unwrap();
        }
        let reading = env.read().unwrap();
        for number in 0..ROWS {
            let value = reading.view().get(Table::Bodies, &keys(number).to_be_bytes()).unwrap();
            assert_eq!(value, Some(&[1; VALUE_BYTES][..]), "{number}");
        }
        env.used_bytes()
    }

    #[test]
    fn pages_are_filled_by_rows_that_come_behind_the_last_one_and_by_no_others() {
        let rows_bytes = ROWS as usize * VALUE_BYTES;
        let [ascending, scattered] =
            [|number: u32| number, |number: u32| number.wrapping_mul(0x9e37_79b1)].map(used_bytes);
        assert!(ascending < rows_bytes * 4 / 3, "{ascending}");
        assert!(scattered > ascending, "{scattered} is no less than {ascending}");
    }
}
