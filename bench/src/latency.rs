//! How long things took.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::Error;

/// The longest time that is told from longer ones, in microseconds: an hour.
const MICROS_MAX: u64 = 3_600_000_000;
/// Digits that are kept of a time.
const DIGITS: u8 = 3;

/// Times, kept to three digits.
#[derive(Debug, Clone)]
pub struct Latency(Histogram<u64>);

impl Latency {
    /// None yet.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new() -> Result<Latency, Error> {
        let histogram = Histogram::new_with_bounds(1, MICROS_MAX, DIGITS);
        Ok(Latency(histogram.map_err(|why| Error::Usage(format!("a histogram: {why}")))?))
    }

    /// Notes one.
    pub fn add(&mut self, took: Duration) {
        self.add_micros(took.as_micros() as u64);
    }

    /// Notes one, in microseconds.
    pub fn add_micros(&mut self, micros: u64) {
        self.0.saturating_record(micros);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The time that so much of them took at most, in milliseconds: 0.99 gives the slowest of a hundred, 1 the slowest
    /// of all.
    pub fn millis(&self, share: f64) -> f64 {
        self.0.value_at_quantile(share) as f64 / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_times_took_no_longer() {
        let mut latency = Latency::new().unwrap();
        (1..=1000).for_each(|millis| latency.add(Duration::from_millis(millis)));
        for (share, millis) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = latency.millis(share);
            assert!((found - millis).abs() <= 0.002 * millis, "{share}: {found}");
        }
        assert_eq!(latency.count(), 1000);
    }
}
