//! What was measured, for people and for programs.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

use crate::latency::Latency;
use crate::process::Usage;

/// The shares of the slowest that are told, with their names.
const SHARES: [(f64, &str); 4] = [(0.5, "p50_ms"), (0.99, "p99_ms"), (0.999, "p999_ms"), (1.0, "longest_ms")];

/// Values by name, in the order in which they were noted. A name ends with its unit, unless it counts something.
#[derive(Debug, Default)]
pub struct Report(Vec<(String, Value)>);

impl Report {
    /// The report of a load.
    pub fn of(load: &str) -> Report {
        Report::default().with("load", load)
    }

    /// Adds a value.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Report {
        self.0.push((name.to_owned(), value.into()));
        self
    }

    /// Adds how long something took: half, 99 of 100, 999 of 1,000 and all of them; nulls where it never was.
    #[must_use]
    pub fn with_latency(self, what: &str, latency: &Latency) -> Report {
        let took = |share| (latency.count() > 0).then(|| latency.millis(share));
        SHARES.iter().fold(self, |report, (share, name)| report.with(&format!("{what}_{name}"), took(*share)))
    }

    /// Adds what the server's process took, where that is known.
    #[must_use]
    pub fn with_usage(self, usage: Option<Usage>) -> Report {
        let of = |value: fn(&Usage) -> Value| usage.as_ref().map_or(Value::Null, value);
        self.with("server_cpu_secs", of(|usage| json!(usage.cpu_secs)))
            .with("server_anonymous_bytes_max", of(|usage| json!(usage.anonymous_bytes_max)))
    }

    /// A line a value, aligned.
    pub fn table(&self) -> String {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        self.0.iter().map(|(name, value)| format!("{name:<width$}  {}\n", text(value))).collect()
    }

    /// One line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        Value::Number(number) if number.is_f64() => format!("{:.3}", number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_keeps_its_order_for_people_and_programs() {
        let report = Report::of("writes").with("rate", 2.5).with("lost", 0).with_usage(None);
        let json = r#"{"load":"writes","rate":2.5,"lost":0,"server_cpu_secs":null,"server_anonymous_bytes_max":null}"#;
        assert_eq!(report.json(), json);
        let table = report.table();
        assert!(
            table.lines().nth(1).is_some_and(|line| line.starts_with("rate ") && line.ends_with(" 2.500")),
            "{table}"
        );
        assert!(table.ends_with("  -\n"), "{table}");
    }

    #[test]
    fn times_of_nothing_are_none() {
        let mut latency = Latency::new().unwrap();
        let report = Report::default().with_latency("sent", &latency);
        assert_eq!(
            report.json(),
            r#"{"sent_p50_ms":null,"sent_p99_ms":null,"sent_p999_ms":null,"sent_longest_ms":null}"#
        );
        assert!(report.table().lines().all(|line| line.ends_with("  -")), "{}", report.table());
        latency.add_micros(2_000);
        assert!(Report::default().with_latency("sent", &latency).json().starts_with(r#"{"sent_p50_ms":2.0,"#));
    }
}
