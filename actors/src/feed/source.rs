//! What a feed is of: the documents of a database, or the databases of an engine.

use std::sync::Arc;

use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::{Change, Direction};
use tokio::sync::watch;
use tokio::time::Instant;

use super::options::FeedOptions;
use super::seen::Seen;
use crate::end_reason::EndReason;
use crate::error::Error;
use crate::feed::frames::Frames;
use crate::rounds::OwnRounds;
use crate::row::FeedRow;

/// Rows in the order of their sequences, each at its latest, that a [`Feed`](super::Feed) reads from and waits at.
/// There are two: [`Documents`](crate::Documents) and [`Databases`](crate::Databases).
pub trait Source: Send + Sync + Sized + 'static {
    /// One of the rows.
    type Row: FeedRow;

    /// The update sequence, as far as feeds can see.
    fn newest(&self) -> Sequence;

    /// How sequences are written.
    fn seq_format(&self) -> SeqFormat;

    /// Tells when and why feeds end.
    fn ended(&self) -> watch::Receiver<Option<EndReason>>;

    /// Reads part of a stretch.
    ///
    /// # Errors
    /// [`Error::NoDatabase`] and [`Error::Stopped`] when the source closes; [`Error::Storage`].
    fn read(
        &self,
        options: &FeedOptions,
        wanted: Wanted,
    ) -> impl Future<Output = Result<Page<Self::Row>, Error>> + Send + 'static;

    /// How often rows were purged.
    fn purges(&self) -> u64;

    /// What may still be given of a page that was read when rows had been purged so often; `None` where that is not
    /// known any more, and it is to be read again.
    fn without_purged(&self, page: Page<Self::Row>, purges: u64) -> Option<Page<Self::Row>>;

    /// Counts the rows behind a sequence; backward, those before it.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn pending(&self, seq: Sequence, direction: Direction) -> impl Future<Output = Result<u64, Error>> + Send;

    /// Who has read up to here or beyond is given what is in memory.
    fn memory_from(&self) -> Sequence;

    /// How far a place lies behind.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn lag(&self, seq: Sequence) -> impl Future<Output = Result<Lag, Error>> + Send;

    /// Whether there are readers to spare, so that the next page may be read before it is asked for.
    fn may_read_ahead(&self) -> bool {
        false
    }

    /// The rounds of a reader that has come so far and gives its rows to many; `None` where nobody who writes waits for
    /// them.
    fn rounds(&self, _position: Sequence) -> Option<OwnRounds> {
        None
    }

    /// Begins to read for a feed that is to tell what leaves: what its reader can have, which begins at `start`. `None`
    /// where it need not tell.
    fn looks_from(&mut self, _options: &FeedOptions, _start: Sequence) -> Option<Seen> {
        None
    }

    /// Takes note that such a feed has looked at all up to a place, in this state.
    fn note_looked(&self, _up_to: Sequence, _state: Sequence) {}

    /// Waits for what may concern the feed; at once if there was something since the last call.
    fn woken(&mut self) -> impl Future<Output = ()> + Send;

    /// Waits until every row up to a sequence has woken whom it concerns.
    fn reached(&self, seq: Sequence) -> impl Future<Output = ()> + Send + 'static;

    /// The same source for another feed, woken from now on.
    fn again(&self) -> Self;

    /// The same for sources that give the same, as long as one of them is there; `None` where that is not known.
    fn identity(&self) -> Option<[usize; 2]>;

    /// What has not concerned the feed, which had read all there was before it waited; `None` when that cannot be told
    /// without reading.
    fn passed(&mut self) -> Option<Passed>;
}

/// What a feed passes over without having read it.
#[derive(Debug, Clone, Copy)]
pub struct Passed {
    /// Nothing up to here has concerned it.
    pub up_to: Sequence,
    /// When the last commit came.
    pub newest_at: Instant,
}

/// How far a place lies behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lag {
    /// Rows behind it, before any filter.
    pub rows: u64,
    /// How long ago the first of them was written, at most; `None` where that is not known.
    pub seconds: Option<u64>,
}

/// A stretch of a feed.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Rows above this.
    pub after: Sequence,
    /// Rows up to this.
    pub up_to: Sequence,
    /// Most rows given.
    pub rows_max: usize,
    /// From which end.
    pub direction: Direction,
    /// Whether the page may be a large one, if there is room.
    pub large: bool,
    /// Only what is not deleted.
    pub live_only: bool,
    /// What the reader can have, where it is told what leaves.
    pub seen: Option<Seen>,
}

impl Wanted {
    /// Whether a change is wanted at all, whatever the filter says.
    pub(crate) fn asks_for(&self, change: &Change) -> bool {
        !(self.live_only && change.deleted())
    }
}

/// Part of it.
#[derive(Debug)]
pub struct Page<R> {
    /// Its rows, but for those in `frames`.
    pub rows: Vec<Arc<R>>,
    /// Its rows as bytes alone, in place of `rows`: where the feed wants no more of them, and nobody shares them.
    pub frames: Frames,
    /// The last row examined.
    pub examined: Option<Sequence>,
    /// Whether all of the stretch has been read.
    pub complete: bool,
    /// The update sequence of the state it was read in.
    pub state: Sequence,
}

impl<R> Page<R> {
    /// A page of nothing, so far, of a state.
    pub(crate) fn empty(state: Sequence) -> Page<R> {
        Page { rows: Vec::new(), frames: Frames::default(), examined: None, complete: false, state }
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.rows.len() + self.frames.len()
    }
}
