//! What a purge makes of a revision tree. Pure: no tables, no sequence.
//!
//! A purge forgets leaves as if they had never been written, without a tombstone. A leaf's ancestors go with it, down
//! to the first that another leaf came from too, and so do their bodies.
//!
//! Source: CouchDB `couch_key_tree:remove_leafs`.

use std::collections::HashSet;

use crate::model::body_place::{BodyKey, BodyPlace};
use crate::model::rev::RevId;
use crate::model::rev_tree::{HistoryNeeded, Leaf, RevTree};

/// What a purge makes of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Purge {
    /// The leaves that go, as they were named, each once.
    pub revs: Vec<RevId>,
    /// What remains; without leaves where the whole document goes.
    pub tree: RevTree,
    /// Where the bodies lie that go, as far as they were ever stored, with their length in bytes.
    pub bodies: Vec<(BodyKey, u64)>,
    /// Whether a branch that goes was cut off at its old end: bodies may be left that no tree speaks of any more.
    pub stemmed: bool,
}

/// Plans the purge of those of `revs` that are leaves; `None` when none is.
///
/// # Errors
/// [`HistoryNeeded`] when a purge needs ancestors that are not at hand.
pub(crate) fn plan_purge(tree: &RevTree, revs: &[RevId]) -> Result<Option<Purge>, HistoryNeeded> {
    let mut named = HashSet::new();
    let purged: Vec<&RevId> = revs.iter().filter(|rev| tree.leaf(rev).is_some() && named.insert(*rev)).collect();
    if purged.is_empty() {
        return Ok(None);
    }
    if tree.leaves().iter().any(|leaf| leaf.ancestors.deeper > 0) {
        return Err(HistoryNeeded);
    }
    let (go, stay): (Vec<&Leaf>, Vec<&Leaf>) = tree.leaves().iter().partition(|leaf| named.contains(&leaf.rev));
    let needed: HashSet<BodyKey> = stay.iter().flat_map(|leaf| bodies_of(leaf)).map(|(key, _)| key).collect();
    let mut seen = needed.clone();
    let bodies = go.iter().flat_map(|leaf| bodies_of(leaf)).filter(|(key, _)| seen.insert(*key)).collect();
    let stemmed = go.iter().any(|leaf| leaf.root_generation() > 1);
    let revs = purged.into_iter().cloned().collect();
    let tree = RevTree::from_leaves(stay.into_iter().cloned().collect());
    Ok(Some(Purge { revs, tree, bodies, stemmed }))
}

/// The bodies of a branch, with their lengths in bytes.
fn bodies_of(leaf: &Leaf) -> impl Iterator<Item = (BodyKey, u64)> {
    let places = std::iter::once(leaf.body).chain(leaf.ancestors.recent.iter().map(|ancestor| ancestor.body));
    places.filter_map(|place| match place {
        BodyPlace::Stored { key, bytes } => Some((key, u64::from(bytes))),
        BodyPlace::Empty | BodyPlace::Unknown => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rev::RevHash;
    use crate::model::rev_path::RevPath;
    use crate::model::rev_tree::Merge;
    use crate::model::sequence::Sequence;

    fn body_at(version: u64) -> BodyKey {
        BodyKey { seq: Sequence::new(0, version), ordinal: 0 }
    }

    fn revs(texts: &[&str]) -> Vec<RevId> {
        texts.iter().map(|text| RevId::parse(text).unwrap()).collect()
    }

    /// Replicates revisions one after the other; the n-th has a body at sequence n.
    fn tree_of(pushes: &[(u64, &[&str])]) -> RevTree {
        (1..).zip(pushes).fold(RevTree::default(), |tree, (version, (start, hashes))| {
            let hashes = hashes.iter().map(|hash| RevHash::parse(hash).unwrap()).collect();
            let body = BodyPlace::Stored { key: body_at(version), bytes: 7 };
            match tree.merge(&RevPath::new(*start, hashes).unwrap(), false, body, 1000).unwrap() {
                Merge::Changed(tree) => tree,
                Merge::Known => tree,
            }
        })
    }

    fn purged(tree: &RevTree, texts: &[&str]) -> Purge {
        plan_purge(tree, &revs(texts)).unwrap().unwrap()
    }

    fn leaves(tree: &RevTree) -> Vec<String> {
        tree.leaves().iter().map(|leaf| leaf.rev.to_string()).collect()
    }

    /// 1-a ─ 2-b ─ 3-c, and 3-d on 2-b, and 2-e on 1-a.
    fn forked() -> RevTree {
        tree_of(&[(1, &["a"]), (2, &["b", "a"]), (3, &["c", "b", "a"]), (3, &["d", "b", "a"]), (2, &["e", "a"])])
    }

    #[test]
    fn a_leaf_goes_with_the_ancestors_that_no_other_leaf_shares() {
        let plan = purged(&forked(), &["3-c"]);
        assert_eq!(
            (leaves(&plan.tree), plan.bodies),
            (vec!["3-d".to_owned(), "2-e".to_owned()], vec![(body_at(3), 7)])
        );
        let plan = purged(&forked(), &["3-d", "3-c"]);
        assert_eq!(leaves(&plan.tree), ["2-e"]);
        assert_eq!(plan.bodies, [(body_at(4), 7), (body_at(2), 7), (body_at(3), 7)], "2-b has no leaf any more");
        assert_eq!(plan.revs, revs(&["3-d", "3-c"]), "in the order they were named");
    }

    #[test]
    fn all_leaves_take_the_whole_document_along() {
        let plan = purged(&forked(), &["2-e", "3-c", "3-d", "3-c"]);
        assert_eq!((leaves(&plan.tree), plan.revs), (vec![], revs(&["2-e", "3-c", "3-d"])));
        let mut bodies = plan.bodies;
        bodies.sort_unstable();
        assert_eq!(bodies, [1, 2, 3, 4, 5].map(|version| (body_at(version), 7)));
        assert!(!plan.stemmed);
    }

    #[test]
    fn what_is_no_leaf_is_passed_over() {
        assert_eq!(plan_purge(&forked(), &revs(&["2-b", "1-a", "9-z"])), Ok(None));
        assert_eq!(plan_purge(&RevTree::default(), &revs(&["1-a"])), Ok(None));
        assert_eq!(purged(&forked(), &["2-b", "2-e"]).revs, revs(&["2-e"]));
    }

    #[test]
    fn a_purge_looks_at_the_whole_history_and_says_where_it_was_cut() {
        let mut tree = tree_of(&[(3, &["c", "b"]), (3, &["d", "b"])]);
        assert!(purged(&tree, &["3-c"]).stemmed, "there was a first generation");
        for leaf in tree.leaves_mut() {
            leaf.ancestors.recent.truncate(0);
            leaf.ancestors.deeper = 1;
        }
        assert_eq!(plan_purge(&tree, &revs(&["3-c"])), Err(HistoryNeeded));
        assert_eq!(plan_purge(&tree, &revs(&["2-b"])), Ok(None), "nothing to purge needs no history");
    }
}
