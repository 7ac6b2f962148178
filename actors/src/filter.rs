//! What a feed shows of a database's changes.

use std::collections::HashSet;
use std::sync::Arc;

use seqtide_storage::json::Body;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::{Change, Detail, LeafRev};

use crate::selector::{DocView, Selector};

/// Which changes a feed shows: those whose document has one of these ids and passes this test.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// By their ids.
    pub ids: Ids,
    /// By what is in them.
    pub test: Test,
}

/// The ids of the documents a feed shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Ids {
    /// All.
    #[default]
    All,
    /// The listed ones.
    Listed(Arc<HashSet<DocId>>),
    /// Those that start so.
    Prefix(Arc<str>),
}

/// What a document must be like; what is not asked for holds. Equal tests wake their feeds together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Test {
    /// A revision must match: the winner, or with `all_leaves` any leaf, and those that do not are not listed.
    pub selector: Option<Selector>,
    /// The document must have more than one live leaf.
    pub conflicts_only: bool,
}

impl Filter {
    /// Every change.
    pub const ALL: Filter = Filter { ids: Ids::All, test: Test::NONE };

    /// Changes of the listed documents.
    pub fn ids(ids: impl IntoIterator<Item = DocId>) -> Filter {
        Filter { ids: Ids::Listed(Arc::new(ids.into_iter().collect())), ..Filter::ALL }
    }

    /// Changes of documents whose ids start with `prefix`.
    pub fn prefix(prefix: &str) -> Filter {
        Filter { ids: Ids::Prefix(prefix.into()), ..Filter::ALL }
    }

    /// CouchDB's `_design`: ids that start so; it looks for no slash.
    pub fn design() -> Filter {
        Filter::prefix("_design")
    }

    /// Changes of documents that match a selector.
    pub fn selector(selector: Selector) -> Filter {
        Filter { test: Test { selector: Some(selector), ..Test::NONE }, ..Filter::ALL }
    }

    /// Changes of documents in conflict: with more than one live leaf.
    pub fn conflicts_only() -> Filter {
        Filter { test: Test { conflicts_only: true, ..Test::NONE }, ..Filter::ALL }
    }
}

impl Ids {
    /// Whether this is one of them.
    pub fn contains(&self, id: &str) -> bool {
        match self {
            Ids::All => true,
            Ids::Listed(ids) => ids.contains(id),
            Ids::Prefix(prefix) => id.starts_with(&**prefix),
        }
    }
}

/// What passes a test.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    Nothing,
    /// The document with all its leaves.
    All,
    /// The document with these leaves.
    Leaves(Vec<LeafRev>),
}

impl Passed {
    fn all_or_nothing(all: bool) -> Passed {
        if all { Passed::All } else { Passed::Nothing }
    }
}

impl Test {
    /// Passes everything.
    pub const NONE: Test = Test { selector: None, conflicts_only: false };

    /// What the test must know of a document, the bodies of losing leaves aside.
    pub(crate) fn detail(&self) -> Detail {
        Detail { leaves: self.conflicts_only, bodies: self.selector.is_some() }
    }

    /// Whether leaves other than the winner have to be opened.
    pub(crate) fn opens_losers(&self, change: &Change, all_leaves: bool) -> bool {
        all_leaves && change.leaves.len() > 1 && self.selector.is_some()
    }

    /// What passes of a document, whose losing leaves' bodies are `body_of` their place among the leaves. A revision
    /// whose body is not there matches nothing.
    ///
    /// Source: CouchDB `couch_changes:filter`.
    ///
    /// # Errors
    /// Those of `body_of`.
    pub(crate) fn judge<E>(
        &self,
        change: &Change,
        all_leaves: bool,
        mut body_of: impl FnMut(usize) -> Result<Option<Body>, E>,
    ) -> Result<Passed, E> {
        if self.conflicts_only && !in_conflict(change) {
            return Ok(Passed::Nothing);
        }
        let Some(selector) = &self.selector else { return Ok(Passed::All) };
        let matches = |leaf: &LeafRev, body: Option<&Body>| {
            body.is_some_and(|body| selector.matches(&DocView::new(&change.id, leaf, body)))
        };
        let winner = matches(change.winner(), change.body.as_ref());
        if !self.opens_losers(change, all_leaves) {
            return Ok(Passed::all_or_nothing(winner));
        }
        let mut passed = Vec::new();
        for (place, leaf) in change.leaves.iter().enumerate() {
            let passes = if place == 0 { winner } else { matches(leaf, body_of(place)?.as_ref()) };
            passed.extend(passes.then(|| leaf.clone()));
        }
        Ok(match passed.len() {
            count if count == change.leaves.len() => Passed::All,
            0 => Passed::Nothing,
            _ => Passed::Leaves(passed),
        })
    }

    /// Whether a document may pass, as far as its winner tells; `winner` is `None` when its body is not there.
    pub(crate) fn may_pass(&self, change: &Change, winner: Option<&DocView<'_>>, all_leaves: bool) -> bool {
        let matches = |selector: &Selector| winner.is_some_and(|winner| selector.matches(winner));
        (!self.conflicts_only || in_conflict(change))
            && (self.opens_losers(change, all_leaves) || self.selector.as_ref().is_none_or(matches))
    }
}

fn in_conflict(change: &Change) -> bool {
    change.leaves.iter().filter(|leaf| !leaf.deleted).nth(1).is_some()
}
