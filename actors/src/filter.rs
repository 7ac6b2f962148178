//! What a feed shows of a database's changes.

use std::collections::HashSet;
use std::sync::Arc;

use seqtide_storage::json::Body;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::{Change, Detail, LeafRev};

use crate::functions::FilterFunction;
use crate::metrics::FilterMetrics;
use crate::selector::{DocView, Selector};

/// Which changes a feed shows: those whose document has one of these ids, and passes this test and this function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// By their ids.
    pub ids: Ids,
    /// By what is in them.
    pub test: Test,
    /// By a function of a design document, which must let a revision pass that passes all else.
    pub function: Option<FilterFunction>,
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

/// What takes more steps may take more than some milliseconds, and is not done where others wait.
const STEPS_AT_ONCE_MAX: usize = 1 << 20;

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
    pub const ALL: Filter = Filter { ids: Ids::All, test: Test::NONE, function: None };

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

    /// Changes of documents that a function of a design document lets pass.
    pub fn function(function: FilterFunction) -> Filter {
        Filter { function: Some(function), ..Filter::ALL }
    }

    /// Changes of documents in conflict: with more than one live leaf.
    pub fn conflicts_only() -> Filter {
        Filter { test: Test { conflicts_only: true, ..Test::NONE }, ..Filter::ALL }
    }
}

impl Filter {
    /// What it asks for, for people, in few words; `None` where it shows everything.
    pub fn to_text(&self) -> Option<String> {
        let ids = match &self.ids {
            Ids::All => None,
            Ids::Listed(ids) => Some(format!("doc_ids: {}", ids.len())),
            Ids::Prefix(prefix) => Some(format!("prefix: {prefix:?}")),
        };
        let selector = self.test.selector.as_ref().map(|selector| format!("selector: {}", selector.text()));
        let conflicts = self.test.conflicts_only.then(|| "conflicts_only".to_owned());
        let function = self.function.as_ref().map(FilterFunction::to_string);
        let parts: Vec<String> = [ids, selector, conflicts, function].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| shortened(parts.join(", ")))
    }

    /// What the filter must know of a document, the bodies of losing leaves aside.
    pub(crate) fn detail(&self) -> Detail {
        let Detail { leaves, bodies } = self.test.detail();
        Detail { leaves, bodies: bodies || self.function.is_some() }
    }

    /// Whether ids alone decide.
    pub(crate) fn looks_at_ids_alone(&self) -> bool {
        self.test == Test::NONE && self.function.is_none()
    }
}

impl Ids {
    /// How many are listed.
    pub(crate) fn listed(&self) -> usize {
        match self {
            Ids::Listed(ids) => ids.len(),
            Ids::All | Ids::Prefix(_) => 0,
        }
    }

    /// Whether this is one of them.
    pub fn contains(&self, id: &str) -> bool {
        match self {
            Ids::All => true,
            Ids::Listed(ids) => ids.contains(id),
            Ids::Prefix(prefix) => id.starts_with(&**prefix),
        }
    }
}

/// The longest text of a filter, in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 200;

/// A text of a filter, its end left out where it is long.
pub(crate) fn shortened(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX - "…".len()));
        text.push('…');
    }
    text
}

/// What passes a test. Cloning shares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Passed {
    Nothing,
    /// The document with all its leaves.
    All,
    /// The document with these leaves.
    Leaves(Arc<[LeafRev]>),
}

impl Passed {
    pub(crate) fn all_or_nothing(all: bool) -> Passed {
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
        all_leaves && change.leaves.len() > 1 && self.selector.is_some() && !self.rules_out(change)
    }

    /// Whether it may take long to look at a document's winner.
    pub(crate) fn takes_long(&self, change: &Change) -> bool {
        self.steps(change) > STEPS_AT_ONCE_MAX && !self.rules_out(change)
    }

    /// Whether it may take long to look at a revision with this body.
    pub(crate) fn may_take_long(&self, body: &Body) -> bool {
        self.steps_over(body.as_bytes().len()) > STEPS_AT_ONCE_MAX
    }

    /// How many steps it takes for each byte it looks at, roughly and at most; at least one.
    pub(crate) fn steps_a_byte(&self) -> usize {
        self.selector.as_ref().map_or(1, Selector::steps_a_byte)
    }

    /// How many steps it takes to look at a document's winner, roughly and at most.
    pub(crate) fn steps(&self, change: &Change) -> usize {
        self.steps_over(change.body.as_ref().map_or(0, |body| body.as_bytes().len()))
    }

    fn steps_over(&self, body_bytes: usize) -> usize {
        self.selector.as_ref().map_or(0, |selector| selector.steps(body_bytes))
    }

    /// Whether what is known of the leaves without opening one decides that nothing passes.
    fn rules_out(&self, change: &Change) -> bool {
        self.conflicts_only && !in_conflict(change)
    }

    /// What passes of a document with this winner, whose losing leaves' bodies are `body_of` their place among the
    /// leaves. A revision whose body is not there matches nothing.
    ///
    /// Source: CouchDB `couch_changes:filter`.
    ///
    /// # Errors
    /// Those of `body_of`.
    pub(crate) fn judge<E>(
        &self,
        change: &Change,
        winner: Option<&DocView<'_>>,
        all_leaves: bool,
        counted: &FilterMetrics,
        mut body_of: impl FnMut(usize) -> Result<Option<Body>, E>,
    ) -> Result<Passed, E> {
        if self.rules_out(change) {
            return Ok(Passed::Nothing);
        }
        let Some(selector) = &self.selector else { return Ok(Passed::All) };
        counted.evaluated();
        let winner = winner.is_some_and(|winner| selector.matches(winner));
        if !self.opens_losers(change, all_leaves) {
            return Ok(Passed::all_or_nothing(winner));
        }
        let mut passed = Vec::new();
        for (place, leaf) in change.leaves.iter().enumerate() {
            let passes = match place {
                0 => winner,
                _ => body_of(place)?.is_some_and(|body| selector.matches(&DocView::new(&change.id, leaf, &body))),
            };
            passed.extend(passes.then(|| leaf.clone()));
        }
        Ok(match passed.len() {
            count if count == change.leaves.len() => Passed::All,
            0 => Passed::Nothing,
            _ => Passed::Leaves(passed.into()),
        })
    }
}

fn in_conflict(change: &Change) -> bool {
    change.leaves.iter().filter(|leaf| !leaf.deleted).nth(1).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_filter_names_all_it_asks_for_and_is_short() {
        assert_eq!(Filter::ALL.to_text(), None);
        let selector = Selector::from_json(r#"{"type": "order"}"#).unwrap();
        let mut filter = Filter { ids: Ids::Prefix("o-".into()), ..Filter::selector(selector) };
        assert_eq!(filter.to_text().unwrap(), r#"prefix: "o-", selector: {"type": "order"}"#);
        filter.test = Test { selector: None, conflicts_only: true };
        filter.ids = Filter::ids([DocId::parse("a").unwrap()]).ids;
        assert_eq!(filter.to_text().unwrap(), "doc_ids: 1, conflicts_only");
        let long = Filter::prefix(&"ä".repeat(500)).to_text().unwrap();
        assert!(long.len() <= TEXT_BYTES_MAX && long.ends_with("ä…"), "{long}");
    }
}
