//! How much waits to be written, and when that is enough.

use std::sync::Arc;

use parking_lot::Mutex;

use super::WriterLimits;
use super::load::Load;
use crate::error::Error;

/// What waits for a database's writer, from when it is let in until its commit begins. Whoever asks adds to it, so that
/// a full queue is an answer at once.
pub(crate) struct Waiting {
    limits: WriterLimits,
    load: Mutex<Load>,
}

impl Waiting {
    pub fn new(limits: WriterLimits) -> Waiting {
        Waiting { limits, load: Mutex::default() }
    }

    /// How much waits now.
    pub fn load(&self) -> Load {
        *self.load.lock()
    }

    /// Lets a request in, unless it finds too much waiting already.
    ///
    /// # Errors
    /// [`Error::WriteQueueFull`].
    pub fn admit(self: &Arc<Waiting>, load: Load) -> Result<Admitted, Error> {
        let mut waiting = self.load.lock();
        self.limits.admit_beside(*waiting)?;
        Ok(self.count(&mut waiting, load))
    }

    /// Lets in what was let in before and waits again, however much waits.
    pub fn admit_again(self: &Arc<Waiting>, load: Load) -> Admitted {
        self.count(&mut self.load.lock(), load)
    }

    fn count(self: &Arc<Waiting>, waiting: &mut Load, load: Load) -> Admitted {
        waiting.add(load);
        Admitted { waiting: Arc::clone(self), load }
    }
}

/// What was let in. It waits for as long as this lives, so nothing counts that is on its way no more, whatever became
/// of it.
pub(crate) struct Admitted {
    waiting: Arc<Waiting>,
    load: Load,
}

impl Admitted {
    pub fn load(&self) -> Load {
        self.load
    }

    /// Takes another over, of the same database: both wait no more at once.
    pub fn take_over(&mut self, mut other: Admitted) {
        self.load.add(std::mem::take(&mut other.load));
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if self.load == Load::default() {
            return;
        }
        self.waiting.load.lock().take_off(self.load);
    }
}
