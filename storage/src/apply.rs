//! Writes a planned document at a given sequence: pure, from a head before and a tree after to rows.

use std::collections::HashSet;

use crate::change::{Previous, PreviousWinner};
use crate::codec::change::ChangeRow;
use crate::codec::head::DocHead;
use crate::codec::{body, change, head, history, keys};
use crate::json::Body;
use crate::model::body_place::BodyKey;
use crate::model::doc_id::DocId;
use crate::model::rev_tree::{Ancestors, Leaf, Line, RevTree};
use crate::model::sequence::Sequence;
use crate::rows::Rows;
use crate::tables::Table;

/// Most ancestors of a leaf that stand in the head.
const RECENT_MAX: usize = 26;
/// Ancestors in a chunk; stemming may have left fewer that count in a branch's oldest one.
const CHUNK_LEN: usize = 24;
/// Ancestors that stay in the head at least when chunks are filled.
const RECENT_KEPT: usize = RECENT_MAX - CHUNK_LEN;

/// A document whose edits are planned, with the sequence it moves to.
#[derive(Debug)]
pub(crate) struct PlannedDoc {
    pub id: DocId,
    /// What the tables have; `None` for a new document.
    pub before: Option<DocHead>,
    /// The tree as it was when its history was put at hand; `None` where that was not needed.
    pub whole: Option<RevTree>,
    /// What it becomes; without leaves once all of it is purged.
    pub tree: RevTree,
    pub seq: Sequence,
    /// The bodies the edits brought, those of leaves and those already superseded.
    pub bodies: Vec<(BodyKey, Body)>,
    /// Bodies in the table that go with purged revisions, with their lengths in bytes.
    pub erased: Vec<(BodyKey, u64)>,
}

impl PlannedDoc {
    /// Adds what the document's move to its sequence writes: its head, one row of `by_seq` instead of the old one, its
    /// bodies, and history chunks where a branch has grown past them. Of one that vanishes all rows go.
    pub fn write(&self, rows: &mut Rows) {
        let head = self.settle_history(rows);
        let id = self.id.as_str();
        if let Some(before) = &self.before {
            rows.delete(Table::BySeq, keys::seq(before.seq));
        }
        for (key, _) in &self.erased {
            rows.delete(Table::Bodies, keys::body(*key));
        }
        let Some(row) = change_row(id, &head, self.previous()) else {
            rows.delete(Table::Docs, id);
            return;
        };
        rows.put_written(Table::BySeq, keys::seq(self.seq), |value| change::put(value, &row));
        for (key, json) in &self.bodies {
            rows.put_written(Table::Bodies, keys::body(*key), |value| body::put(value, id, json.as_bytes()));
        }
        rows.put_written(Table::Docs, id, |value| head::put(value, &head));
    }

    /// What it was before.
    pub fn previous(&self) -> Previous {
        let Some(DocHead { seq, tree, .. }) = &self.before else { return Previous::Nothing };
        let leaves = u32::try_from(tree.leaves().len()).unwrap_or(u32::MAX);
        tree.winner().map_or(Previous::Unknown, |winner| {
            Previous::Winner(PreviousWinner { seq: *seq, deleted: winner.deleted, leaves, body: winner.body })
        })
    }

    /// About how many bytes the rows of most documents take, and seldom too few.
    pub fn row_bytes(&self) -> usize {
        /// What the rows of `docs` and `by_seq` have beside ids and branches, and the row that is taken away.
        const OWN_BYTES: usize = 128;
        /// A branch's revision, the place of its body, and numbers.
        const LEAF_BYTES: usize = 40;
        /// What the row of a body or a chunk has beside the id and what it keeps.
        const ROW_BYTES: usize = 32;
        /// The number of a chunk, of most documents.
        const CHUNK_BYTES: usize = 2;
        let id_bytes = self.id.as_str().len();
        let of_leaf = |leaf: &Leaf| {
            let (Ancestors { recent, chunks, .. }, spilled) = match self.unchanged(leaf) {
                Some(stored) => (&stored.ancestors, 0),
                None => (&leaf.ancestors, leaf.ancestors.recent.len() / CHUNK_LEN),
            };
            let head_bytes = LEAF_BYTES + recent.as_bytes().len() + CHUNK_BYTES * chunks.len();
            head_bytes + spilled * (ROW_BYTES + id_bytes)
        };
        let of_body = |(_, body): &(BodyKey, Body)| ROW_BYTES + id_bytes + body.as_bytes().len();
        let leaves: usize = self.tree.leaves().iter().map(of_leaf).sum();
        let bodies: usize = self.bodies.iter().map(of_body).sum();
        OWN_BYTES + 2 * id_bytes + leaves + bodies
    }

    /// Moves ancestors the head has no room for into chunks, and drops chunks that no branch needs any more.
    fn settle_history(&self, rows: &mut Rows) -> DocHead {
        let before = self.before.as_ref();
        let mut tree = self.tree.clone();
        let mut next_chunk = before.map_or(0, |head| head.next_chunk);
        // Most edits leave all as it is: then the tree need not be copied.
        if !tree.leaves().iter().all(|leaf| self.unchanged(leaf).is_none() && has_room(&leaf.ancestors)) {
            for leaf in tree.leaves_mut() {
                match self.unchanged(leaf) {
                    Some(same) => leaf.ancestors = same.ancestors.clone(),
                    None => {
                        for (number, chunk) in spill(leaf, &mut next_chunk) {
                            rows.put(Table::History, keys::history(&self.id, number), history::encode(&chunk));
                        }
                    }
                }
            }
        }
        let left = before.map_or_else(Vec::new, |head| chunks_left(&head.tree, &tree));
        for chunk in left {
            rows.delete(Table::History, keys::history(&self.id, chunk));
        }
        DocHead { seq: self.seq, tree, next_chunk }
    }

