//! Whether a document has left a feed: it passed before and does not now, or was deleted.

use seqtide_storage::json::Body;
use seqtide_storage::model::body_place::BodyPlace;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::RevId;
use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{Change, LeafRev, Previous, PreviousWinner, Snapshot, StorageError};

use super::options::FeedOptions;
use super::seen::{Held, Seen};
use crate::filter::Test;
use crate::selector::DocView;

/// What decides whether a reader has a document that does not pass any more.
pub(super) enum Had {
    /// This does.
    Known(bool),
    /// Whether the winner before passed.
    Previous(PreviousWinner),
    /// Whether a version up to a place passed.
    AnyUpTo(Sequence),
}

/// What decides about a document of which nothing passes, without a look at what it was.
pub(super) fn had(change: &Change, seen: &Seen, options: &FeedOptions) -> Had {
    let held = match change.previous {
        Previous::Nothing => return Had::Known(false),
        Previous::Unknown => seen.held_by_anyone(change.seq),
        Previous::Winner(winner) => seen.held(change.seq, winner.seq),
    };
    match (held, change.previous) {
        (Held::Previous, Previous::Winner(winner)) => match by_leaves(&winner, options) {
            Some(passed) => Had::Known(passed),
            None => Had::Previous(winner),
        },
        (Held::UpTo(place), _) if place == Sequence::ZERO => Had::Known(false),
        (Held::UpTo(place), _) => Had::AnyUpTo(place),
        (Held::Previous, _) => Had::Known(true),
    }
}

/// Whether a winner passed, if its leaves decide that. Of several those that lost are not known any more: they may have.
fn by_leaves(winner: &PreviousWinner, options: &FeedOptions) -> Option<bool> {
    let Test { selector, conflicts_only } = &options.filter.test;
    let had_losers = winner.leaves > 1;
    match winner.deleted {
        true if !(had_losers && options.shape.all_leaves) => Some(false),
        _ if *conflicts_only && !had_losers => Some(false),
        _ if had_losers && (*conflicts_only || options.shape.all_leaves) => Some(true),
        _ => selector.is_none().then_some(true),
    }
}

/// Whether the winner before passed. One whose body is gone may have.
pub(super) fn previous_passed(
    snapshot: &Snapshot<'_>,
    change: &Change,
    winner: &PreviousWinner,
    test: &Test,
) -> Result<bool, StorageError> {
    let leaf = LeafRev { rev: change.winner().rev.clone(), deleted: winner.deleted };
    Ok(may_pass(&change.id, &leaf, snapshot.body(winner.body)?, test))
}

/// Whether a version up to a place passed, as far as they are still there; where one is not, it may have.
pub(super) fn any_passed(
    snapshot: &Snapshot<'_>,
    change: &Change,
    up_to: Sequence,
    options: &FeedOptions,
) -> Result<bool, StorageError> {
    let test = &options.filter.test;
    let Some(found) = snapshot.tree(&change.id)? else { return Ok(false) };
    let [leaf] = found.tree.leaves() else { return Ok(true) };
    if test.conflicts_only || leaf.ancestors.deeper > 0 {
        return Ok(true);
    }
    for (ago, ancestor) in (1..).zip(leaf.ancestors.recent.iter()) {
        let may_be_had = match ancestor.body {
            BodyPlace::Stored { key, .. } => key.seq <= up_to,
            BodyPlace::Empty => true,
            // It was never here.
            BodyPlace::Unknown => false,
        };
        if ancestor.deleted || !may_be_had {
            continue;
        }
        let rev = RevId::new(leaf.rev.generation.saturating_sub(ago), ancestor.hash);
        let was = LeafRev { rev, deleted: false };
        if may_pass(&change.id, &was, snapshot.body(ancestor.body)?, test) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn may_pass(id: &DocId, leaf: &LeafRev, body: Option<Body>, test: &Test) -> bool {
    let Some(selector) = &test.selector else { return true };
    body.is_none_or(|body| selector.matches(&DocView::new(id, leaf, &body)))
}
