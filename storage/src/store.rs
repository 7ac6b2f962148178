//! A database on disk.

mod open;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use self::open::{Opened, open_base};
use crate::base::{Base, Reading};
use crate::batch::{Batch, Commit, Finished, Moment};
use crate::check::{CheckReport, check};
use crate::clock::now_secs;
use crate::codec::meta::{self, Identity};
use crate::counts::{BlockChanges, BlockSums};
use crate::env::{DATA_FILE, Durability};
use crate::error::{StorageError, unless_damaged};
use crate::feed_index::{FeedKeys, NoKeys, remade_index};
use crate::gauge::StoreGauge;
use crate::log;
use crate::log::replay::{FoundLog, Replayed};
use crate::model::body_place::BodyKey;
use crate::model::sequence::{SeqFormat, Sequence};
use crate::notice::Tell;
use crate::pages::{Damage, Survey};
use crate::request::Request;
use crate::room::Room;
use crate::rows::Rows;
use crate::snapshot::Snapshot;
use crate::tables::{META_COUNTERS, META_IDENTITY, Table};
use crate::times::Times;
use crate::transactions::{TransactionLimits, Transactions};
use crate::view::View;

/// How often a log is read that seems to lack records. One that is written to meanwhile may look so
/// ([`FoundLog::read`]), but not again and again: both files would have to change their parts each time in the moment
/// in which they are read.
const LOG_ATTEMPTS: usize = 5;

/// How databases are opened.
#[derive(Debug, Clone, Copy)]
pub struct StoreOptions {
    /// Address space reserved a database, in bytes, a multiple of the page size; it grows when it is full.
    pub map_bytes: usize,
    /// The most it grows to: the bound of a database's size, a multiple of the page size. A sixteenth of it, at least
    /// 1 MiB and at most 64 MiB, is kept for deleting and reclaiming.
    pub map_bytes_max: usize,
    /// Most snapshots of a database at once.
    pub readers_max: u32,
    /// What a commit promises.
    pub durability: Durability,
    /// How many revisions a branch keeps in a new database; a leaf is always kept, so 0 is 1.
    pub revs_limit: u32,
    /// How long records of keyed requests are kept.
    pub transactions: TransactionLimits,
    /// Tells what the index of the feed is to know of documents.
    pub feed_keys: &'static dyn FeedKeys,
    /// Told what should be known of a database though nobody has asked.
    pub tell: Tell,
    /// The clock: seconds since 1970.
    pub clock: fn() -> u64,
    /// A file no longer than this is walked through before it is opened, in bytes: LMDB trusts what it reads.
    pub verify_at_open_bytes_max: u64,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            map_bytes: 64 << 30,
            map_bytes_max: 1 << 44,
            readers_max: 256,
            durability: Durability::Full,
            revs_limit: 1000,
            transactions: TransactionLimits::default(),
            feed_keys: &NoKeys,
            tell: |_, _| {},
            clock: now_secs,
            verify_at_open_bytes_max: 1 << 30,
        }
    }
}

/// What a database is born with.
#[derive(Debug, Clone, Copy)]
pub struct Birth {
    /// What never changes.
    pub identity: Identity,
    /// It counts on from here.
    pub start: Sequence,
}

/// What the opening of a database has it write. Where that fails, as on a full disk, it comes before the first write.
#[derive(Debug, Clone, Copy, Default)]
struct Due {
    /// The least incarnation.
    incarnation: u8,
}

/// What was due and is written by now, later than it should have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadeUp {
    /// The update sequence after it.
    pub update_seq: Sequence,
    /// Whether the index of the feed is begun anew, so that [`Store::tend_feed_index`] has work.
    pub reindex: bool,
}

