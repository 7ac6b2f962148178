//! How much waits to be written, and when that is enough.

use parking_lot::Mutex;

use super::WriterLimits;
use super::load::Load;
use crate::error::Error;
use crate::metrics::QueueMetrics;

/// What waits for a database's writer, from when it is asked for until its commit begins. Whoever asks adds to it, so
/// that a full queue is an answer at once; the writer takes off.
pub(crate) struct Waiting {
    limits: WriterLimits,
    load: Mutex<Load>,
    metrics: QueueMetrics,
}

impl Waiting {
    pub fn new(limits: WriterLimits) -> Waiting {
        Waiting { limits, load: Mutex::default(), metrics: QueueMetrics::default() }
    }

    /// Adds a request, unless it finds too much waiting already.
    ///
    /// # Errors
    /// [`Error::WriteQueueFull`].
    pub fn admit(&self, load: Load) -> Result<(), Error> {
        let mut waiting = self.load.lock();
        self.limits.admit_beside(*waiting)?;
        waiting.add(load);
        self.metrics.waits(load);
        Ok(())
    }

    /// Adds what was let in before and waits again.
    pub fn put_back(&self, load: Load) {
        self.load.lock().add(load);
        self.metrics.waits(load);
    }

    /// Takes off what waits no more.
    pub fn take_off(&self, load: Load) {
        self.load.lock().take_off(load);
        self.metrics.waits_no_more(load);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let left = *self.load.lock();
        self.metrics.waits_no_more(left);
    }
}
