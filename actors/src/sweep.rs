//! What the sweep of a database for bodies that no leaf needs is doing, for all to see.

use std::time::SystemTime;

use parking_lot::{Mutex, MutexGuard};
use seqtide_storage::Reclaimed;

/// A sweep that goes on: it looks at every body and frees those that no leaf needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sweep {
    /// When it began.
    pub started: SystemTime,
    /// When it last got on.
    pub updated: SystemTime,
    /// Bodies it has looked at.
    pub bodies_examined: u64,
    /// Bytes of bodies it has freed.
    pub bytes_freed: u64,
}

/// Whether a database is being swept. Its writer changes it; who asks waits for nobody.
#[derive(Default)]
pub(crate) struct Sweeping(Mutex<State>);

#[derive(Default)]
struct State {
    under_way: Option<Sweep>,
    /// Once at the end, it goes through once more: what it had passed when it was asked for may be garbage by now.
    once_more: bool,
}

impl Sweeping {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// The sweep that goes on.
    pub fn now(&self) -> Option<Sweep> {
        self.state().under_way
    }

    /// Starts a sweep unless one goes on.
    pub fn start(&self) {
        self.state().start();
    }

    /// Starts a sweep that frees all that is garbage now, and says that none went on; one that does is prolonged.
    pub fn start_whole(&self) -> bool {
        let mut state = self.state();
        state.once_more = state.under_way.is_some();
        state.start();
        !state.once_more
    }

    /// Takes note of a slice.
    pub fn examined(&self, slice: Reclaimed) {
        let mut state = self.state();
        if let Some(sweep) = &mut state.under_way {
            sweep.updated = SystemTime::now();
            sweep.bodies_examined += slice.examined;
            sweep.bytes_freed += slice.bytes;
        }
        if slice.swept && !std::mem::take(&mut state.once_more) {
            state.under_way = None;
        }
    }

    /// Gives up.
    pub fn stop(&self) {
        *self.state() = State::default();
    }
}

impl State {
    fn start(&mut self) {
        let now = SystemTime::now();
        self.under_way.get_or_insert(Sweep { started: now, updated: now, bodies_examined: 0, bytes_freed: 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(swept: bool) -> Reclaimed {
        Reclaimed { examined: 5, bytes: 7, swept }
    }

    #[test]
    fn a_sweep_ends_with_its_last_slice_and_adds_up_what_it_did() {
        let sweeping = Sweeping::default();
        assert_eq!(sweeping.now(), None);
        sweeping.start();
        sweeping.examined(slice(false));
        sweeping.start();
        sweeping.examined(slice(false));
        let sweep = sweeping.now().unwrap();
        assert_eq!((sweep.bodies_examined, sweep.bytes_freed), (10, 14));
        assert!(sweep.updated >= sweep.started);
        sweeping.examined(slice(true));
        assert_eq!(sweeping.now(), None);
    }

    #[test]
    fn who_asks_for_all_garbage_during_a_sweep_has_it_go_through_once_more() {
        let sweeping = Sweeping::default();
        assert!(sweeping.start_whole() && !sweeping.start_whole() && !sweeping.start_whole());
        sweeping.examined(slice(true));
        assert_eq!(sweeping.now().unwrap().bodies_examined, 5);
        sweeping.examined(slice(true));
        assert_eq!(sweeping.now(), None);
        sweeping.start_whole();
        sweeping.stop();
        assert_eq!(sweeping.now(), None);
    }
}
