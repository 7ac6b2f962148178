//! Metrics: the recorder behind `/metrics`.

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;
use seqtide::Engine;

use crate::bodies::Bodies;
use crate::logging;

const SECONDS: [f64; 12] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5];
const EDITS: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 500.0, 1000.0, 10_000.0];
const BODIES_BYTES: &str = "seqtide_request_bodies_bytes";
const LINES_LOST: &str = "seqtide_log_lines_lost_total";
/// Samples pile up until the recorder folds them into its buckets.
const UPKEEP: Duration = Duration::from_secs(5);

/// All metrics of the process: the engine's, the server's, and what the system says of the process itself.
#[derive(Clone)]
pub struct Metrics {
    recorded: PrometheusHandle,
    process: Collector,
}

impl Metrics {
    /// Installs the recorder; a process has one.
    ///
    /// # Errors
    /// [`BuildError`] when another recorder is installed.
    pub fn install() -> Result<Metrics, BuildError> {
        static INSTALLED: OnceLock<Metrics> = OnceLock::new();
        if let Some(metrics) = INSTALLED.get() {
            return Ok(metrics.clone());
        }
        let recorded = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
            .set_buckets_for_metric(Matcher::Suffix("_edits".to_owned()), &EDITS)?
            .install_recorder()?;
        let process = Collector::default();
        process.describe();
        describe_gauge!(BODIES_BYTES, Unit::Bytes, "bodies of requests that came in more than one piece");
        describe_counter!(LINES_LOST, "lines of the log that were lost, as who reads it was too slow");
        Ok(INSTALLED.get_or_init(|| Metrics { recorded, process }).clone())
    }

    /// As Prometheus reads them.
    pub fn text(&self, engine: &Engine, bodies: &Bodies) -> String {
        engine.measure();
        gauge!(BODIES_BYTES).set(bodies.bytes() as f64);
        counter!(LINES_LOST).absolute(logging::lines_lost() as u64);
        self.process.collect();
        self.recorded.render()
    }

    /// Keeps the recorder small, for as long as the process runs.
    pub async fn keep_up(self) {
        let mut ticks = tokio::time::interval(UPKEEP);
        loop {
            ticks.tick().await;
            self.recorded.run_upkeep();
        }
    }
}
