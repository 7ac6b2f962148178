//! The databases of an engine as what a feed is of: which was made, written to or deleted.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use seqtide_storage::json::write_json_string;
use seqtide_storage::model::db_name::DbName;
use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::{DataFolder, DbUpdate, Direction, ReadUpdates, UpdateLog};
use tokio::sync::watch;

use crate::end_reason::EndReason;
use crate::engine::Engine;
use crate::error::Error;
use crate::feed::options::{FeedOptions, OLDEST_SEQ, Since, UpdatesOptions};
use crate::feed::source::{Lag, Page, Passed, Source, Wanted};
use crate::feed::stream::Changes;
use crate::feed::{Feed, ThereIs};
use crate::filter;
use crate::known::FeedAbout;
use crate::matcher::reached;
use crate::row::{FeedRow, Frame, RowShape};

/// Most rows handed on at once.
const PAGE_ROWS: usize = 1000;

/// How sequences of updates are written: they are an engine's own, not those of any database.
const FORMAT: SeqFormat = SeqFormat::Integer;

impl Engine {
    /// Follows what happens to databases: which is made, written to, deleted.
    ///
    /// A database has one row for each kind, at its latest sequence, so a slow reader is told less, and nothing wrong:
    /// of a database written to a thousand times, that it was written to. A deletion takes the place of what there was
    /// before. The sequences are the engine's own and never turn back, in no life of the data folder. After a crash
    /// every database is announced as updated once more.
    ///
    /// ```
    /// use seqtide::{Engine, Since, UpdateKind, UpdatesOptions};
    /// use tokio_stream::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let engine = Engine::start(folder.path())?;
    /// let orders = engine.create_database("orders").await?;
    ///
    /// let options = UpdatesOptions { since: Since::START, ..Default::default() };
    /// let mut updates = engine.updates(options)?.only_changes();
    /// let update = updates.next().await.ok_or("the engine has stopped")??;
    /// assert_eq!((update.name.as_str(), update.kind), ("orders", UpdateKind::Created));
    ///
    /// orders.put("o-1", r#"{"total": 12.50}"#).await?;
    /// let update = updates.next().await.ok_or("the engine has stopped")??;
    /// assert_eq!((update.name.as_str(), update.kind), ("orders", UpdateKind::Updated));
    /// # engine.shutdown().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::TooManyFeeds`], [`Error::Draining`]; [`Error::Ahead`] if the options ask for it.
    pub fn updates(&self, options: UpdatesOptions) -> Result<Changes<DbUpdate>, Error> {
        Ok(Changes::new(self.updates_feed(options)?, DbUpdate::clone))
    }

    /// The sequence of the last update of any database.
    pub fn update_seq(&self) -> Sequence {
        self.inner.updates.folder.updates().newest()
    }

    /// Opens a feed of databases' updates: the form of [`Engine::updates`] that gives pages of encoded rows.
    ///
    /// # Errors
    /// As [`Engine::updates`].
    pub fn updates_feed(&self, options: UpdatesOptions) -> Result<Feed<Databases>, Error> {
        let prefix = options.prefix.clone();
        let options = FeedOptions::from(options);
        let filter = prefix.as_deref().map(|prefix| filter::shortened(format!("prefix: {prefix:?}")));
        let about = FeedAbout { kind: options.kind, database: None, filter, seq_format: FORMAT };
        let permit = self.inner.feeds.take()?.known_as(about);
        let updates = Arc::clone(&self.inner.updates);
        let databases = Databases { woken: updates.newest.subscribe(), updates, prefix };
        let newest = databases.newest();
        let since = match options.since {
            Since::Now => newest,
            Since::Seq(seq) => seq,
            Since::Time(_) => OLDEST_SEQ,
        };
        Feed::open(databases, options, since, ThereIs { newest, end: newest }, permit)
    }
}

/// The engine's side: it notes what happens, and wakes feeds.
pub(crate) struct Updates {
    folder: Arc<DataFolder>,
    newest: watch::Sender<Sequence>,
    ended: watch::Sender<Option<EndReason>>,
    /// There was no room for more updates when it was last tried.
    full: AtomicBool,
}

impl Updates {
    pub fn new(folder: Arc<DataFolder>) -> Updates {
        let newest = watch::Sender::new(folder.updates().newest());
        Updates { folder, newest, ended: watch::Sender::new(None), full: AtomicBool::new(false) }
    }

    /// Makes room on disk for the update that a commit will be, before it is made; may block. A disk without room for
    /// it may still have room for the commit, which goes ahead.
    pub fn make_room(&self) {
        let made = self.folder.make_room_for_updates();
        if let Err(error) = &made
            && !self.full.load(Ordering::Relaxed)
        {
            tracing::warn!(%error, "feeds of databases' updates stand still until the catalogue can be written");
        }
        self.full.store(made.is_err(), Ordering::Relaxed);
        // The commit that it was made for may change no document, and tell of nothing.
        if made.is_ok_and(|made| made) {
            self.wake();
        }
    }