    /// The leaf as it was stored, if it has the same line now: then its ancestors stay as they are stored. One that was
    /// purged may be there again with other ancestors far down.
    fn unchanged(&self, leaf: &Leaf) -> Option<&Leaf> {
        let stored = self.before.as_ref()?.tree.leaf(&leaf.rev)?;
        let whole = self.whole.as_ref().and_then(|tree| tree.leaf(&leaf.rev));
        [Some(stored), whole].into_iter().flatten().any(|same| same.ancestors == leaf.ancestors).then_some(stored)
    }
}

fn change_row<'a>(id: &'a str, head: &DocHead, previous: Previous) -> Option<ChangeRow<'a>> {
    let winner = head.tree.winner()?;
    let branches = u32::try_from(head.tree.leaves().len()).unwrap_or(u32::MAX);
    let (rev, deleted, body) = (winner.rev.clone(), winner.deleted, winner.body);
    Some(ChangeRow { seq: head.seq, id, rev, deleted, branches, body, previous })
}

/// The chunks of each leaf.
fn chunk_lists(tree: &RevTree) -> impl Iterator<Item = &Vec<u32>> {
    tree.leaves().iter().map(|leaf| &leaf.ancestors.chunks)
}

fn chunks_of(tree: &RevTree) -> impl Iterator<Item = u32> + '_ {
    chunk_lists(tree).flatten().copied()
}

/// The chunks that no branch needs any more. Most edits need the same ones as before.
fn chunks_left(before: &RevTree, after: &RevTree) -> Vec<u32> {
    if chunk_lists(before).eq(chunk_lists(after)) {
        return Vec::new();
    }
    let kept: HashSet<u32> = chunks_of(after).collect();
    chunks_of(before).filter(|chunk| !kept.contains(chunk)).collect()
}

/// Whether a leaf's ancestors are as [`spill`] leaves them.
fn has_room(ancestors: &Ancestors) -> bool {
    ancestors.recent.len() <= RECENT_MAX && !has_spare_chunk(ancestors)
}

/// Whether stemming has left nothing of the oldest chunk.
fn has_spare_chunk(ancestors: &Ancestors) -> bool {
    !ancestors.chunks.is_empty() && (ancestors.chunks.len() - 1) * CHUNK_LEN >= ancestors.deeper as usize
}

/// Takes from a leaf what the head has no room for, as new chunks with their numbers.
fn spill(leaf: &mut Leaf, next_chunk: &mut u32) -> Vec<(u32, Line)> {
    let ancestors = &mut leaf.ancestors;
    let mut spilled = Vec::new();
    if ancestors.recent.len() > RECENT_MAX {
        let whole_chunks = (ancestors.recent.len() - RECENT_KEPT) / CHUNK_LEN * CHUNK_LEN;
        let older = ancestors.recent.split_off(ancestors.recent.len() - whole_chunks);
        ancestors.deeper = ancestors.deeper.saturating_add(older.len() as u32);
        for chunk in older.chunks(CHUNK_LEN) {
            spilled.push((*next_chunk, chunk));
            *next_chunk = next_chunk.wrapping_add(1);
        }
        ancestors.chunks.splice(0..0, spilled.iter().map(|(number, _)| *number));
    }
    while has_spare_chunk(ancestors) {
        ancestors.chunks.pop();
    }
    spilled
}

/// What a document's move does to the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CountsChange {
    pub docs: i64,
    pub deleted_docs: i64,
    pub body_bytes: i64,
    pub garbage_bytes: i64,
}

impl PlannedDoc {
    pub fn counts_change(&self) -> CountsChange {
        let before = self.before.as_ref().map(|head| &head.tree);
        let leaf_bytes = |tree: &RevTree| tree.leaves().iter().map(|leaf| leaf.body.bytes() as i64).sum::<i64>();
        let live = |tree: &RevTree| i64::from(tree.is_live());
        let deleted = |tree: &RevTree| i64::from(tree.winner().is_some_and(|winner| winner.deleted));
        let bytes_before = before.map_or(0, leaf_bytes);
        let bytes_after = leaf_bytes(&self.tree);
        let bytes_brought: i64 = self.bodies.iter().map(|(_, body)| body.as_bytes().len() as i64).sum();
        let bytes_erased: i64 = self.erased.iter().map(|(_, bytes)| *bytes as i64).sum();
        CountsChange {
            docs: live(&self.tree) - before.map_or(0, live),
            deleted_docs: deleted(&self.tree) - before.map_or(0, deleted),
            body_bytes: bytes_after - bytes_before,
            garbage_bytes: bytes_before + bytes_brought - bytes_after - bytes_erased,
        }
    }

    /// Whether nothing is left of it: no head, no row.
    pub fn vanishes(&self) -> bool {
        self.tree.leaves().is_empty()
    }
}

#[cfg(test)]
mod tests;
