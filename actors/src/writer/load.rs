//! How much writes weigh.

use seqtide_storage::model::rev::RevHash;
use seqtide_storage::{Edit, EditKind, LocalEdit, Outcome, Request, RequestKey, Write};

/// How much waits to be written, or is written at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub edits: usize,
    /// Bytes of bodies, of the revisions that replicated ones come with, of those to purge, and of what records keep.
    pub bytes: usize,
}

/// What a record keeps of each outcome, about: a revision and its place.
const OUTCOME_BYTES: usize = 24;

impl Load {
    /// Of a request, which counts as one edit though it has none. Its key is one more thing to write.
    pub fn of(Request { writes, key }: &Request) -> Load {
        let bodies: usize = writes.iter().map(bytes).sum();
        let record = key.as_ref().map_or(0, |key| record_bytes(key) + OUTCOME_BYTES * writes.len());
        Load { edits: writes.len().max(1) + usize::from(key.is_some()), bytes: bodies + record }
    }

    pub fn add(&mut self, more: Load) {
        self.edits += more.edits;
        self.bytes += more.bytes;
    }

    pub fn take_off(&mut self, less: Load) {
        self.edits -= less.edits;
        self.bytes -= less.bytes;
    }

    /// Whether more can be added without going beyond `max`. One request fits into nothing, however large it is.
    pub fn has_room_for(self, more: Load, max: Load) -> bool {
        let fits = self.edits + more.edits <= max.edits && self.bytes + more.bytes <= max.bytes;
        fits || self == Load::default()
    }
}

/// What a record keeps of the request's key and of the ids made for it.
fn record_bytes(key: &RequestKey) -> usize {
    let ids: usize = key.made_ids.iter().map(|id| id.as_str().len()).sum();
    2 * key.key.as_str().len() + ids
}

fn bytes(write: &Write) -> usize {
    match write {
        Write::Edit(edit) => edit.body().as_bytes().len() + path_bytes(edit),
        Write::Local(LocalEdit { body, .. }) => body.as_ref().map_or(0, |body| body.as_bytes().len()),
        Write::Purge { revs, .. } => revs.iter().map(|rev| size_of::<u64>() + hash_bytes(&rev.hash)).sum(),
        Write::Decided { outcome: Outcome::Refused(refusal), .. } => refusal.reason.len(),
        Write::RevsLimit(_) | Write::Decided { .. } => 0,
        Write::FeedIndex(fields) => fields.iter().map(String::len).sum(),
    }
}

/// What a replicated revision's ancestry takes.
fn path_bytes(edit: &Edit) -> usize {
    match edit.kind() {
        EditKind::Interactive { .. } => 0,
        EditKind::Replicated { path } => path.hashes().iter().map(hash_bytes).sum(),
    }
}

/// What a hash takes: one that is text has it elsewhere.
fn hash_bytes(hash: &RevHash) -> usize {
    let text = if let RevHash::Text(text) = hash { text.len() } else { 0 };
    size_of::<RevHash>() + text
}

#[cfg(test)]
mod tests {
    use seqtide_storage::json::Body;
    use seqtide_storage::model::doc_id::DocId;
    use seqtide_storage::model::idempotency::{Fingerprint, IdempotencyKey};
    use seqtide_storage::model::rev_path::RevPath;

    use super::*;

    #[test]
    fn a_replicated_revision_weighs_its_ancestry_too() {
        let hashes = ["9cdf5b1d1a7c4a0e9e0f4f2f1f3a5b7c", "", "by-hand"].map(|hash| RevHash::parse(hash).unwrap());
        let path = RevPath::new(3, hashes.to_vec()).unwrap();
        let edit = Edit::replicated(DocId::parse("a").unwrap(), path, false, Body::empty());
        let load = Load::of(&vec![Write::Edit(edit)].into());
        assert_eq!(load, Load { edits: 1, bytes: 2 + 3 * size_of::<RevHash>() + "by-hand".len() });
    }

    #[test]
    fn a_key_weighs_its_record_and_is_one_more_thing_to_write() {
        let plain = Request::from(vec![Write::RevsLimit(1), Write::RevsLimit(2)]);
        assert_eq!(Load::of(&plain), Load { edits: 2, bytes: 0 });
        let key = RequestKey {
            key: IdempotencyKey::new("12345").unwrap(),
            fingerprint: Fingerprint([0; 16]),
            made_ids: vec![DocId::parse("abc").unwrap()],
            at_secs: 0,
        };
        let keyed = Request { key: Some(key), ..plain };
        assert_eq!(Load::of(&keyed), Load { edits: 3, bytes: 2 * 5 + 3 + 2 * OUTCOME_BYTES });
    }
}
