//! Random things that happen to a store.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::sample::{Index, subsequence};
use seqtide_storage::json::Body;
use seqtide_storage::model::rev::{RevHash, RevId};
use seqtide_storage::model::rev_path::RevPath;

use super::documents::{Document, Proposed};
use crate::db::body;

#[derive(Debug, Clone)]
pub enum Step {
    Commit(Vec<(Vec<Op>, Keyed)>),
    /// A request with a key again, if it changed anything: with its key, or with the key of another one.
    Repeat {
        request: Index,
        key_of: Option<Index>,
    },
    Reopen,
    Reclaim(usize),
    RaiseIncarnation,
    /// The index of the feed gets these fields.
    Index(Vec<&'static str>),
    /// The index is gone on with by so many rows.
    Tend(usize),
}

/// Whether a request has an idempotency key.
type Keyed = bool;

#[derive(Debug, Clone)]
pub enum Op {
    Edit(EditOp),
    Local {
        name: String,
        fresh: bool,
        json: Option<String>,
    },
    /// Of a document, the leaves at these places, and revisions that are no leaves.
    Purge {
        doc: u8,
        leaves: Vec<Index>,
        others: Vec<Index>,
    },
}

#[derive(Debug, Clone)]
pub struct EditOp {
    doc: u8,
    deleted: bool,
    json: u8,
    how: How,
}

/// Where an edit belongs.
#[derive(Debug, Clone)]
enum How {
    /// Without a parent.
    Create,
    /// On one of the leaves.
    OnLeaf(Index),
    /// On a revision that may be anything.
    OnAny(Index),
    /// Elsewhere, `longer` revisions were put on some revision; the newest is pushed with so many of its ancestors.
    Pushed { on: Index, longer: usize, ancestors: usize },
}

pub fn step() -> impl Strategy<Value = Step> {
    let request = (prop::collection::vec(op(), 1..5), any::<Keyed>());
    let commit = prop::collection::vec(request, 1..5).prop_map(Step::Commit);
    let repeat = (any::<Index>(), prop::option::weighted(0.2, any::<Index>()))
        .prop_map(|(request, key_of)| Step::Repeat { request, key_of });
    prop_oneof![
        20 => commit,
        8 => repeat,
        1 => Just(Step::Reopen),
        2 => (1usize..9).prop_map(Step::Reclaim),
        1 => Just(Step::RaiseIncarnation),
        2 => subsequence(vec!["n", "m"], 0..=2).prop_map(Step::Index),
        4 => (1usize..9).prop_map(Step::Tend),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let how = prop_oneof![
        2 => Just(How::Create),
        5 => any::<Index>().prop_map(How::OnLeaf),
        1 => any::<Index>().prop_map(How::OnAny),
        6 => (any::<Index>(), prop_oneof![4 => 0usize..4, 1 => 4usize..90], prop_oneof![3 => 0usize..5, 2 => 0usize..200])
            .prop_map(|(on, longer, ancestors)| How::Pushed { on, longer, ancestors }),
    ];
    let edit = (0u8..4, prop::bool::weighted(0.2), 0u8..6, how)
        .prop_map(|(doc, deleted, json, how)| Op::Edit(EditOp { doc, deleted, json, how }));
    let local = ("[xy]", prop::bool::weighted(0.8), prop::option::of(Just(r#"{"l":1}"#.to_owned())))
        .prop_map(|(name, fresh, json)| Op::Local { name, fresh, json });
    let purge = (0u8..4, prop::collection::vec(any::<Index>(), 0..4), prop::collection::vec(any::<Index>(), 0..3))
        .prop_map(|(doc, leaves, others)| Op::Purge { doc, leaves, others });
    prop_oneof![9 => edit, 1 => local, 1 => purge]
}

/// What was ever replicated, each revision with one parent for good.
#[derive(Default)]
pub struct Truth(HashMap<u8, Vec<Known>>);

#[derive(Clone)]
struct Known {
    rev: RevId,
    parent: Option<usize>,
    deleted: bool,
    body: Body,
}

impl Truth {
    /// Puts new revisions on one that is known, or on none; gives the place of the newest.
    fn grow(&mut self, op: &EditOp, on: Index, longer: usize) -> usize {
        let known = self.0.entry(op.doc).or_default();
        let at = on.index(known.len() + 1);
        let mut parent = (at < known.len()).then_some(at);
        let longer = if parent.is_none() { longer.max(1) } else { longer };
        for _ in 0..longer {
            let generation = parent.map_or(0, |parent: usize| known[parent].rev.generation) + 1;
            let hash = RevHash::parse(&format!("t{}", known.len())).unwrap();
            let (deleted, body) = (op.deleted, op.body());
            known.push(Known { rev: RevId::new(generation, hash), parent, deleted, body });
            parent = Some(known.len() - 1);
        }
        parent.unwrap_or(at)
    }

    /// The revisions that a purge names: some leaves, and some that were replicated once.
    pub fn to_purge(&self, doc: u8, document: &Document, leaves: &[Index], others: &[Index]) -> Vec<RevId> {
        let all: Vec<_> = document.leaves().into_iter().map(|leaf| leaf.rev).collect();
        let known: Vec<_> = self.0.get(&doc).into_iter().flatten().map(|known| known.rev.clone()).collect();
        let pick = |from: &[RevId], at: &Index| (!from.is_empty()).then(|| at.get(from).clone());
        let leaves = leaves.iter().filter_map(|at| pick(&all, at));
        leaves.chain(others.iter().filter_map(|at| pick(&known, at))).collect()
    }

    fn path(&self, doc: u8, at: usize, ancestors: usize) -> RevPath {
        let known = &self.0[&doc];
        let line = std::iter::successors(Some(at), |at| known[*at].parent).take(ancestors + 1);
        let hashes = line.map(|at| known[at].rev.hash.clone()).collect();
        RevPath::new(known[at].rev.generation, hashes).unwrap()
    }
}

pub fn doc_name(doc: u8) -> String {
    format!("doc-{doc}")
}

impl EditOp {
    pub fn doc(&self) -> String {
        doc_name(self.doc)
    }

    fn body(&self) -> Body {
        body(&match self.json {
            0 => "{}".to_owned(),
            1 => r#"{"m":["x","xx","xxx","xxxx"]}"#.to_owned(),
            2 => r#"{"m":["x","xx"],"n":"x"}"#.to_owned(),
            n => format!(r#"{{"n":"{}"}}"#, "x".repeat(usize::from(n))),
        })
    }

    /// The revision to write, given what the document is by now.
    pub fn proposed(&self, document: &Document, truth: &mut Truth) -> Proposed {
        let revs: Vec<_> = document.leaves().into_iter().map(|leaf| leaf.rev).collect();
        let (deleted, body) = (self.deleted, self.body());
        match &self.how {
            How::Create => Proposed::Interactive { parent: None, deleted, body },
            How::OnLeaf(_) if revs.is_empty() => Proposed::Interactive { parent: None, deleted, body },
            How::OnLeaf(leaf) => Proposed::Interactive { parent: Some(leaf.get(&revs).clone()), deleted, body },
            How::OnAny(any) => {
                let generation = any.index(4) as u64;
                let hash = RevHash::parse(&format!("t{generation}")).unwrap();
                Proposed::Interactive { parent: Some(RevId::new(generation, hash)), deleted, body }
            }
            How::Pushed { on, longer, ancestors } => {
                let at = truth.grow(self, *on, *longer);
                let known = truth.0[&self.doc][at].clone();
                let path = truth.path(self.doc, at, *ancestors);
                Proposed::Replicated { path, deleted: known.deleted, body: known.body }
            }
        }
    }
}
