//! The metrics of the last minutes, once a second, in memory: what a page that is opened or comes back has to catch up
//! on.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use actix_web::web::Data;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::state::State;

const EVERY: Duration = Duration::from_secs(1);
/// Samples kept: five minutes.
const SAMPLES_MAX: usize = 300;

/// What these begin with is measured when it is asked for alone.
const LAG: &str = "seqtide_feeds_lag_";

/// Values by series, a name with its labels as `/metrics` writes it; among what has changed, nothing of one that is
/// gone.
type Values = BTreeMap<String, Option<f64>>;

/// The samples of the last minutes.
pub struct Figures {
    samples: Mutex<Samples>,
    /// When the newest was taken; closed at the end of the server.
    newest: watch::Sender<Option<u64>>,
}

/// The oldest sample whole, and of each later one what has changed.
#[derive(Default)]
struct Samples {
    oldest: Sample,
    later: VecDeque<Sample>,
    newest: Sample,
}

#[derive(Default, Clone)]
struct Sample {
    /// Milliseconds since 1970; each sample's is above the one's before.
    at: u64,
    values: Values,
}

impl Default for Figures {
    fn default() -> Figures {
        Figures { samples: Mutex::default(), newest: watch::Sender::new(Some(0)) }
    }
}

impl Figures {
    /// Adds a sample, and lets go of the oldest when there are enough.
    fn add(&self, at: u64, values: Values) {
        let mut samples = self.samples.lock();
        let at = at.max(samples.newest.at + 1);
        samples.add(Sample { at, values });
        drop(samples);
        // Once the end has been said, it stays said.
        self.newest.send_if_modified(|newest| newest.replace(at).is_some());
    }

    /// The samples behind a place as they are sent, and the place behind them. A place that is not among those kept is
    /// as none: then the first sample is a whole one.
    pub fn behind(&self, place: Option<u64>) -> (String, Option<u64>) {
        let samples = self.samples.lock();
        if samples.newest.at == 0 {
            // A server that has just begun has none: charts of the one before go on with its first.
            return (String::new(), None);
        }
        let known = place.filter(|place| samples.has(*place));
        let mut out = String::new();
        if known.is_none() {
            write_sample(&mut out, &samples.oldest, true);
        }
        let behind = samples.later.iter().filter(|sample| known.is_none_or(|place| sample.at > place));
        behind.for_each(|sample| write_sample(&mut out, sample, false));
        (out, Some(samples.newest.at))
    }

    /// Tells of each new sample; `None` is the end.
    pub fn newest(&self) -> watch::Receiver<Option<u64>> {
        self.newest.subscribe()
    }

    /// Ends every stream of figures.
    pub fn end(&self) {
        self.newest.send_replace(None);
    }
}

impl Samples {
    fn add(&mut self, sample: Sample) {
        if self.newest.at == 0 {
            self.oldest = sample.clone();
        } else {
            let before = &self.newest.values;
            let changed = sample.values.iter().filter(|(series, value)| before.get(*series) != Some(*value));
            let gone = before.keys().filter(|series| !sample.values.contains_key(*series));
            let changed = changed.map(|(series, value)| (series.clone(), *value));
            let values = changed.chain(gone.map(|series| (series.clone(), None))).collect();
            self.later.push_back(Sample { at: sample.at, values });
        }
        self.newest = sample;
        if self.later.len() >= SAMPLES_MAX
            && let Some(next) = self.later.pop_front()
        {
            self.oldest.at = next.at;
            self.oldest.values.extend(next.values);
            self.oldest.values.retain(|_, value| value.is_some());
        }
    }

    fn has(&self, place: u64) -> bool {
        place == self.oldest.at || self.later.binary_search_by_key(&place, |sample| sample.at).is_ok()
    }
}

fn write_sample(out: &mut String, sample: &Sample, whole: bool) {
    let Sample { at, values } = sample;
    let data = if whole {
        json!({ "time": at, "whole": true, "values": values })
    } else {
        json!({ "time": at, "values": values })
    };
    out.push_str(&format!("data: {data}\nid: {at}\n\n"));
}