/// A database: its folder, open.
pub struct Store {
    base: Base,
    /// Whether the file was walked through.
    verified: bool,
    /// A damage that was put right when it was opened.
    mended: Option<Damage>,
    folder: PathBuf,
    identity: Identity,
    pub(crate) sums: Mutex<BlockSums>,
    /// What is to be written before anything else is; `None` when that is so.
    due: Mutex<Option<Due>>,
    /// What was due, was written before something else, and is told to nobody yet.
    made_up: Mutex<Option<MadeUp>>,
    /// Where the next slice of reclaiming starts.
    sweep: Mutex<Option<BodyKey>>,
    /// Behind which row of the index of the feed the next slice goes on that removes what was given up.
    removal: Mutex<Option<Vec<u8>>>,
    transactions: TransactionLimits,
    /// No record of a keyed request has a lower order, but damaged ones.
    oldest_record: Mutex<u64>,
    feed_keys: &'static dyn FeedKeys,
    clock: fn() -> u64,
    /// Of the newest state.
    times: Mutex<Times>,
}

/// Whether a database's folder has its tables.
pub(crate) fn has_tables(folder: &Path) -> bool {
    folder.join(DATA_FILE).metadata().is_ok_and(|file| file.len() > 0)
}

/// Refuses a folder that has a log and no tables. A log goes with an orderly end, so it may have the only copy of
/// acknowledged writes: nothing is made in the place of the tables that it belongs to.
fn refuse_lost_tables(folder: &Path) -> Result<(), StorageError> {
    if has_tables(folder) || log::FILES.iter().all(|log| !folder.join(log).exists()) {
        return Ok(());
    }
    Err(StorageError::DamagedFile { file: folder.join(DATA_FILE), damage: Box::new(Damage::of_lost_tables()) })
}

impl Store {
    /// Opens a database's folder, which must exist; one without a database becomes a new one. One whose file is damaged
    /// can be read as far as it is sound, and not written to: see [`Store::damages`].
    ///
    /// # Errors
    /// [`StorageError`], among others [`StorageError::NewerFormat`], and [`StorageError::DamagedFile`] when nothing of
    /// it can be read.
    pub fn open(folder: &Path, options: &StoreOptions, birth: &Birth) -> Result<Store, StorageError> {
        refuse_lost_tables(folder)?;
        let Opened { base, verified, mended } = open_base(folder, options, birth)?;
        let reading = base.read()?;
        let identity = reading.view().expect(Table::Meta, META_IDENTITY, meta::decode_identity)?;
        let sums = Mutex::new(BlockSums::load(reading.view())?);
        // Where that is damaged nothing is written, and times are looked up without it.
        let times = unless_damaged(Times::opened(reading.view(), (options.clock)()))?.unwrap_or_default();
        drop(reading);
        let StoreOptions { transactions, feed_keys, clock, .. } = *options;
        let store = Store {
            base,
            verified,
            mended,
            folder: folder.to_owned(),
            identity,
            sums,
            due: Mutex::new(Some(Due::default())),
            made_up: Mutex::default(),
            sweep: Mutex::new(None),
            removal: Mutex::new(None),
            transactions,
            oldest_record: Mutex::new(0),
            feed_keys,
            clock,
            times: Mutex::new(times),
        };
        match store.write_due() {
            Err(error) if error.is_damage() => Err(error),
            // It can be read all the same, and comes before the first write.
            _ => Ok(store),
        }
    }

    /// Its clock: seconds since 1970.
    pub fn clock(&self) -> fn() -> u64 {
        self.clock
    }

    /// What is wrong with the file, and what it costs; nothing when it is sound, as far as was looked.
    pub fn damages(&self) -> &[Damage] {
        self.base.damages()
    }

    /// Refuses what would write to a damaged file, for who does not wait for that.
    ///
    /// # Errors
    /// [`StorageError::ReadOnly`].
    pub fn check_writable(&self) -> Result<(), StorageError> {
        self.base.check_writable()
    }

    /// Whether all of the file was looked at when it was opened, as it is up to
    /// [`StoreOptions::verify_at_open_bytes_max`].
    pub fn is_verified(&self) -> bool {
        self.verified
    }

    /// A damage that was found and put right when the file was opened.
    pub fn mended(&self) -> Option<&Damage> {
        self.mended.as_ref()
    }

