//! The documents of a database as what a feed is of: pages from the tail where it reaches, else from the disk.

use std::sync::Arc;
use std::time::SystemTime;

use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::{Change, ChangesPage, Direction, Lookup, PageLimits, ReadChanges, Snapshot, StorageError};
use tokio::sync::{Semaphore, watch};

use super::large_page::{LARGE_PAGE_BYTES, LARGE_PAGE_ROWS, LargePage};
use super::options::{FeedOptions, OLDEST_SEQ, Since};
use super::seen::Seen;
use super::shown::{Judged, PageRow, Viewing};
use super::source::{Lag, Page, Passed, Source, Wanted};
use super::{Feed, ThereIs, by_function};
use crate::by_itself::{by_itself, done};
use crate::end_reason::EndReason;
use crate::error::Error;
use crate::filter::Ids;
use crate::functions::Functions;
use crate::leaving::Looking;
use crate::matcher::{LISTED_AT_ONCE, Wake};
use crate::open_database::OpenDatabase;
use crate::permits::FeedPermit;
use crate::rounds::OwnRounds;
use crate::row::{NotHere, Row};
use crate::selector::limits::BYTES_OF_ALL_MAX;
use crate::selector::{EqualityTerm, memory};

/// Most rows handed on at once.
pub(super) const PAGE_ROWS: usize = 1000;
/// A page ends with the row that fills this many bytes as they are sent: what is read for a slow reader stays small.
pub(super) const PAGE_BYTES: usize = 24 << 10;
/// A page from memory ends with the row that fills this many bytes of what the filter looks at, wanted or not, or fewer
/// where it takes many steps over each: other feeds have their turn.
const JUDGED_BYTES: usize = 1 << 20;
/// A document that changes while its row is judged has another one by then: after so many the disk is read, in a state
/// that stays.
const JUDGED_MAX: usize = 8;
/// Looking a document up costs about as much as walking past this many rows.
const ROWS_A_LOOKUP: u64 = 8;
/// Documents that are listed are looked up anew for each page, which has about as many of them.
const LISTED_A_PAGE: u64 = 100;

/// The documents of a database, for one feed.
pub struct Documents {
    database: Arc<OpenDatabase>,
    functions: Functions,
    wake: Wake,
    /// Its place among those that tell what leaves.
    looking: Option<Looking>,
}

impl Feed<Documents> {
    pub(crate) async fn of_documents(
        database: Arc<OpenDatabase>,
        functions: Functions,
        options: FeedOptions,
        permit: FeedPermit,
    ) -> Result<Feed<Documents>, Error> {
        // Joined first: what is committed from here on wakes.
        let looking = options.leave.then(|| database.live.leaving().join());
        let wake = join(&database, &options).await?;
        // The group's, so that a selector that thousands of feeds share is in memory once.
        let filter = wake.filter().filter(|_| !options.leave).cloned().unwrap_or(options.filter);
        let options = FeedOptions { filter, ..options };
        let has_own = options.fields.is_some() || options.filter.test.selector.is_some();
        if has_own && memory::bytes_of_all() > BYTES_OF_ALL_MAX {
            return Err(Error::SelectorsTooLarge { bytes_max: BYTES_OF_ALL_MAX });
        }
        let newest = database.live.newest();
        let end = if options.is_opened_at_last_row() {
            // The disk may be a commit ahead of what feeds can see.
            last_row(&database).await?.min(newest)
        } else {
            newest
        };
        let since = match options.since {
            // What there is now comes first.
            Since::Now if options.snapshot => OLDEST_SEQ,
            Since::Now => newest,
            Since::Seq(seq) => seq,
            Since::Time(time) => written_from(&database, time).await?.min(newest),
        };
        Feed::open(Documents { database, functions, wake, looking }, options, since, ThereIs { newest, end }, permit)
    }
}

impl Source for Documents {
    type Row = Row;

    fn newest(&self) -> Sequence {
        self.database.live.newest()
    }

    fn seq_format(&self) -> SeqFormat {
        self.database.seq_format
    }

    fn ended(&self) -> watch::Receiver<Option<EndReason>> {
        self.database.live.ended()
    }

