//! What the web threads do.

use std::num::NonZero;
use std::thread;

/// How many web threads there are, by what they do. The more of them take connections, the more wake-ups there are,
/// each with less to do, on processors that writers and readers of the disk need as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebThreads {
    /// They take connections, and serve requests and feeds.
    pub taking: usize,
    /// They serve feeds that are too many for the thread they came to.
    pub helping: usize,
}

impl WebThreads {
    /// So many in all; 0 is one a core.
    pub fn new(all: usize) -> WebThreads {
        let all = if all > 0 { all } else { thread::available_parallelism().map_or(1, NonZero::get) };
        WebThreads { taking: all.div_ceil(2), helping: all / 2 }
    }

    /// How many there are.
    pub fn all(self) -> usize {
        self.taking + self.helping
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_them_take_connections_and_at_least_one() {
        for (all, taking, helping) in [(1, 1, 0), (2, 1, 1), (3, 2, 1), (16, 8, 8)] {
            assert_eq!(WebThreads::new(all), WebThreads { taking, helping });
        }
        assert!(WebThreads::new(0).taking > 0);
    }
}
