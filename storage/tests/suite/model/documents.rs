//! A document as a set of revisions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use seqtide_storage::Edit;
use seqtide_storage::json::{Body, revision_hash};
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::{RevHash, RevId};
use seqtide_storage::model::rev_path::RevPath;

/// A revision to write.
pub enum Proposed {
    Interactive { parent: Option<RevId>, deleted: bool, body: Body },
    Replicated { path: RevPath, deleted: bool, body: Body },
}

impl Proposed {
    /// The revision of a replicated path; what an interactive edit makes depends on its document.
    pub fn rev(&self) -> RevId {
        match self {
            Proposed::Replicated { path, .. } => path.rev(),
            Proposed::Interactive { .. } => unreachable!("an interactive edit is never known"),
        }
    }

    pub fn edit(self, id: DocId) -> Edit {
        match self {
            Proposed::Interactive { parent, deleted, body } => Edit::interactive(id, parent, deleted, body),
            Proposed::Replicated { path, deleted, body } => Edit::replicated(id, path, deleted, body),
        }
    }
}

/// What becomes of it.
pub enum Effect {
    Conflict,
    Known,
    Changed(RevId),
}

#[derive(Clone)]
struct Node {
    parent: Option<RevHash>,
    deleted: bool,
    body: Option<Body>,
}

/// A revision that is nobody's parent.
pub struct Leaf {
    pub rev: RevId,
    pub deleted: bool,
    pub body: Body,
    /// Hashes of its ancestors, newest first.
    pub line: Vec<String>,
}

/// All revisions that were told of.
#[derive(Default)]
pub struct Document(BTreeMap<RevId, Node>);

impl Document {
    pub fn is_new(&self) -> bool {
        self.0.is_empty()
    }

    pub fn is_live(&self) -> bool {
        self.leaves().first().is_some_and(|winner| !winner.deleted)
    }

    pub fn winner_body(&self) -> Option<Body> {
        self.leaves().first().map(|winner| winner.body.clone())
    }

    pub fn leaf_bytes(&self) -> u64 {
        let stored = |body: &Body| {
            if body.is_empty() { 0 } else { body.as_bytes().len() as u64 }
        };
        self.leaves().iter().map(|leaf| stored(&leaf.body)).sum()
    }

    /// Winner first.
    pub fn leaves(&self) -> Vec<Leaf> {
        let is_parent = |rev: &RevId| {
            let child_of = |(child, node): (&RevId, &Node)| {
                child.generation == rev.generation + 1 && node.parent.as_ref() == Some(&rev.hash)
            };
            self.0.iter().any(child_of)
        };
        let mut leaves: Vec<_> = (self.0.iter().filter(|(rev, _)| !is_parent(rev)))
            .map(|(rev, node)| Leaf {
                rev: rev.clone(),
                deleted: node.deleted,
                body: node.body.clone().expect("a leaf was written with its body"),
                line: self.line(rev),
            })
            .collect();
        leaves.sort_by_key(|leaf| Reverse((!leaf.deleted, leaf.rev.clone())));
        leaves
    }

    /// Forgets leaves, and what no other leaf came from; gives those that were leaves.
    pub fn purge(&mut self, revs: &[RevId]) -> Vec<RevId> {
        let (purged, kept): (Vec<_>, Vec<_>) = self.leaves().into_iter().partition(|leaf| revs.contains(&leaf.rev));
        let mut needed = BTreeSet::new();
        for leaf in &kept {
            needed.insert(leaf.rev.clone());
            let generations = (1..leaf.rev.generation).rev();
            needed.extend(
                generations
                    .zip(&leaf.line)
                    .map(|(generation, hash)| RevId::parse(&format!("{generation}-{hash}")).unwrap()),
            );
        }
        self.0.retain(|rev, _| purged.is_empty() || needed.contains(rev));
        let mut gone: Vec<_> = purged.into_iter().map(|leaf| leaf.rev).collect();
        gone.sort_by_key(|rev| revs.iter().position(|named| named == rev));
        gone
    }

    fn line(&self, rev: &RevId) -> Vec<String> {
        let parent = |rev: &RevId| {
            let hash = self.0.get(rev)?.parent.clone()?;
            Some(RevId::new(rev.generation - 1, hash))
        };
        std::iter::successors(parent(rev), parent).map(|ancestor| ancestor.hash.to_string()).collect()
    }

    pub fn take(&mut self, proposed: &Proposed) -> Effect {
        match proposed {
            Proposed::Interactive { parent, deleted, body } => self.edit(parent.as_ref(), *deleted, body),
            Proposed::Replicated { path, deleted, body } => self.merge(path, *deleted, body),
        }
    }

    fn edit(&mut self, parent: Option<&RevId>, deleted: bool, body: &Body) -> Effect {
        let leaves = self.leaves();
        let base = match (leaves.first(), parent) {
            (None, None) => None,
            (Some(winner), None) if winner.deleted && !deleted => Some(winner.rev.clone()),
            (Some(winner), Some(parent)) if !winner.deleted && leaves.iter().any(|leaf| leaf.rev == *parent) => {
                Some(parent.clone())
            }
            _ => return Effect::Conflict,
        };
        let generation = base.as_ref().map_or(0, |base| base.generation) + 1;
        let rev = RevId::new(generation, revision_hash(body, base.as_ref(), deleted));
        let node = Node { parent: base.map(|base| base.hash), deleted, body: Some(body.clone()) };
        if self.0.insert(rev.clone(), node).is_some() {
            unreachable!("the generator pushes no hashes of interactive edits");
        }
        Effect::Changed(rev)
    }

    fn merge(&mut self, path: &RevPath, deleted: bool, body: &Body) -> Effect {
        let mut effect = Effect::Known;
        for (steps, hash) in path.hashes().iter().enumerate() {
            let rev = RevId::new(path.start() - steps as u64, hash.clone());
            let parent = path.hashes().get(steps + 1).cloned();
            let tip = steps == 0;
            let known = self.0.contains_key(&rev);
            let fresh = Node { parent: None, deleted: tip && deleted, body: tip.then(|| body.clone()) };
            let node = self.0.entry(rev).or_insert(fresh);
            if !known || node.parent.is_none() && parent.is_some() {
                node.parent = node.parent.take().or(parent);
                effect = Effect::Changed(path.rev());
            }
        }
        effect
    }
}