    fn read(
        &self,
        options: &FeedOptions,
        wanted: Wanted,
    ) -> impl Future<Output = Result<Page<Row>, Error>> + Send + 'static {
        let (database, functions, options) = (Arc::clone(&self.database), self.functions.clone(), options.clone());
        async move {
            match options.filter.function.clone() {
                Some(function) => {
                    let runtime = database.runtime.clone();
                    // It holds a place among those that functions are asked about.
                    let page =
                        async move { by_function::read(&database, &functions, &function, &options, wanted).await };
                    by_itself(page, &runtime).await
                }
                None => {
                    // Rows from memory have no room of their own, and who stalls keeps what it was given of them.
                    let is_on_disk = || wanted.after < database.live.tail().valid_from();
                    let is_large = wanted.large && options.frames.is_some() && is_on_disk();
                    let large = if is_large { LargePage::take() } else { None };
                    let limits = match large {
                        Some(_) => page_limits(LARGE_PAGE_ROWS, LARGE_PAGE_BYTES),
                        None => page_limits(PAGE_ROWS, PAGE_BYTES),
                    };
                    let mut page = read_page(&database, &options, wanted, limits).await?;
                    page.frames.keep_in(large);
                    Ok(page)
                }
            }
        }
    }

    fn purges(&self) -> u64 {
        self.database.live.purges()
    }

    fn without_purged(&self, mut page: Page<Row>, purges: u64) -> Option<Page<Row>> {
        if self.database.live.purges() != purges {
            let purged = self.database.live.purged_since(purges)?;
            if !page.frames.is_empty() {
                return None;
            }
            // What is left of such a document has its row further on.
            page.rows.retain(|row| purged.get(&row.change().id).is_none_or(|at| *at < row.change().seq));
        }
        Some(page)
    }

    fn may_read_ahead(&self) -> bool {
        self.database.has_readers_to_spare()
    }

    async fn pending(&self, seq: Sequence, direction: Direction) -> Result<u64, Error> {
        let read = move |snapshot: &Snapshot<'_>| match direction {
            Direction::Forward => snapshot.rows_after(seq),
            Direction::Backward => Ok(snapshot.counters()?.rows() - snapshot.rows_after(seq.before())?),
        };
        self.database.read(read).await
    }

    fn rounds(&self, position: Sequence) -> Option<OwnRounds> {
        Some(OwnRounds::new(Arc::clone(&self.database.live.rounds), position))
    }

    fn memory_from(&self) -> Sequence {
        self.database.live.tail().valid_from()
    }

    async fn lag(&self, seq: Sequence) -> Result<Lag, Error> {
        let read = move |snapshot: &Snapshot<'_>| Ok((snapshot.rows_after(seq)?, snapshot.secs_behind(seq)?));
        let (rows, written) = self.database.read(read).await?;
        Ok(Lag { rows, seconds: written.map(|secs| self.database.now_secs().saturating_sub(secs)) })
    }

    fn looks_from(&mut self, options: &FeedOptions, start: Sequence) -> Option<Seen> {
        if !options.leave {
            return None;
        }
        let live = &self.database.live;
        // Before it is asked how far others are: what is written from here on counts it in.
        self.looking.get_or_insert_with(|| live.leaving().join()).note_looked(start);
        let seen = Seen::new(start, live.newest(), live.leaving().begin_at(start));
        Some(if options.reader_may_have_more() { seen.or_later() } else { seen })
    }

    fn note_looked(&self, up_to: Sequence, state: Sequence) {
        if let Some(looking) = &self.looking
            && state <= self.database.live.newest()
        {
            looking.note_looked(up_to);
        }
    }

    async fn woken(&mut self) {
        self.wake.woken().await;
    }

    fn reached(&self, seq: Sequence) -> impl Future<Output = ()> + Send + 'static {
        self.database.live.reached(seq)
    }

    fn passed(&mut self) -> Option<Passed> {
        let live = &self.database.live;
        let up_to = self.wake.nothing_up_to(live.examined());
        Some(Passed { up_to, newest_at: live.tail().newest_at() })
    }

    fn again(&self) -> Documents {
        let (database, functions) = (Arc::clone(&self.database), self.functions.clone());
        Documents { database, functions, wake: self.wake.again(), looking: None }
    }

    fn identity(&self) -> Option<[usize; 2]> {
        Some([Arc::as_ptr(&self.database).addr(), self.wake.identity()])
    }
}

/// Waits from now on for what concerns the feed. With a long list that takes a while, for which a thread may block.
async fn join(database: &OpenDatabase, options: &FeedOptions) -> Result<Wake, Error> {
    let (live, waits_for, all_leaves) = (Arc::clone(&database.live), options.waits_for(), options.shape.all_leaves);
    match &waits_for.ids {
        Ids::Listed(ids) if ids.len() > LISTED_AT_ONCE => {
            done(database.runtime.spawn_blocking(move || Ok(live.join(&waits_for, all_leaves))).await)
        }
        _ => Ok(live.join(&waits_for, all_leaves)),
    }
}

