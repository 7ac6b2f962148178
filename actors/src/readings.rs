//! The reads of a database that go on now: each pins what it sees, so the oldest one is worth knowing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

/// When each of them began, in that order.
#[derive(Default)]
pub(crate) struct Readings(Mutex<Begun>);

#[derive(Default)]
struct Begun {
    at: BTreeMap<u64, Instant>,
    next: u64,
}

/// A read that goes on for as long as this lives.
pub(crate) struct UnderWay {
    readings: Arc<Readings>,
    number: u64,
}

impl Readings {
    pub fn begin(self: &Arc<Self>) -> UnderWay {
        let mut begun = self.begun();
        let number = begun.next;
        begun.next += 1;
        begun.at.insert(number, Instant::now());
        UnderWay { readings: Arc::clone(self), number }
    }

    /// How many there are, and for how long the oldest one has gone on.
    pub fn now(&self) -> (usize, Duration) {
        let begun = self.begun();
        (begun.at.len(), begun.at.values().next().map_or(Duration::ZERO, Instant::elapsed))
    }

    fn begun(&self) -> MutexGuard<'_, Begun> {
        self.0.lock()
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.readings.begun().at.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_read_is_known_until_it_ends() {
        let readings = Arc::<Readings>::default();
        let first = readings.begin();
        let between = Instant::now();
        let second = readings.begin();
        assert_eq!(readings.now().0, 2);
        let for_so_long = between.elapsed();
        assert!(readings.now().1 >= for_so_long);
        drop(first);
        let (open, oldest) = readings.now();
        assert!(open == 1 && oldest <= between.elapsed());
        drop(second);
        assert_eq!(readings.now(), (0, Duration::ZERO));
    }
}
