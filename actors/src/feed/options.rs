//! What a feed is asked for.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use seqtide_storage::Detail;
use seqtide_storage::model::sequence::Sequence;

use crate::feed::frames::FrameForm;
use crate::feed::kind::FeedKind;
use crate::filter::Filter;
use crate::row::RowShape;
use crate::selector::Fields;

/// Where a feed starts: behind this place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// The update sequence at the moment the feed is opened.
    Now,
    /// A place, as a token names it. [`Sequence::ZERO`] is before everything.
    Seq(Sequence),
    /// A time: nothing that was written then or later is left out, and some may be given that was written before, by up
    /// to a second or a thousandth of how long ago that is. Databases' updates have no times: their feeds give all
    /// then.
    Time(SystemTime),
}

impl Since {
    /// Before everything.
    pub const START: Since = Since::Seq(OLDEST_SEQ);
}

/// The place behind which every feed has everything there is: nothing falls off the far end.
pub const OLDEST_SEQ: Sequence = Sequence::ZERO;

/// When a feed ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedMode {
    /// At the last row there was when it was opened.
    Once,
    /// When it has given what there was; if that was nothing, when it has given what came first.
    Longpoll,
    /// Never by itself.
    Live,
}

/// Which place is the last of what there was when a feed was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndsAt {
    /// The last row there was, as in CouchDB. A feed that goes back begins there in any case.
    LastRow,
    /// The update sequence, which a purge may have brought further.
    UpdateSeq,
}

/// What to do with a token from the future: ahead of the database, or of a newer incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ahead {
    /// As CouchDB: wait until the database has come there. A newer incarnation's token is taken for one of another
    /// database: from the start.
    Echo,
    /// Say so, and start from the beginning.
    Rewind,
    /// [`Error::Ahead`](crate::Error::Ahead) instead of a feed.
    Refuse,
}

/// What a feed is asked for.
#[derive(Debug, Clone)]
pub struct FeedOptions {
    /// Where it starts.
    pub since: Since,
    /// Whether its reader began at a time once, also if it goes on from a place now: what the reader has is not known
    /// then, and may be more than what lies up to that place. So it is in any case where `since` is a time.
    pub began_at_time: bool,
    /// Up to where: the feed ends there, and waits for a place that has not come if it waits at all.
    pub until: Option<Sequence>,
    /// First what there is now: documents that pass and are not deleted, or behind a place all that changed since, and
    /// word where that ends. From now on means from the beginning then.
    pub snapshot: bool,
    /// Whether a document that was given and does not pass any more, or is deleted, is told once, as one that has
    /// [left](crate::Row::left). One that was not given is not told when it is deleted.
    pub leave: bool,
    /// When it ends.
    pub mode: FeedMode,
    /// Where, if it is [once](FeedMode::Once).
    pub ends_at: EndsAt,
    /// From the newest row, or from `until`, back to the oldest, then the end; `since` and `snapshot` do not matter.
    pub descending: bool,
    /// Most rows given.
    pub limit: Option<u64>,
    /// What rows show.
    pub shape: RowShape,
    /// Which fields their documents show; `None` shows them whole.
    pub fields: Option<Arc<Fields>>,
    /// Which rows are given.
    pub filter: Filter,
    /// A sign of life whenever nothing has been sent for this long.
    pub heartbeat: Option<Duration>,
    /// The end when nothing has changed for this long; without effect beside a heartbeat.
    pub timeout: Option<Duration>,
    /// What becomes of a token from the future.
    pub ahead: Ahead,
    /// In which form rows that come from the disk may be given as [`Frames`](crate::Frames), bytes that are made where
    /// they are read; `None` where more is wanted of them.
    pub frames: Option<FrameForm>,
    /// What it is counted as.
    pub kind: FeedKind,
}

impl FeedOptions {
    /// A live feed of everything that changes from now on, with nothing but revisions.
    pub fn live(kind: FeedKind) -> FeedOptions {
        FeedOptions {
            since: Since::Now,
            began_at_time: false,
            until: None,
            snapshot: false,
            leave: false,
            mode: FeedMode::Live,
            ends_at: EndsAt::UpdateSeq,
            descending: false,
            limit: None,
            shape: RowShape::default(),
            fields: None,
            filter: Filter::ALL,
            heartbeat: None,
            timeout: None,
            ahead: Ahead::Rewind,
            frames: None,
            kind,
        }
    }

    /// Whether its reader may have more than what lies up to the place where it starts.
    pub(crate) fn reader_may_have_more(&self) -> bool {
        self.began_at_time || matches!(self.since, Since::Time(_))
    }

    /// Whether it is opened at the last row there is, be that its end or its beginning, and not at the update sequence.
    pub(crate) fn is_opened_at_last_row(&self) -> bool {
        self.descending || self.mode == FeedMode::Once && self.ends_at == EndsAt::LastRow
    }

