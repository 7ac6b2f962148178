//! Time that this machine's processors should have worked and somebody else had: the host of a virtual machine lends
//! them to others.

use std::fs;

/// How long all processors have been there, and how much of that was stolen, in ticks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Processors {
    all: u64,
    stolen: u64,
}

impl Processors {
    /// What the system has counted up to now; `None` where it does not tell.
    fn now() -> Option<Processors> {
        Processors::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Reads the first line of `/proc/stat`; see proc_stat(5).
    fn parse(stat: &str) -> Option<Processors> {
        let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        // What guests had, behind these, is among the first two already.
        let ticks: Vec<u64> = fields.take(8).map(|field| field.parse().ok()).collect::<Option<_>>()?;
        Some(Processors { all: ticks.iter().sum(), stolen: *ticks.get(7)? })
    }

    /// The share of the time since that was stolen, from 0 to 1.
    fn stolen_since(self, before: Processors) -> f64 {
        let all = self.all.saturating_sub(before.all);
        self.stolen.saturating_sub(before.stolen) as f64 / all.max(1) as f64
    }
}

/// What something gives, and the share of the processors' time that was stolen meanwhile, from 0 to 1; `None` where the
/// system does not tell.
pub fn noting_stolen<T>(what: impl FnOnce() -> T) -> (T, Option<f64>) {
    let before = Processors::now();
    let given = what();
    (given, before.zip(Processors::now()).map(|(before, now)| now.stolen_since(before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stolen_is_read_as_a_share_of_all_time() {
        let stat =
            |idle: u64, stolen: u64| format!("cpu  10 1 20 {idle} 5 0 4 {stolen} 7 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
        let read = |idle, stolen| Processors::parse(&stat(idle, stolen)).unwrap();
        assert_eq!(read(100, 60), Processors { all: 200, stolen: 60 });
        assert_eq!(read(130, 70).stolen_since(read(100, 60)), 0.25);
        assert_eq!(read(100, 60).stolen_since(read(100, 60)), 0.0);
        for unknown in ["", "intr 1 2", "cpu  1 2 3", "cpu  1 2 3 4 5 6 7 x"] {
            assert_eq!(Processors::parse(unknown), None, "{unknown}");
        }
    }
}
