//! Rows into LMDB: sealed, and appended where they can be.

use heed::{PutFlags, RwTxn};

use crate::codec::meta;
use crate::error::StorageError;
use crate::rows::Row;
use crate::seal::seal;
use crate::tables::{Handle, Handles, Table};
use crate::view::META_COMMIT;

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

    pub fn write(&mut self, row: Row<&[u8]>) -> Result<(), StorageError> {
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