    /// What wakes it. What leaves does not pass: of what is told when it leaves, the ids alone decide.
    pub(crate) fn waits_for(&self) -> Filter {
        match self.leave {
            true => Filter { ids: self.filter.ids.clone(), ..Filter::ALL },
            false => self.filter.clone(),
        }
    }

    /// What rows must carry for their shape.
    pub(crate) fn detail(&self) -> Detail {
        self.shape.detail()
    }

    /// What rows must carry to be judged by the filter and shown.
    pub(crate) fn read_detail(&self) -> Detail {
        let (shown, tested) = (self.detail(), self.filter.detail());
        Detail { leaves: shown.leaves || tested.leaves, bodies: shown.bodies || tested.bodies }
    }
}

/// What a stream of changes is asked for.
#[derive(Debug, Clone)]
pub struct ChangesOptions {
    /// Where it starts.
    pub since: Since,
    /// Whether its reader began at a time once, also if it goes on from a place now. See
    /// [`FeedOptions::began_at_time`].
    pub began_at_time: bool,
    /// Up to where: it ends there, and waits for a place that has not come if it goes on.
    pub until: Option<Sequence>,
    /// First what there is now: documents that pass and are not deleted, or behind a place all that changed since, and
    /// word where that ends. `Since::Now` means from the beginning then.
    pub snapshot: bool,
    /// Whether a document that was given and does not pass any more, or is deleted, is told once, as one that has
    /// [left](crate::Change::left). One that was not given is not told when it is deleted.
    pub leave: bool,
    /// Whether it goes on when it has caught up.
    pub live: bool,
    /// Most changes given.
    pub limit: Option<u64>,
    /// Whether changes list all leaves, or the winner alone.
    pub all_leaves: bool,
    /// Whether changes carry the winner's body.
    pub include_docs: bool,
    /// Which changes are given.
    pub filter: Filter,
    /// A sign of life whenever nothing has been given for this long.
    pub heartbeat: Option<Duration>,
}

impl Default for ChangesOptions {
    fn default() -> ChangesOptions {
        ChangesOptions {
            since: Since::Now,
            began_at_time: false,
            until: None,
            snapshot: false,
            leave: false,
            live: true,
            limit: None,
            all_leaves: false,
            include_docs: false,
            filter: Filter::ALL,
            heartbeat: None,
        }
    }
}

impl From<ChangesOptions> for FeedOptions {
    fn from(options: ChangesOptions) -> FeedOptions {
        let ChangesOptions {
            since,
            began_at_time,
            until,
            snapshot,
            leave,
            live,
            limit,
            all_leaves,
            include_docs,
            filter,
            heartbeat,
        } = options;
        let shape = RowShape { all_leaves, doc: include_docs, conflicts: false };
        let mode = if live { FeedMode::Live } else { FeedMode::Once };
        FeedOptions {
            since,
            began_at_time,
            until,
            snapshot,
            leave,
            mode,
            limit,
            shape,
            filter,
            heartbeat,
            ..FeedOptions::live(FeedKind::Embedded)
        }
    }
}

/// What a feed of databases' updates is asked for.
#[derive(Debug, Clone)]
pub struct UpdatesOptions {
    /// Where it starts.
    pub since: Since,
    /// Up to where: it ends there, and waits for a place that has not come if it waits at all.
    pub until: Option<Sequence>,
    /// When it ends.
    pub mode: FeedMode,
    /// From the newest row, or from `until`, back to the oldest, then the end; `since` does not matter.
    pub descending: bool,
    /// Most rows given.
    pub limit: Option<u64>,
    /// Only of databases whose names start so.
    pub prefix: Option<Arc<str>>,
    /// A sign of life whenever nothing has been sent for this long.
    pub heartbeat: Option<Duration>,
    /// The end when nothing has happened for this long; without effect beside a heartbeat.
    pub timeout: Option<Duration>,
    /// What becomes of a token from the future.
    pub ahead: Ahead,
    /// What it is counted as.
    pub kind: FeedKind,
}

impl Default for UpdatesOptions {
    /// A live stream of all that happens from now on.
    fn default() -> UpdatesOptions {
        let FeedOptions { since, until, mode, descending, limit, heartbeat, timeout, ahead, kind, .. } =
            FeedOptions::live(FeedKind::Embedded);
        UpdatesOptions { since, until, mode, descending, limit, prefix: None, heartbeat, timeout, ahead, kind }
    }
}

impl From<UpdatesOptions> for FeedOptions {
    /// The prefix is what its source is told.
    fn from(options: UpdatesOptions) -> FeedOptions {
        let UpdatesOptions { since, until, mode, descending, limit, prefix: _, heartbeat, timeout, ahead, kind } =
            options;
        FeedOptions { since, until, mode, descending, limit, heartbeat, timeout, ahead, ..FeedOptions::live(kind) }
    }
}