    /// What never changes.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// How this database writes its sequences.
    pub fn seq_format(&self) -> SeqFormat {
        self.identity.seq_format
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The length of the file, in bytes.
    ///
    /// # Errors
    /// [`StorageError`] when the system does not say.
    pub fn file_bytes(&self) -> Result<u64, StorageError> {
        self.base.file_bytes()
    }

    /// What it measures of itself.
    pub fn gauge(&self) -> StoreGauge {
        self.base.gauge()
    }

    /// Opens the newest state for reading. A thread that has a snapshot must neither take another nor write before it
    /// is dropped: a map about to grow waits until no snapshot is left.
    ///
    /// # Errors
    /// [`StorageError`], when too many are open.
    pub fn snapshot(&self) -> Result<Snapshot<'_>, StorageError> {
        let (reading, keys_version) = (self.base.read()?, self.feed_keys.version());
        let Store { sums, times, transactions, .. } = self;
        Ok(Snapshot { reading, sums, times, transactions: *transactions, keys_version })
    }

    /// Writes the requests of many as one commit, each planned on what the ones before made. A request with a key under
    /// which one was carried out before writes nothing. When it returns, all of it is as durable as the store's
    /// [`Durability`] says, and visible. The reserve of a full map is for requests that all make room.
    ///
    /// # Errors
    /// [`StorageError`]: then nothing of any request was written.
    pub fn write(&self, requests: &[Request]) -> Result<Commit, StorageError> {
        let plan = |view: View<'_>| {
            // What was due has been written by now, and has moved the times.
            let moment = Moment::new((self.clock)(), *self.times.lock());
            let transactions = Transactions::new(self.transactions, *self.oldest_record.lock());
            let mut batch = Batch::new(view, transactions, self.feed_keys, moment)?;
            batch.plan(requests)?;
            batch.finish()
        };
        let makes_room = requests.iter().all(Request::makes_room);
        let room = if makes_room { Room::Reserve } else { Room::Ordinary };
        let committed = |done: &Finished| {
            self.advance_sums(done.commit.counters.update_seq, &done.blocks);
            *self.times.lock() = done.times;
            *self.oldest_record.lock() = done.oldest_record;
            if done.commit.reindex {
                // What is given up now may lie before it.
                *self.removal.lock() = None;
            }
        };
        let finished = self.commit(room, plan, committed)?;
        Ok(finished.commit)
    }

    /// Takes note that everybody sees by now what was committed up to a sequence: it is not given to those who ask for
    /// what came to be seen in a later second ([`Snapshot::seq_before`]).
    pub fn note_seen(&self, up_to: Sequence) {
        self.times.lock().seen(up_to, (self.clock)());
    }

    /// Plans and writes; see [`Base::write`]. What is due comes first.
    pub(crate) fn commit<T>(
        &self,
        room: Room,
        plan: impl FnMut(View<'_>) -> Result<(Rows, T), StorageError>,
        committed: impl FnOnce(&T),
    ) -> Result<T, StorageError> {
        // Whatever became of what is due, this was not begun.
        if let Some(made_up) = self.write_due().map_err(StorageError::of_an_earlier_one)? {
            *self.made_up.lock() = Some(made_up);
        }
        self.base.write(room, plan, committed)
    }

    /// What an opening or a new incarnation could not write, as on a full disk, and a commit has written since then in
    /// front of what it was asked for; given once. Whatever that commit was, everybody who watches the database is to
    /// know of it.
    pub fn take_made_up(&self) -> Option<MadeUp> {
        self.made_up.lock().take()
    }

    /// Raises the incarnation: tokens given out before stay valid and sort below all that is written from now on.
    ///
    /// # Errors
    /// [`StorageError`]: then every write tries to raise it first, and fails as long as that does.
    pub fn raise_incarnation(&self, incarnation: u8) -> Result<(), StorageError> {
        let mut due = self.due.lock();
        *due = Some(Due { incarnation: due.unwrap_or_default().incarnation.max(incarnation) });
        drop(due);
        self.write_due().map(drop)
    }

    /// Writes what is due, and gives it. A damaged file is not written to, and nothing is due there.
    fn write_due(&self) -> Result<Option<MadeUp>, StorageError> {
        let mut due = self.due.lock();
        let Some(Due { incarnation }) = due.filter(|_| self.damages().is_empty()) else { return Ok(None) };
        let plan = |view: View<'_>| {
            let mut rows = remade_index(view, self.feed_keys.version())?;
            let reindex = rows.len() > 0;
            let mut counters = view.counters()?;
            if counters.update_seq.incarnation < incarnation {
                counters.update_seq.incarnation = incarnation;
                rows.put(Table::Meta, META_COUNTERS, meta::encode_counters(&counters));
            }
            Ok((rows, MadeUp { update_seq: counters.update_seq, reindex }))
        };
        let committed = |MadeUp { update_seq, .. }: &MadeUp| {
            self.advance_sums(*update_seq, &BlockChanges::default());
            self.times.lock().moved(*update_seq);
        };
        let made_up = self.base.write(Room::Reserve, plan, committed)?;
        *due = None;
        Ok(Some(made_up))
    }

    fn advance_sums(&self, update_seq: Sequence, blocks: &BlockChanges) {
        self.sums.lock().advance(update_seq, blocks);
    }

    /// Looks at every row of the newest state; nothing is changed. What it sees stays pinned until it is done, so a
    /// busy database grows meanwhile.
    ///
    /// # Errors
    /// [`StorageError`] when the tables cannot be read at all; what is wrong inside is in the report.
    pub fn check(&self) -> Result<CheckReport, StorageError> {
        check(&self.base.read()?, self.damages(), self.feed_keys)
    }

    /// Whether a folder has a database, or what is left of one.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(DATA_FILE).is_file() || Store::has_log(folder)
    }

    /// Whether a folder has a log: what is in it may not be in LMDB yet.
    pub(crate) fn has_log(folder: &Path) -> bool {
        log::FILES.iter().any(|file| folder.join(file).is_file())
    }

    /// Whether a folder has neither tables nor a log, or is not there: a server makes an empty database of it.
    pub fn is_empty(folder: &Path) -> bool {
        let is_there = |file: &str, least: u64| match folder.join(file).metadata() {
            Ok(found) => found.len() >= least,
            // What may not be looked at may be there.
            Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        !is_there(DATA_FILE, 1) && !log::FILES.iter().any(|log| is_there(log, 0))
    }

    /// Checks a database's folder from outside, even while a server has it open: every page, then every row; nothing is
    /// changed. What its index should have is told by `keys`, if it was made so.
    ///
    /// # Errors
    /// As [`Store::check`]; [`StorageError::NewerFormat`].
    pub fn check_folder(folder: &Path, keys: &dyn FeedKeys) -> Result<CheckReport, StorageError> {
        refuse_lost_tables(folder)?;
        let mut attempts = 1..LOG_ATTEMPTS;
        loop {
            let log = FoundLog::read(folder)?;
            let (report, misses) = Survey::of_folder(folder, |survey| {
                let Replayed { over, damage, .. } = log.replay(View::of_survey(survey))?;
                let damages = survey.damages().iter().chain(survey.to_mend()).chain(&damage);
                let damages: Vec<Damage> = damages.cloned().collect();
                Ok::<_, StorageError>((check(&Reading::Survey(survey, &over), &damages, keys)?, damage.is_some()))
            })??;
            if !misses || attempts.next().is_none() {
                return Ok(report);
            }
        }
    }

    pub(crate) fn base(&self) -> &Base {
        &self.base
    }

    pub(crate) fn feed_keys(&self) -> &'static dyn FeedKeys {
        self.feed_keys
    }

    pub(crate) fn sweep(&self) -> &Mutex<Option<BodyKey>> {
        &self.sweep
    }

    pub(crate) fn removal(&self) -> &Mutex<Option<Vec<u8>>> {
        &self.removal
    }

    /// Closes the database, waiting until no snapshot uses it.
    ///
    /// # Errors
    /// [`StorageError`] when LMDB does not take what the log has: that stays in the log, for the next opening.
    pub fn close(self) -> Result<(), StorageError> {
        self.base.close()
    }
}

#[cfg(test)]
pub(crate) mod tests;