/// The place behind which lies all that was written from a time on.
async fn written_from(database: &Arc<OpenDatabase>, time: SystemTime) -> Result<Sequence, Error> {
    let secs = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    database.read(move |snapshot| snapshot.seq_before(secs)).await
}

/// A page of at most so many rows, and those that fill so many bytes.
pub(super) fn page_limits(rows_max: usize, bytes_max: usize) -> PageLimits {
    PageLimits { rows_max, bytes_max, ..PageLimits::default() }
}

/// The last row on disk.
async fn last_row(database: &Arc<OpenDatabase>) -> Result<Sequence, Error> {
    database.read(|snapshot| snapshot.last_row_seq()).await
}

/// Reads part of what is wanted: no more rows than that asks for and the limits allow, and those that fill so many
/// bytes of what is shown of them.
pub(super) async fn read_page<T: PageRow>(
    database: &Arc<OpenDatabase>,
    options: &FeedOptions,
    wanted: Wanted,
    limits: PageLimits,
) -> Result<Page<T>, Error> {
    let Wanted { after, up_to, direction, rows_max, .. } = wanted;
    let limits = PageLimits { rows_max: limits.rows_max.min(rows_max), ..limits };
    let stretch = ReadChanges { after, up_to, direction, detail: options.read_detail(), limits };
    if let Some(page) = by_index(database, options, wanted, stretch).await? {
        database.pages.looked_up();
        return Ok(page);
    }
    if direction == Direction::Forward
        && let Some(page) = in_memory(database, options, wanted, stretch).await?
    {
        database.pages.in_memory();
        return Ok(page);
    }
    database.pages.on_disk();
    let (options, live, format) = (options.clone(), Arc::clone(&database.live), database.seq_format);
    let read = move |snapshot: &Snapshot<'_>| {
        let viewing = Viewing { options: &options, wanted, live: &live, format, judged: None };
        let page = from_disk(snapshot, &stretch, &viewing)?;
        Ok(page_of(page, snapshot.counters()?.update_seq, &options))
    };
    database.read(read).await
}

fn page_of<T: PageRow>(page: ChangesPage<T>, state: Sequence, options: &FeedOptions) -> Page<T> {
    let (rows, frames) = T::given(page.changes, options);
    Page { rows, frames, examined: page.examined, complete: page.complete, state }
}

/// What is given of a change, if it is wanted.
fn shown<T: PageRow>(
    snapshot: &Snapshot<'_>,
    change: Change,
    viewing: &Viewing<'_>,
) -> Result<Option<T>, StorageError> {
    match viewing.wanted.asks_for(&change) {
        true => T::of_disk(snapshot, change, viewing),
        false => Ok(None),
    }
}

/// Looks the documents up in the feed's index; `None` when it has none of the selector's terms, or no more rows lie
/// ahead than are walked past at once. Damage is left to whoever reads without the index.
async fn by_index<T: PageRow>(
    database: &Arc<OpenDatabase>,
    options: &FeedOptions,
    wanted: Wanted,
    stretch: ReadChanges,
) -> Result<Option<Page<T>>, Error> {
    let Some(selector) = &options.filter.test.selector else { return Ok(None) };
    let is_short = stretch.up_to.version.saturating_sub(stretch.after.version) <= PAGE_ROWS as u64;
    let by_ids = matches!(options.filter.ids, Ids::Listed(_));
    // It knows nothing of what leaves.
    if is_short || by_ids || options.leave || !database.indexing.may_serve() {
        return Ok(None);
    }
    let lookups: Vec<Lookup> = selector.equality_terms().iter().map(|term| lookup(term, options)).collect();
    if lookups.is_empty() {
        return Ok(None);
    }
    let (options, format) = (options.clone(), database.seq_format);
    let (live, indexing) = (Arc::clone(&database.live), Arc::clone(&database.indexing));
    let read = move |snapshot: &Snapshot<'_>| {
        let keep = |id: &str| options.filter.ids.contains(id);
        let viewing = Viewing { options: &options, wanted, live: &live, format, judged: None };
        match snapshot.changes_looked_up(&lookups, &stretch, &keep, |change| shown(snapshot, change, &viewing)) {
            Err(error) if error.is_damage() => {
                indexing.came_upon(&error);
                Ok(None)
            }
            Ok(page) => {
                let state = snapshot.counters()?.update_seq;
                Ok(page.map(|page| page_of(page, state, &options)))
            }
            Err(error) => Err(error),
        }
    };
    database.read(read).await
}

fn lookup(term: &EqualityTerm, options: &FeedOptions) -> Lookup {
    let keys = term.keys.iter().map(|key| key.to_u64()).collect();
    Lookup { path: term.path.to_string(), keys, all_leaves: options.shape.all_leaves }
}

