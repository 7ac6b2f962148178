//! Which documents may be among rows in memory. That one is not is told without a walk through them.

use std::sync::Arc;

use super::id_filter::{HashedId, IdFilter};
use super::runs::Runs;

/// Among fewer documents one is looked for as fast. Tests of few are to meet it.
const DOCS_MIN: usize = if cfg!(test) { 2 } else { 256 };
/// 256 KiB. Beside 160,000 ids, of which a memtable has hardly more, two in a hundred others are taken for one of them.
const BITS: usize = 1 << 21;

/// The documents of a memtable. Clones share what they know: a document that was added to one may be said to be in the
/// others, which costs no more than to look for it in vain.
#[derive(Clone, Default)]
pub(super) struct MaybeThere {
    /// `None` while there are few: any may be there.
    docs: Option<Arc<IdFilter>>,
}

impl MaybeThere {
    /// Adds documents to those whose rows were there before.
    pub fn add(&mut self, docs: &[HashedId], before: &Runs) {
        if self.docs.is_none() && before.len() + docs.len() > DOCS_MIN {
            let filter = IdFilter::new(BITS);
            before.each().for_each(|doc| filter.add(doc.hashed_id()));
            self.docs = Some(Arc::new(filter));
        }
        if let Some(filter) = &self.docs {
            docs.iter().for_each(|id| filter.add(*id));
        }
    }

    pub fn may_have(&self, id: HashedId) -> bool {
        self.docs.as_ref().is_none_or(|filter| filter.may_have(id))
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::Keyed;
    use super::*;
    use crate::rows::Rows;
    use crate::tables::Table;

    fn hashed(number: usize) -> HashedId {
        HashedId::from(key(number).as_bytes())
    }

    fn key(number: usize) -> String {
        format!("{number:08}")
    }

    fn keyed(count: usize) -> impl Iterator<Item = Keyed> {
        let mut rows = Rows::default();
        (0..count).for_each(|number| rows.delete(Table::Docs, key(number)));
        rows.into_shared().map(Keyed::from)
    }

    /// How many of 1,000 documents that were not added may be there.
    fn others(maybe: &MaybeThere) -> usize {
        (0..1_000).filter(|number| maybe.may_have(hashed(1_000_000 + number))).count()
    }

    #[test]
    fn whatever_was_added_may_be_there_and_little_else() {
        let added: Vec<Keyed> = keyed(2_500).collect();
        let (mut maybe, mut before) = (MaybeThere::default(), Runs::default());
        for (place, keyed) in added.iter().enumerate() {
            maybe.add(&[keyed.hashed_id()], &before);
            before.insert(vec![keyed.clone()]);
            assert!(added[..=place].iter().rev().step_by(97).all(|keyed| maybe.may_have(keyed.hashed_id())), "{place}");
        }
        assert!(added.iter().all(|keyed| maybe.may_have(keyed.hashed_id())));
        assert!(others(&maybe) < 20, "{} of 1,000", others(&maybe));
    }

    /// Two in a hundred are expected.
    #[test]
    fn little_else_may_be_there_beside_as_many_as_a_memtable_has() {
        let (mut maybe, mut before) = (MaybeThere::default(), Runs::default());
        for keyed in keyed(160_000) {
            maybe.add(&[keyed.hashed_id()], &before);
            before.insert(vec![keyed]);
        }
        assert!(others(&maybe) < 40, "{} of 1,000", others(&maybe));
    }
}
