//! What can be written, and what becomes of it.

use crate::json::Body;
use crate::model::doc_id::{DocId, LocalId};
use crate::model::rev::RevId;
use crate::model::sequence::Sequence;
use crate::plan::Edit;
use crate::refusal::Refusal;

/// One thing to write.
#[derive(Debug, Clone)]
pub enum Write {
    /// A revision of a document.
    Edit(Edit),
    /// A `_local` document.
    Local(LocalEdit),
    /// Forgets leaves of a document, with the ancestors and bodies that no other leaf shares.
    Purge {
        /// The document.
        id: DocId,
        /// The leaves; what is no leaf is passed over.
        revs: Vec<RevId>,
    },
    /// How many revisions a branch keeps; a leaf is always kept, so 0 is 1.
    RevsLimit(u32),
    /// Nothing, in the place of a write of which it was decided before that it changes nothing, and why.
    Decided {
        /// What became of it.
        outcome: Outcome,
        /// The document, and its latest sequence when this was decided, where the write asked for it to be as it was:
        /// if it has moved since, nothing of the request is written, as with [`Edit::expecting`].
        expected: Option<(DocId, Sequence)>,
    },
    /// The fields, each path once, that the index of the feed is of. Without any there is none.
    FeedIndex(Vec<String>),
}

impl Write {
    /// Whether it makes room, now or once garbage is reclaimed, where what becomes of it is remembered or not.
    pub(crate) fn makes_room(&self, is_remembered: bool) -> bool {
        match self {
            Write::Edit(edit) => edit.deleted() && edit.body().is_empty(),
            Write::Local(edit) => edit.body.is_none(),
            // What a refusal says is kept then.
            Write::Decided { outcome, .. } => !is_remembered || !matches!(outcome, Outcome::Refused(_)),
            Write::Purge { .. } | Write::RevsLimit(_) => true,
            Write::FeedIndex(fields) => fields.is_empty(),
        }
    }
}

/// A change of a `_local` document.
#[derive(Debug, Clone)]
pub struct LocalEdit {
    /// Which one.
    pub id: LocalId,
    /// The number n of the revision `0-n` that is stored, as the writer knows it.
    pub base: Option<u64>,
    /// Whether `base` is checked; replicated writes overwrite.
    pub checked: bool,
    /// The new body; `None` deletes.
    pub body: Option<Body>,
}

/// What became of one [`Write`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The revision is in the tree, and the document moved to this sequence.
    Written {
        /// The new revision.
        rev: RevId,
        /// The document's new place.
        seq: Sequence,
    },
    /// The revision was in the tree before: nothing changed.
    Known {
        /// The revision.
        rev: RevId,
    },
    /// The edit's parent is not a leaf it may go on, or the revision was there before: nothing changed.
    Conflict,
    /// The local document has this revision number now; 0 when it was deleted.
    Local {
        /// The number n of `0-n`.
        revision: u64,
    },
    /// These leaves are gone.
    Purged {
        /// The leaves, as they were named.
        revs: Vec<RevId>,
        /// The sequence it took: the document's new place, if anything is left of it. `None` when nothing was purged.
        seq: Option<Sequence>,
    },
    /// There is no such local document to delete.
    Missing,
    /// Done; nothing more to say.
    Done,
    /// It was refused: nothing changed.
    Refused(Refusal),
    /// It was so before: nothing changed.
    Unchanged,
}

impl Outcome {
    /// Whether the write changed anything.
    pub fn is_change(&self) -> bool {
        match self {
            Outcome::Written { .. } | Outcome::Local { .. } | Outcome::Done => true,
            Outcome::Purged { seq, .. } => seq.is_some(),
            Outcome::Known { .. } | Outcome::Conflict | Outcome::Missing | Outcome::Unchanged | Outcome::Refused(_) => {
                false
            }
        }
    }
}
