//! Whether a document has left a feed: it passed before and does not now, or was deleted.

use seqtide_storage::json::Body;
use seqtide_storage::model::body_place::BodyPlace;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::RevId;
use seqtide_storage::model::rev_tree::{Leaf, RevTree};
use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{Change, LeafRev, Previous, PreviousWinner, Snapshot, StorageError};

use super::options::FeedOptions;
use super::seen::{Held, Seen, Versions};
use crate::filter::Test;
use crate::selector::DocView;

/// What decides whether a reader has a document that does not pass any more.
#[derive(Debug, Clone, Copy)]
pub(super) enum Had {
    /// This does.
    Known(bool),
    /// Whether the winner before passed.
    Previous(PreviousWinner),
    /// Whether any of these versions passed.
    Any(Versions),
}

/// What decides about a document of which nothing passes, without a look at what it was.
pub(super) fn had(change: &Change, seen: &Seen, options: &FeedOptions) -> Had {
    let versions = match change.previous {
        Previous::Nothing => return Had::Known(false),
        Previous::Unknown => seen.any(change.seq),
        Previous::Winner(winner) => match seen.held(change.seq, winner.seq) {
            Held::Previous => return by_leaves(&winner, options).map_or(Had::Previous(winner), Had::Known),
            Held::Any(versions) => versions,
        },
    };
    if versions.up_to == Sequence::ZERO { Had::Known(false) } else { Had::Any(versions) }
}

/// Whether a winner passed, if its leaves decide that. Of several those that lost are not known any more: they may
/// have.
fn by_leaves(winner: &PreviousWinner, options: &FeedOptions) -> Option<bool> {
    let Test { selector, conflicts_only } = &options.filter.test;
    let had_losers = winner.leaves > 1;
    match winner.deleted {
        true if !(had_losers && options.shape.all_leaves) => Some(false),
        _ if *conflicts_only && !had_losers => Some(false),
        _ if had_losers && (*conflicts_only || options.shape.all_leaves) => Some(true),
        _ => (selector.is_none() && options.filter.function.is_none()).then_some(true),
    }
}

/// A version of a document that its reader may have.
#[derive(Debug, Clone)]
pub(super) struct Version {
    /// Its revision.
    pub leaf: LeafRev,
    /// Where its body lay.
    pub body: BodyPlace,
}

/// Whether a version may have passed a test, with this body. One whose body is gone may have.
pub(super) fn may_pass(id: &DocId, leaf: &LeafRev, body: Option<&Body>, test: &Test) -> bool {
    let (Some(selector), Some(body)) = (&test.selector, body) else { return true };
    selector.matches(&DocView::new(id, leaf, body))
}

impl Had {
    /// The versions by which it is decided, in this state of the database or a later one: the reader has the document
    /// if one of them passed. `None` where not all are known: it may have it.
    pub fn versions(
        self,
        snapshot: &Snapshot<'_>,
        id: &DocId,
        options: &FeedOptions,
    ) -> Result<Option<Vec<Version>>, StorageError> {
        let none = Some(Vec::new());
        if let Had::Known(had) = self {
            return Ok(none.filter(|_| !had));
        }
        let Some(found) = snapshot.tree(id)? else { return Ok(none) };
        Ok(match self {
            Had::Known(_) => None,
            Had::Previous(winner) => with_body_of(&found.tree, &winner),
            Had::Any(_) if options.filter.test.conflicts_only => None,
            Had::Any(versions) => written_over(&found.tree, versions, options),
        })
    }
}

/// The revisions that can be a winner of before. More than one can be whose body is empty.
fn with_body_of(tree: &RevTree, winner: &PreviousWinner) -> Option<Vec<Version>> {
    let of_leaves = tree.leaves().iter().map(|leaf| Version { leaf: LeafRev::from(leaf), body: leaf.body });
    let all = of_leaves.chain(tree.leaves().iter().flat_map(ancestors));
    let found: Vec<_> = all.filter(|it| it.body == winner.body && it.leaf.deleted == winner.deleted).collect();
    (!found.is_empty()).then_some(found)
}

/// What a document with one leaf was before, as far as a reader can have it.
fn written_over(tree: &RevTree, versions: Versions, options: &FeedOptions) -> Option<Vec<Version>> {
    let [leaf] = tree.leaves() else { return None };
    let mut had = Vec::new();
    for version in ancestors(leaf).filter(|version| !version.leaf.deleted) {
        let (may_be_had, was_current) = match version.body {
            BodyPlace::Stored { key, .. } => (key.seq <= versions.up_to, key.seq <= versions.current_at),
            // When it was written is not known.
            BodyPlace::Empty => (true, false),
            // It was never here.
            BodyPlace::Unknown => (false, false),
        };
        if may_be_had {
            had.push(version);
        }
        // What lies below may have been a leaf of its own then, which a replicated history has joined since: it lost,
        // unless this one was deleted.
        if was_current && !options.shape.all_leaves {
            return Some(had);
        }
    }
    let reaches_root = leaf.branch_len() as u64 >= leaf.rev.generation;
    (leaf.ancestors.deeper == 0 && reaches_root).then_some(had)
}

/// What a leaf came from, as far as that is at hand.
fn ancestors(leaf: &Leaf) -> impl Iterator<Item = Version> + '_ {
    (1..).zip(leaf.ancestors.recent.iter()).map(|(ago, ancestor)| {
        let rev = RevId::new(leaf.rev.generation.saturating_sub(ago), ancestor.hash);
        Version { leaf: LeafRev { rev, deleted: ancestor.deleted }, body: ancestor.body }
    })
}