/// Takes samples for as long as the server runs. Feeds are asked how far they are behind while a page looks.
pub async fn sample(state: Data<State>) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let is_followed = state.figures.newest.receiver_count() > 0;
        let values = if is_followed {
            values(&state.metrics_text().await)
        } else {
            without_lag(values(&state.metrics.text(&state.engine, &state.bodies)))
        };
        state.figures.add(now_millis(), values);
    }
}

fn now_millis() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

/// The same without what was not measured: it says how feeds were behind when somebody asked last.
fn without_lag(mut values: Values) -> Values {
    values.retain(|series, _| !series.starts_with(LAG));
    values
}

/// Reads the values of a text in Prometheus's form. Source: its exposition format 0.0.4; a line of ours has no
/// timestamp.
fn values(text: &str) -> Values {
    let value = |line: &str| {
        let (series, value) = line.rsplit_once(' ')?;
        let value = value.parse().ok().filter(|value: &f64| value.is_finite())?;
        Some((series.to_owned(), Some(value)))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(value: f64) -> Values {
        values(&format!("# TYPE a counter\na{{kind=\"x\"}} {value}\nb 7\n"))
    }

    #[test]
    fn a_page_that_comes_back_gets_what_it_missed_and_a_new_one_everything() {
        let figures = Figures::default();
        for at in 1..=3 {
            figures.add(at * 1000, one(at as f64));
        }
        let (text, place) = figures.behind(Some(2000));
        assert_eq!(text, "data: {\"time\":3000,\"values\":{\"a{kind=\\\"x\\\"}\":3.0}}\nid: 3000\n\n");
        assert_eq!(place, Some(3000));
        assert_eq!(figures.behind(place).0, "");
        let (all, _) = figures.behind(None);
        assert!(
            all.starts_with("data: {\"time\":1000,\"values\":{\"a{kind=\\\"x\\\"}\":1.0,\"b\":7.0},\"whole\":true}"),
            "{all}"
        );
        assert_eq!(all.matches("id: ").count(), 3);
        // Of another life of the server, or too long ago.
        assert_eq!(figures.behind(Some(2500)).0, all);
    }

    /// A chart went on with the lag of the moment in which somebody had looked last.
    #[test]
    fn what_was_not_measured_is_gone_until_it_is_again() {
        let measured = || values("seqtide_feeds_lag_rows_bucket{le=\"0\"} 1\nb 7\n");
        let figures = Figures::default();
        for (at, values) in [(1, measured()), (2, without_lag(measured())), (3, measured())] {
            figures.add(at, values);
        }
        let series = "\"seqtide_feeds_lag_rows_bucket{le=\\\"0\\\"}\"";
        let (all, _) = figures.behind(Some(1));
        let expected = [
            format!("{{\"time\":2,\"values\":{{{series}:null}}}}"),
            format!("{{\"time\":3,\"values\":{{{series}:1.0}}}}"),
        ];
        assert_eq!(all, format!("data: {}\nid: 2\n\ndata: {}\nid: 3\n\n", expected[0], expected[1]));
        for at in 4..1_000 {
            figures.add(at, without_lag(measured()));
        }
        assert!(!figures.behind(None).0.contains("lag"), "what is gone is not in a whole sample");
    }

    #[test]
    fn before_the_first_sample_there_is_neither_text_nor_place() {
        for place in [None, Some(0), Some(2500)] {
            assert_eq!(Figures::default().behind(place), (String::new(), None), "{place:?}");
        }
    }

    #[test]
    fn samples_are_bounded_and_the_oldest_stays_whole() {
        let figures = Figures::default();
        for at in 1..=1000 {
            figures.add(at, one(at as f64));
        }
        let (all, _) = figures.behind(None);
        assert_eq!(all.matches("id: ").count(), SAMPLES_MAX);
        let first = 1000 - SAMPLES_MAX + 1;
        assert!(all.starts_with(&format!(
            "data: {{\"time\":{first},\"values\":{{\"a{{kind=\\\"x\\\"}}\":{first}.0,\"b\":7.0}}"
        )));
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_turn_the_order() {
        let figures = Figures::default();
        figures.add(5000, one(1.0));
        figures.add(3000, one(2.0));
        assert_eq!(figures.behind(Some(5000)).1, Some(5001));
    }
}