/// Reads a page from memory, waiting for what takes long to judge; `None` where memory does not have it.
async fn in_memory<T: PageRow>(
    database: &OpenDatabase,
    options: &FeedOptions,
    wanted: Wanted,
    stretch: ReadChanges,
) -> Result<Option<Page<T>>, Error> {
    let mut judged = None;
    for _ in 0..JUDGED_MAX {
        match from_tail(database, options, wanted, stretch, judged.take()) {
            FromTail::Page(page) => return Ok(Some(page)),
            FromTail::TakesLong(row) => judged = Some(judge_at_length(database, options, row).await?),
            FromTail::NotThere => return Ok(None),
        }
    }
    Ok(None)
}

/// What memory has of a page.
enum FromTail<T> {
    Page(Page<T>),
    /// It may take long to judge the first row.
    TakesLong(Arc<Row>),
    /// The tail does not reach back so far, or does not hold what the filter looks at.
    NotThere,
}

/// Finds out what passes of a row for whose document the filter may take long.
async fn judge_at_length(database: &OpenDatabase, options: &FeedOptions, row: Arc<Row>) -> Result<Judged, Error> {
    /// Who waits for the same waits for the other one, too; the processors have other work.
    static AT_ONCE: Semaphore = Semaphore::const_new(2);
    let permit = AT_ONCE.acquire().await;
    let (live, test) = (Arc::clone(&database.live), options.filter.test.clone());
    let judge = move || {
        let judged = Judged { seq: row.change().seq, passed: row.judge_at_length(&test, live.counted()) };
        drop(permit);
        Ok(judged)
    };
    done(database.runtime.spawn_blocking(judge).await)
}

fn from_tail<T: PageRow>(
    database: &OpenDatabase,
    options: &FeedOptions,
    wanted: Wanted,
    stretch: ReadChanges,
    judged: Option<Judged>,
) -> FromTail<T> {
    let PageLimits { rows_max, bytes_max, .. } = stretch.limits;
    let of_candidates = match options.filter.looks_at_ids_alone() {
        true => ReadChanges { detail: options.detail(), ..stretch },
        false => {
            let judged_bytes = JUDGED_BYTES / options.filter.test.steps_a_byte();
            ReadChanges { limits: page_limits(PAGE_ROWS, judged_bytes), ..stretch }
        }
    };
    let keep = |id: &str| options.filter.ids.contains(id);
    // The lock is gone before the first row is judged.
    let Some(candidates) = database.live.tail().read(&of_candidates, keep) else { return FromTail::NotThere };
    let viewing = Viewing { options, wanted, live: &database.live, format: database.seq_format, judged };
    let mut page = Page::empty(candidates.state);
    let mut bytes = 0;
    for row in candidates.rows {
        if page.rows.len() == rows_max || bytes >= bytes_max {
            return FromTail::Page(page);
        }
        let seq = row.change().seq;
        if !wanted.asks_for(row.change()) {
            page.examined = Some(seq);
            continue;
        }
        match T::of_tail(Arc::clone(&row), &viewing) {
            Ok(Some(row)) => {
                bytes += (*row).as_ref().bytes(options.detail());
                page.rows.push(row);
            }
            Ok(None) => {}
            Err(_) if page.examined.is_some() => return FromTail::Page(page),
            Err(NotHere::TakesLong) => return FromTail::TakesLong(row),
            Err(NotHere::OnDisk) => return FromTail::NotThere,
        }
        page.examined = Some(seq);
    }
    page.examined = Some(candidates.examined);
    page.complete = candidates.examined >= stretch.up_to;
    FromTail::Page(page)
}

fn from_disk<T: PageRow>(
    snapshot: &Snapshot<'_>,
    stretch: &ReadChanges,
    viewing: &Viewing<'_>,
) -> Result<ChangesPage<T>, StorageError> {
    let ids = &viewing.options.filter.ids;
    let show = |change| shown(snapshot, change, viewing);
    if let Ids::Listed(ids) = ids {
        let rows = match stretch.direction {
            Direction::Forward => snapshot.rows_after(stretch.after)?,
            Direction::Backward => snapshot.counters()?.rows(),
        };
        let (listed, pages) = (ids.len() as u64, (ids.len() as u64).div_ceil(LISTED_A_PAGE));
        if listed.saturating_mul(ROWS_A_LOOKUP).saturating_mul(pages) <= rows {
            return snapshot.changes_of_shown(ids, stretch, show);
        }
    }
    snapshot.changes_shown(stretch, &|id| ids.contains(id), show)
}