    /// The log of updates.
    pub fn log(&self) -> &UpdateLog {
        self.folder.updates()
    }

    /// Takes note of a commit that changed documents, or purged them.
    pub fn note(&self, name: &DbName) {
        self.folder.note_update(name);
        self.wake();
    }

    /// Wakes feeds if there is something new.
    pub fn wake(&self) {
        let newest = self.folder.updates().newest();
        self.newest.send_if_modified(|known| std::mem::replace(known, newest.max(*known)) < newest);
    }

    /// Ends every feed, the ones to come too.
    pub fn end(&self) {
        self.ended.send_replace(Some(EndReason::Shutdown));
    }
}

/// The databases of an engine, for one feed.
pub struct Databases {
    updates: Arc<Updates>,
    woken: watch::Receiver<Sequence>,
    prefix: Option<Arc<str>>,
}

impl Source for Databases {
    type Row = DbUpdate;

    fn newest(&self) -> Sequence {
        self.updates.folder.updates().newest()
    }

    fn seq_format(&self) -> SeqFormat {
        FORMAT
    }

    fn ended(&self) -> watch::Receiver<Option<EndReason>> {
        self.updates.ended.subscribe()
    }

    fn read(
        &self,
        _: &FeedOptions,
        wanted: Wanted,
    ) -> impl Future<Output = Result<Page<DbUpdate>, Error>> + Send + 'static {
        let Wanted { after, up_to, rows_max, direction, .. } = wanted;
        let wanted = ReadUpdates { after, up_to, rows_max: rows_max.min(PAGE_ROWS), direction };
        let keep = |name: &DbName| self.prefix.as_ref().is_none_or(|prefix| name.as_str().starts_with(&**prefix));
        let page = self.updates.folder.updates().read(wanted, keep);
        let rows = page.rows.into_iter().map(Arc::new).collect();
        ready(Ok(Page { rows, examined: page.examined, complete: page.complete, ..Page::empty(Sequence::MAX) }))
    }

    fn purges(&self) -> u64 {
        0
    }

    fn without_purged(&self, page: Page<DbUpdate>, _: u64) -> Option<Page<DbUpdate>> {
        Some(page)
    }

    async fn pending(&self, seq: Sequence, direction: Direction) -> Result<u64, Error> {
        let log = self.updates.folder.updates();
        Ok(match direction {
            Direction::Forward => log.count(seq, Sequence::MAX),
            Direction::Backward => log.count(Sequence::ZERO, seq.before()),
        })
    }

    /// All of it is in memory.
    fn memory_from(&self) -> Sequence {
        Sequence::ZERO
    }

    async fn lag(&self, seq: Sequence) -> Result<Lag, Error> {
        Ok(Lag { rows: self.pending(seq, Direction::Forward).await?, seconds: None })
    }

    async fn woken(&mut self) {
        if self.woken.changed().await.is_err() {
            // The engine is gone; its feeds are told so another way.
            std::future::pending().await
        }
    }

    fn reached(&self, seq: Sequence) -> impl Future<Output = ()> + Send + 'static {
        reached(self.updates.newest.subscribe(), seq)
    }

    /// Reading is cheap.
    fn passed(&mut self) -> Option<Passed> {
        None
    }

    fn again(&self) -> Databases {
        let updates = Arc::clone(&self.updates);
        Databases { woken: updates.newest.subscribe(), updates, prefix: self.prefix.clone() }
    }

    fn identity(&self) -> Option<[usize; 2]> {
        self.prefix.is_none().then(|| [Arc::as_ptr(&self.updates).addr(), 0])
    }
}

impl FeedRow for DbUpdate {
    fn seq(&self) -> Sequence {
        self.seq
    }

    fn frame(&self, _: RowShape) -> Frame {
        let write_json = |out: &mut Vec<u8>| write_update(out, self, &FORMAT.json(self.seq).to_string());
        Frame::of(FORMAT.plain(self.seq), 100 + self.name.as_str().len(), write_json)
    }

    fn write_without_seq(&self, out: &mut Vec<u8>, _: RowShape) {
        write_update(out, self, "null");
    }
}

/// Source: CouchDB `global_changes_httpd:default_transform_change`, members in this order.
fn write_update(out: &mut Vec<u8>, update: &DbUpdate, seq: &str) {
    out.extend_from_slice(b"{\"db_name\":");
    write_json_string(out, update.name.as_str());
    out.extend_from_slice(format!(",\"type\":\"{}\",\"seq\":{seq}}}", update.kind.name()).as_bytes());
}
