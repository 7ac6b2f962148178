//! Which design documents validate a database's writes.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use parking_lot::Mutex;
use seqtide_storage::{Snapshot, StorageError, Store, Write};

use super::{VALIDATE, validated};
use crate::error::Error;
use crate::functions::{DESIGNS_START, DOCUMENT_BYTES, Design, FunctionError, design_documents};
use crate::open_database::OpenDatabase;

/// Most bytes of the design documents that validate a database's writes, which are kept at hand: whole, because a
/// function may look at its document and load modules from it.
const DESIGNS_BYTES_MAX: usize = 16 << 20;

/// The design documents that validate a database's writes, as far as they are known.
pub(crate) struct Validators {
    /// With how many changes of design documents there had been before they were read.
    known: Mutex<Option<(u64, Found)>>,
}

/// The design documents that validate, or that they are too large.
type Found = Result<Arc<[Design]>, FunctionError>;

impl OpenDatabase {
    /// The design documents that validate these writes: those that were there when the last acknowledged write was
    /// made, and maybe later ones. None where nothing is to be validated: what makes them smaller must go through.
    pub async fn validators(self: &Arc<Self>, writes: &[Write]) -> Result<Arc<[Design]>, Error> {
        if !writes.iter().any(|write| validated(write).is_some()) {
            return Ok(Arc::default());
        }
        loop {
            let changes = self.live.design_changes();
            if let Some(known) = self.validators.known_at(changes) {
                return Ok(known?);
            }
            // Boxed: it is seldom asked for, and larger than all that a write needs otherwise.
            let Some(found) = Box::pin(self.find_validators(changes)).await? else { continue };
            *self.validators.known.lock() = Some((changes, found.clone()));
            return Ok(found?);
        }
    }

    /// Looks for them; `None` where design documents have changed between two pages, when there had been so many
    /// changes before: one that moved may be on neither.
    async fn find_validators(self: &Arc<Self>, changes: u64) -> Result<Option<Found>, Error> {
        let mut search = Search::new(self.identity.uuid);
        loop {
            let is_first = search.is_at_start();
            let next =
                move |snapshot: &Snapshot<'_>| Ok((search.next_page(snapshot)?, snapshot.counters()?.update_seq));
            match self.read(next).await? {
                (ControlFlow::Continue(further), _) => search = further,
                (ControlFlow::Break(found), _) if is_first => return Ok(Some(found)),
                (ControlFlow::Break(found), seen) => {
                    // A commit is read before it is counted.
                    tokio::select! {
                        () = self.live.reached(seen) => {}
                        gone = self.live.when_gone() => return Err(gone),
                    }
                    return Ok(Some(found).filter(|_| self.live.design_changes() == changes));
                }
            }
        }
    }
}

impl Validators {
    /// Those of a database that is opened: where they are found on one page, as nearly always, its first write need not
    /// wait for them. What cannot be read is told of then.
    pub fn of(store: &Store) -> Validators {
        let search = Search::new(store.identity().uuid);
        let found = store.snapshot().and_then(|snapshot| search.next_page(&snapshot));
        let found = found.ok().and_then(ControlFlow::break_value);
        Validators { known: Mutex::new(found.map(|found| (0, found))) }
    }

    /// What is known, if design documents have not changed since.
    fn known_at(&self, changes: u64) -> Option<Found> {
        self.known.lock().as_ref().filter(|(then, _)| *then == changes).map(|(_, found)| found.clone())
    }
}

/// Looks for the design documents that validate, a page at a time.
struct Search {
    database: [u8; 16],
    from: Bound<String>,
    designs: Vec<Design>,
    bytes: usize,
}

impl Search {
    fn new(database: [u8; 16]) -> Search {
        Search { database, from: DESIGNS_START.map(str::to_owned), designs: Vec::new(), bytes: 0 }
    }

    fn is_at_start(&self) -> bool {
        self.from == DESIGNS_START.map(str::to_owned)
    }

    fn next_page(mut self, snapshot: &Snapshot<'_>) -> Result<ControlFlow<Found, Search>, StorageError> {
        let (designs, next) = design_documents(snapshot, self.database, VALIDATE, self.from)?;
        self.bytes += designs.iter().map(|design| design.json().get().len() + DOCUMENT_BYTES).sum::<usize>();
        self.designs.extend(designs);
        if self.bytes > DESIGNS_BYTES_MAX {
            return Ok(ControlFlow::Break(Err(FunctionError::TooLarge { bytes_max: DESIGNS_BYTES_MAX })));
        }
        Ok(match next {
            Some(from) => ControlFlow::Continue(Search { from, ..self }),
            None => ControlFlow::Break(Ok(self.designs.into())),
        })
    }
}
