//! A database, as a program uses it.

use std::fmt;
use std::sync::Arc;

use seqtide_storage::json::{Body, Document as Scanned, ScanLimits, scan_document};
use seqtide_storage::model::db_name::DbName;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::idempotency::{Fingerprint, IdempotencyKey};
use seqtide_storage::model::rev::RevId;
use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::{Counters, Edit, Outcome, Refusal, Request, RequestKey, Snapshot, StorageError, Write};
use serde_json::value::RawValue;

use crate::documents::{Document, Extras, Which, read_document};
use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::feed::Feed;
use crate::feed::options::{ChangesOptions, FeedOptions};
use crate::feed::stream::{Change, Changes};
use crate::feed_index::{FeedIndex, IndexFields};
use crate::functions::{Design, FilterFunction, check_designs, read_design};
use crate::idempotency::WriteOptions;
use crate::known::FeedAbout;
use crate::open_database::OpenDatabase;
use crate::registry::Open;
use crate::sweep::Sweep;
use crate::validation::Validation;
use crate::writer::Written;
use crate::writer::asker::Unattended;

/// How often a request is validated anew because a document has moved meanwhile.
const MOVES_MAX: usize = 20;

/// A database. Cheap to clone; it is opened when it is used, and may be closed in between.
#[derive(Clone)]
pub struct Database {
    engine: Arc<Inner>,
    name: DbName,
    /// The uuid of the database that is meant, if not any of that name: another one made under it is
    /// [`Error::NoDatabase`].
    pinned: Option<[u8; 16]>,
}

/// What is known of a database as a whole.
#[derive(Debug, Clone)]
pub struct DatabaseInfo {
    /// Its counters.
    pub counters: Counters,
    /// How many purges have changed a document.
    pub purge_seq: u64,
    /// The sweep for bodies that no leaf needs that goes on now.
    pub sweep: Option<Sweep>,
    /// Its length on disk, in bytes.
    pub file_bytes: u64,
    /// How it writes its sequences.
    pub seq_format: SeqFormat,
    /// When it was made, in seconds since 1970.
    pub created_secs: u64,
    /// Random, told apart from every other database's.
    pub uuid: [u8; 16],
}

/// Why an edit was not made.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PutError {
    /// The document has another revision than the edit goes on from. Source: CouchDB, 409.
    #[error("Document update conflict.")]
    Conflict,
    /// The document's id is none.
    #[error(transparent)]
    BadId(#[from] seqtide_storage::model::doc_id::DocIdError),
    /// The body is no JSON object, or has special members it may not have.
    #[error(transparent)]
    BadBody(#[from] seqtide_storage::json::DocumentError),
    /// The JSON has another `_id` than the document it was put under.
    #[error("the document {id:?} was given with the _id {named:?}")]
    AnotherId {
        /// Where it was put.
        id: String,
        /// What it says.
        named: String,
    },
    /// A validation function refused it, or gave no answer ([`RefusalKind::Undecided`](seqtide_storage::RefusalKind)).
    #[error("{}", .0.reason)]
    Refused(Refusal),
    /// The JSON brings attachments.
    #[error("attachments are not supported yet")]
    Attachments,
    /// The engine could not do it.
    #[error(transparent)]
    Engine(#[from] Error),
}

/// A revision that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// The revision.
    pub rev: RevId,
    /// The document's new place in the feed.
    pub seq: Sequence,
    /// Whether it was written before, by the same request with the same idempotency key.
    pub replayed: bool,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("name", &self.name.as_str()).finish_non_exhaustive()
    }
}

impl Database {
    pub(crate) fn new(engine: &Engine, name: DbName) -> Database {
        Database { engine: Arc::clone(&engine.inner), name, pinned: None }
    }

    /// Its name.
    pub fn name(&self) -> &DbName {
        &self.name
    }

    /// The same, and never one that is made under its name when it is deleted: for who asks more than once for one
    /// answer.
    ///
    /// # Errors
    /// As [`Database::read`].
    pub async fn pinned(&self) -> Result<Database, Error> {
        let uuid = self.opened().await?.identity.uuid;
        Ok(Database { pinned: Some(uuid), ..self.clone() })
    }

