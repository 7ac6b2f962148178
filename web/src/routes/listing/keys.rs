//! The rows of given keys, in their order.

use bytes::Bytes;
use futures_util::Stream;
use seqtide::documents::Reader;
use seqtide::storage::model::doc_id::{DocId, LocalId};
use seqtide::storage::{LocalDoc, Snapshot, StorageError};
use seqtide::{Database, Error, RowShape};

use super::END;
use super::namespace::Namespace;
use super::options::{Options, detail};
use super::row::{write_doc, write_local, write_missing};
use crate::pages::{Items, paged};

/// Source of the order in which `descending`, `skip`, `limit` and the namespace apply: CouchDB
/// `fabric_view_all_docs:go`.
pub fn rows(
    database: Database,
    namespace: Namespace,
    mut keys: Vec<String>,
    options: &Options,
    head: Vec<u8>,
) -> impl Stream<Item = Result<Bytes, Error>> + use<> {
    if options.descending {
        keys.reverse();
    }
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let keys = keys.into_iter().skip(count(options.skip)).take(count(options.limit));
    let keys = keys.filter(|key| namespace.has(key)).collect();
    let shape = options.shape;
    let write = move |out: &mut Vec<u8>, reader: &mut Reader<'_>, key: &String| {
        write_row(out, reader.snapshot(), namespace, key, shape)
    };
    paged(Items::new(database, keys, write).framed(head, b",\r\n", END.into()))
}

fn write_row(
    out: &mut Vec<u8>,
    snapshot: &Snapshot<'_>,
    namespace: Namespace,
    key: &str,
    shape: RowShape,
) -> Result<(), StorageError> {
    if namespace == Namespace::Local {
        match read_local(snapshot, key)? {
            Some(doc) => write_local(out, &doc, shape),
            None => write_missing(out, key),
        }
        return Ok(());
    }
    let id = DocId::parse(key).ok();
    match id.map(|id| snapshot.document_change(&id, detail(shape))).transpose()?.flatten() {
        Some(doc) => write_doc(out, &doc, shape),
        None => write_missing(out, key),
    }
    Ok(())
}

fn read_local(snapshot: &Snapshot<'_>, key: &str) -> Result<Option<LocalDoc>, StorageError> {
    let Some(Ok(id)) = LocalId::parse(key) else { return Ok(None) };
    let found = snapshot.local(&id)?;
    Ok(found.map(|(revision, body)| LocalDoc { name: id.name().to_owned(), revision, body }))
}
