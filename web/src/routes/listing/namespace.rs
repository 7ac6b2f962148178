//! Which documents a listing is of.

use std::ops::Bound;

use seqtide::storage::{Snapshot, StorageError};

/// To give a number of documents, at most this many are counted; beyond it is `null`.
const COUNT_MAX: u64 = 100_000;

/// Bounds of ids, the lower one first.
pub type IdRange = (Bound<String>, Bound<String>);

/// Which documents a listing is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespace {
    /// All that are in the feed.
    All,
    /// Those whose ids begin with `_design/`.
    Design,
    /// Those whose ids begin with `_local/`, which are in no feed.
    Local,
}

impl Namespace {
    pub fn of(endpoint: &str) -> Option<Namespace> {
        match endpoint {
            "_all_docs" => Some(Namespace::All),
            "_design_docs" => Some(Namespace::Design),
            "_local_docs" => Some(Namespace::Local),
            _ => None,
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Namespace::All => "",
            Namespace::Design => "_design/",
            Namespace::Local => "_local/",
        }
    }

    /// The first text above all ids that begin with the prefix.
    fn end(self) -> Option<&'static str> {
        match self {
            Namespace::All => None,
            Namespace::Design => Some("_design0"),
            Namespace::Local => Some("_local0"),
        }
    }

    pub fn has(self, id: &str) -> bool {
        id.starts_with(self.prefix())
    }

    /// What of a range lies in here.
    pub fn within(self, (from, to): IdRange) -> IdRange {
        let Some(end) = self.end() else { return (from, to) };
        let from = match from {
            Bound::Included(ref id) | Bound::Excluded(ref id) if id.as_str() >= self.prefix() => from,
            _ => Bound::Included(self.prefix().to_owned()),
        };
        let to = match to {
            Bound::Included(ref id) | Bound::Excluded(ref id) if id.as_str() < end => to,
            _ => Bound::Excluded(end.to_owned()),
        };
        (from, to)
    }

    /// The same range by what follows the prefix; `None` when it has nothing of this.
    pub fn names(self, range: IdRange) -> Option<IdRange> {
        let (from, to) = self.within(range);
        let name = |id: String| id.strip_prefix(self.prefix()).map(str::to_owned);
        let from = match from {
            Bound::Included(id) => Bound::Included(name(id)?),
            Bound::Excluded(id) => Bound::Excluded(name(id)?),
            Bound::Unbounded => Bound::Unbounded,
        };
        let to = match to {
            Bound::Excluded(id) if self.end() == Some(id.as_str()) => Bound::Unbounded,
            Bound::Included(id) => Bound::Included(name(id)?),
            Bound::Excluded(id) => Bound::Excluded(name(id)?),
            Bound::Unbounded => Bound::Unbounded,
        };
        Some((from, to))
    }

    /// How many live documents there are; `None` where that is not known.
    pub fn total(self, snapshot: &Snapshot<'_>) -> Result<Option<u64>, StorageError> {
        match self {
            Namespace::All => Ok(Some(snapshot.counters()?.docs)),
            Namespace::Design => {
                let (from, to) = self.within((Bound::Unbounded, Bound::Unbounded));
                snapshot.count_docs(&from, &to, COUNT_MAX)
            }
            Namespace::Local => Ok(None),
        }
    }

    /// How many live documents a listing passes over before its start; `None` where that is not known.
    pub fn docs_before(
        self,
        snapshot: &Snapshot<'_>,
        range: &IdRange,
        descending: bool,
    ) -> Result<Option<u64>, StorageError> {
        let outside = |bound: &Bound<String>| match bound {
            Bound::Included(id) => Some(Bound::Excluded(id.clone())),
            Bound::Excluded(id) => Some(Bound::Included(id.clone())),
            Bound::Unbounded => None,
        };
        if self == Namespace::Local {
            return Ok(None);
        }
        let (lowest, highest) = self.within((Bound::Unbounded, Bound::Unbounded));
        let (from, to) = self.within(range.clone());
        match outside(if descending { &to } else { &from }) {
            None => Ok(Some(0)),
            Some(end) if descending => snapshot.count_docs(&end, &highest, COUNT_MAX),
            Some(end) => snapshot.count_docs(&lowest, &end, COUNT_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(text: &str) -> Bound<String> {
        Bound::Included(text.to_owned())
    }

    #[test]
    fn a_range_is_cut_to_the_namespace() {
        let whole = (bound("_local/"), Bound::Excluded("_local0".to_owned()));
        assert_eq!(Namespace::Local.within((Bound::Unbounded, Bound::Unbounded)), whole);
        assert_eq!(Namespace::Local.within((bound("A"), bound("z"))), whole);
        let part = (bound("_local/b"), bound("_local/c"));
        assert_eq!(Namespace::Local.within(part.clone()), part);
        assert_eq!(Namespace::All.within((bound("A"), bound("z"))), (bound("A"), bound("z")));
    }

    #[test]
    fn names_are_what_follows_the_prefix() {
        let names = |from, to| Namespace::Local.names((from, to));
        assert_eq!(names(Bound::Unbounded, Bound::Unbounded), Some((bound(""), Bound::Unbounded)));
        assert_eq!(names(bound("_local/b"), bound("_local/c")), Some((bound("b"), bound("c"))));
        assert_eq!(names(bound("a"), Bound::Unbounded), None, "it starts above all of them");
        assert_eq!(names(Bound::Unbounded, bound("Z")), None, "it ends below all of them");
    }
}