    pub(crate) async fn opened(&self) -> Result<Arc<OpenDatabase>, Error> {
        let opened = match self.engine.open.get(&self.name) {
            Some(open) => open,
            None => self.engine.registry.send(Open(self.name.clone())).await.map_err(|_gone| Error::Stopped)??,
        };
        match self.pinned {
            Some(uuid) if opened.identity.uuid != uuid => Err(Error::NoDatabase),
            _ => Ok(opened),
        }
    }

    /// Reads from one state of the database, on a thread that may block. Read what one answer needs and return: who
    /// closes or deletes the database waits for it, and whoever wants to open another one meanwhile with them. So may a
    /// write, while its map grows: `read` must not wait for one.
    ///
    /// # Errors
    /// [`Error::NoDatabase`], [`Error::TooManyDatabases`], [`Error::Stopped`], [`Error::Storage`].
    ///
    /// # Panics
    /// With what `read` panics with.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Snapshot<'_>) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, Error> {
        self.opened().await?.read(read).await
    }

    /// Writes all of it in one commit. When this returns it is durable and visible. A future that is dropped before it
    /// is ready takes nothing back: the write may still be made.
    ///
    /// # Errors
    /// [`Error::BadDesign`], [`Error::WriteQueueFull`], [`Error::NoDatabase`], [`Error::TooManyDatabases`],
    /// [`Error::Stopped`], [`Error::Storage`]; where design documents validate writes, [`Error::Function`]; there, and
    /// where a write expects its document to be as it was, [`Error::Moved`]. Then nothing was written, but see
    /// [`StorageError::InDoubt`].
    pub async fn write(&self, writes: Vec<Write>) -> Result<Written, Error> {
        self.write_with(writes, WriteOptions::default()).await
    }

    /// Writes as [`Database::write`] does; with an idempotency key, once however often it is sent. One that changes
    /// nothing (a conflict, an error) leaves its key free.
    ///
    /// # Errors
    /// As [`Database::write`]; [`Error::KeyReused`].
    pub async fn write_with(&self, writes: Vec<Write>, options: WriteOptions) -> Result<Written, Error> {
        check_designs(&writes)?;
        let database = self.opened().await?;
        let request = options.request(writes, || database.now_secs());
        let designs = database.validators(&request.writes).await;
        if designs.as_ref().is_ok_and(|designs| designs.is_empty()) {
            return database.submit(request).await;
        }
        let key = request.key.clone();
        let written = match designs {
            // Boxed, as what is below: few writes need it, and it is large beside what the others need.
            Ok(designs) => Box::pin(self.write_validated(&database, request, designs)).await,
            Err(error) => Err(error),
        };
        match (written, key) {
            (Err(error), Some(key)) => Box::pin(written_first(&database, key)).await?.ok_or(error),
            (written, _) => written,
        }
    }

    /// Has the edits of a request validated, and writes what is allowed, unless a document has moved meanwhile: then
    /// they are validated again.
    async fn write_validated(
        &self,
        database: &Arc<OpenDatabase>,
        request: Request,
        mut designs: Arc<[Design]>,
    ) -> Result<Written, Error> {
        let (name, functions, keyed) = (&self.name, &self.engine.functions, request.key.is_some());
        let _under_way = database.validating.begin(&request)?;
        let mut validation = Validation::new(database, name, functions, keyed);
        for _ in 0..MOVES_MAX {
            let writes = validation.validate(&designs, request.writes.clone()).await?;
            match database.submit(Request { writes, key: request.key.clone() }).await {
                Err(Error::Moved) => {}
                done => return done,
            }
            let now = database.validators(&request.writes).await?;
            if !Arc::ptr_eq(&now, &designs) {
                validation.forget();
                designs = now;
            }
        }
        Err(Error::Moved)
    }

    /// Queues a write and returns: it is made when its turn comes, before the engine has shut down. Where design
    /// documents validate writes it is made at once: what it is to be validated against would be another one by its
    /// turn. A queued write that fails, and one that is refused or has a conflict, is logged and counted, and nobody is
    /// told.
    ///
    /// # Errors
    /// As [`Database::write`]: then it is not queued.
    pub async fn write_later(&self, write: Write) -> Result<(), Error> {
        let database = self.opened().await?;
        let unattended = Unattended::new(&self.name, &write);
        let writes = vec![write];
        check_designs(&writes)?;
        if database.validators(&writes).await?.is_empty() {
            return database.enqueue(writes.into(), unattended).await;
        }
        let written = self.write(writes).await?;
        unattended.report(Ok(written));
        Ok(())
    }

    /// What was answered to the request with this key, if it was carried out and is still remembered: to be asked
    /// before what would be written is looked for in a state that has gone on since. It may miss a request that is
    /// being written just now; [`Database::write_with`] never does.
    ///
    /// # Errors
    /// [`Error::NoDatabase`], [`Error::TooManyDatabases`], [`Error::Stopped`], [`Error::Storage`];
    /// [`Error::KeyReused`] when the answer is another request's.
    pub async fn written_before(
        &self,
        key: &IdempotencyKey,
        fingerprint: Fingerprint,
    ) -> Result<Option<Written>, Error> {
        let database = self.opened().await?;
        let asked = RequestKey { key: key.clone(), fingerprint, made_ids: Vec::new(), at_secs: database.now_secs() };
        let found = database.read(move |snapshot| snapshot.answer(&asked)).await?;
        // A commit counts once feeds can see it.
        let found = found.filter(|outcome| outcome.seq <= database.live.newest());
        found.map(|outcome| Written::from_outcome(outcome, database.seq_format)).transpose()
    }

    /// Writes a document: a new one without `_rev` in the JSON, an update with the revision it goes on from. Where
    /// there are `_revisions` it goes on from the newest of them; to write it with that ancestry is replication, see
    /// [`Edit::replicated`]. A future that is dropped before it is ready takes nothing back: the write may still be
    /// made.
    ///
    /// # Errors
    /// [`PutError`]; inside [`PutError::Engine`], what [`Database::write`] has.
    pub async fn put(&self, id: &str, json: impl AsRef<[u8]>) -> Result<Put, PutError> {
        self.put_with(id, json, WriteOptions::default()).await
    }

    /// Writes a document as [`Database::put`] does; with an idempotency key, once however often it is sent.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let engine = seqtide::Engine::start(folder.path())?;
    /// # let orders = engine.create_database("orders").await?;
    /// let key = seqtide::IdempotencyKey::new("order-1-from-till-7")?;
    /// let first = orders.put_with("o-1", "{}", key.clone().into()).await?;
    /// let again = orders.put_with("o-1", "{}", key.into()).await?;
    /// assert_eq!((first.replayed, again.replayed), (false, true));
    /// assert_eq!((first.rev, first.seq), (again.rev, again.seq));
    /// # Ok(engine.shutdown().await?)
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Database::put`]; [`Error::KeyReused`].
    pub async fn put_with(&self, id: &str, json: impl AsRef<[u8]>, options: WriteOptions) -> Result<Put, PutError> {
        let Scanned { id: named, rev, deleted, body, attachments, .. } =
            scan_document(json.as_ref(), &ScanLimits::default())?;
        if attachments.is_some() {
            return Err(PutError::Attachments);
        }
        if let Some(named) = named.filter(|named| named != id) {
            return Err(PutError::AnotherId { id: id.to_owned(), named });
        }
        self.edit(Edit::interactive(DocId::parse(id)?, rev, deleted, body), options).await
    }

    /// Deletes a document, going on from a revision. As with [`Database::put`], a future that is dropped takes nothing
    /// back.
    ///
    /// # Errors
    /// [`PutError::Conflict`], [`PutError::BadId`], [`PutError::Refused`]; inside [`PutError::Engine`], what
    /// [`Database::write`] has.
    pub async fn delete(&self, id: &str, rev: RevId) -> Result<Put, PutError> {
        self.delete_with(id, rev, WriteOptions::default()).await
    }

    /// Deletes a document as [`Database::delete`] does; with an idempotency key, once however often it is sent.
    ///
    /// # Errors
    /// As [`Database::delete`]; [`Error::KeyReused`].
    pub async fn delete_with(&self, id: &str, rev: RevId, options: WriteOptions) -> Result<Put, PutError> {
        self.edit(Edit::interactive(DocId::parse(id)?, Some(rev), true, Body::empty()), options).await
    }

    async fn edit(&self, edit: Edit, options: WriteOptions) -> Result<Put, PutError> {
        let Written { outcomes, seq, replayed, .. } = self.write_with(vec![Write::Edit(edit)], options).await?;
        match outcomes.into_iter().next() {
            Some(Outcome::Written { rev, seq }) => Ok(Put { rev, seq, replayed }),
            Some(Outcome::Known { rev }) => Ok(Put { rev, seq, replayed }),
            Some(Outcome::Refused(refusal)) => Err(PutError::Refused(refusal)),
            _ => Err(PutError::Conflict),
        }
    }

    /// Reads a document's winner; `None` when there is none, or it is deleted.
    ///
    /// # Errors
    /// [`Error::NoDatabase`], [`Error::TooManyDatabases`], [`Error::Stopped`], [`Error::Storage`].
    pub async fn get(&self, id: &str) -> Result<Option<Document>, Error> {
        let Ok(id) = DocId::parse(id) else { return Ok(None) };
        let read = move |snapshot: &Snapshot<'_>| read_document(snapshot, &id, &Which::Winner, Extras::default());
        Ok(self.read(read).await?.ok())
    }

    /// Follows what changes.
    ///
    /// # Errors
    /// [`Error::NoDatabase`], [`Error::TooManyDatabases`], [`Error::TooManyFeeds`], [`Error::TooManyListedIds`],
    /// [`Error::SelectorsTooLarge`], [`Error::Draining`], [`Error::Stopped`], [`Error::Storage`], [`Error::Function`].
    pub async fn changes(&self, options: ChangesOptions) -> Result<Changes, Error> {
        let (all_leaves, with_body) = (options.all_leaves, options.include_docs);
        let feed = self.feed(options.into()).await?;
        Ok(Changes::new(feed, move |row| Change::of(row, all_leaves, with_body)))
    }

    /// Opens a feed: the form of [`Database::changes`] that gives pages of encoded rows. One whose filter has a
    /// function has asked it about its first page by then.
    ///
    /// # Errors
    /// As [`Database::changes`]; [`Error::Ahead`] if the options ask for it.
    pub async fn feed(&self, options: FeedOptions) -> Result<Feed, Error> {
        let permit = self.engine.feeds.take_listing(options.filter.ids.listed())?;
        let database = self.opened().await?;
        let permit = permit.known_as(FeedAbout {
            kind: options.kind,
            database: Some(self.name.clone()),
            filter: options.filter.to_text(),
            seq_format: database.seq_format,
        });
        let mut feed = Feed::of_documents(database, self.engine.functions.clone(), options, permit).await?;
        if feed.options().filter.function.is_some() {
            feed.look_ahead(self.engine.functions.verdict_within()).await?;
        }
        Ok(feed)
    }

    /// A filter function of a design document as it is now, for [`Filter::function`](crate::Filter::function):
    /// `filters.NAME` of `_design/DESIGN`, whose second argument has this JSON as its `query`. A feed keeps the
    /// revision it was opened with.
    ///
    /// # Errors
    /// [`Error::Function`] when there is no such function, it does not compile, or functions cannot be run;
    /// [`Error::NoDatabase`], [`Error::TooManyDatabases`], [`Error::Stopped`], [`Error::Storage`].
    pub async fn filter_function(&self, design: &str, name: &str, query: &RawValue) -> Result<FilterFunction, Error> {
        let design = self.design(design).await?;
        self.compiled(FilterFunction::filter(design, name, query)?).await
    }

    /// The map function of a view as a filter: `views.VIEW.map` of `_design/DESIGN`, which passes a document it emits
    /// something for.
    ///
    /// # Errors
    /// As [`Database::filter_function`].
    pub async fn view_function(&self, design: &str, view: &str) -> Result<FilterFunction, Error> {
        let design = self.design(design).await?;
        self.compiled(FilterFunction::map(design, view)?).await
    }

    async fn design(&self, name: &str) -> Result<Design, Error> {
        let database = self.opened().await?;
        let (uuid, name) = (database.identity.uuid, name.to_owned());
        let found = database.read(move |snapshot| read_design(snapshot, uuid, &name)).await?;
        Ok(found?)
    }

    /// Asks the function of no document: whether it is one is known before a feed begins.
    async fn compiled(&self, function: FilterFunction) -> Result<FilterFunction, Error> {
        self.engine.functions.passes(&function, Vec::new()).await?;
        Ok(function)
    }

    /// What is known of the database as a whole.
    ///
    /// # Errors
    /// [`Error::NoDatabase`], [`Error::TooManyDatabases`], [`Error::Stopped`], [`Error::Storage`].
    pub async fn info(&self) -> Result<DatabaseInfo, Error> {
        let database = self.opened().await?;
        // Before the counters: where it says that no sweep goes on, they are those behind it.
        let sweep = database.sweeping.now();
        let file_bytes = database.store()?.file_bytes()?;
        let read = |snapshot: &Snapshot<'_>| Ok((snapshot.counters()?, snapshot.purge_seq()?));
        let (mut counters, purge_seq) = database.read(read).await?;
        // A commit counts once feeds can see it.
        counters.update_seq = counters.update_seq.min(database.live.newest());
        let (identity, seq_format) = (database.identity, database.seq_format);
        let (created_secs, uuid) = (identity.created_secs, identity.uuid);
        Ok(DatabaseInfo { counters, purge_seq, sweep, file_bytes, seq_format, created_secs, uuid })
    }

    /// Makes the index of the feed one of these fields; without any there is none. It is kept from this commit on, and
    /// made of what was there before in the background: [`Database::feed_index`] tells how far that is. Fields that it
    /// has already stay as they are.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let engine = seqtide::Engine::start(folder.path())?;
    /// # let orders = engine.create_database("orders").await?;
    /// orders.set_feed_index(&seqtide::IndexFields::parse(["owner", "address.city"])?).await?;
    /// assert_eq!(orders.feed_index().await?.fields, ["owner", "address.city"]);
    /// # Ok(engine.shutdown().await?)
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Database::write`].
    pub async fn set_feed_index(&self, fields: &IndexFields) -> Result<Written, Error> {
        self.write(vec![fields.write()]).await
    }

    /// What there is of the index of the feed.
    ///
    /// # Errors
    /// [`Error::NoDatabase`], [`Error::TooManyDatabases`], [`Error::Stopped`], [`Error::Storage`].
    pub async fn feed_index(&self) -> Result<FeedIndex, Error> {
        let database = self.opened().await?;
        let status = database.read(|snapshot| snapshot.feed_index()).await?;
        Ok(FeedIndex::of(status, database.indexing.is_damaged()))
    }

    /// How the database writes its sequences.
    ///
    /// # Errors
    /// [`Error::NoDatabase`], [`Error::TooManyDatabases`], [`Error::Stopped`], [`Error::Storage`].
    pub async fn seq_format(&self) -> Result<SeqFormat, Error> {
        Ok(self.opened().await?.seq_format)
    }

    /// Starts to free all bodies that no leaf needs now, in the background: [`DatabaseInfo::sweep`] tells how it goes.
    ///
    /// # Errors
    /// [`Error::NoDatabase`], [`Error::TooManyDatabases`], [`Error::Stopped`], [`Error::Storage`].
    pub async fn reclaim(&self) -> Result<(), Error> {
        self.opened().await?.reclaim()
    }
}

/// What was written when a request was first sent, which could not be validated now: what is in its way need not have
/// been then. Asked behind everything that was sent to the writer before; an error means that this is not known.
async fn written_first(database: &OpenDatabase, key: RequestKey) -> Result<Option<Written>, Error> {
    let asked = database.submit(Request { writes: Vec::new(), key: Some(key) }).await?;
    Ok(Some(asked).filter(|written| written.replayed))
}
