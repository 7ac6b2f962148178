//! How much is being validated in a database, and when that is enough.

use parking_lot::Mutex;
use seqtide_storage::Request;

use crate::error::Error;
use crate::writer::WriterLimits;
use crate::writer::load::Load;

/// What is being validated in a database, bounded as what waits for its writer is.
pub(crate) struct Validating {
    load: Mutex<Load>,
    limits: WriterLimits,
}

/// A request that is being validated.
pub(crate) struct UnderWay<'a> {
    validating: &'a Validating,
    load: Load,
}

impl Validating {
    pub fn new(limits: WriterLimits) -> Validating {
        Validating { load: Mutex::default(), limits }
    }

    /// Counts a request for as long as the answer lives.
    pub fn begin(&self, request: &Request) -> Result<UnderWay<'_>, Error> {
        let (load, mut all) = (Load::of(request), self.load.lock());
        self.limits.admit_beside(*all)?;
        all.add(load);
        drop(all);
        Ok(UnderWay { validating: self, load })
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.validating.load.lock().take_off(self.load);
    }
}
