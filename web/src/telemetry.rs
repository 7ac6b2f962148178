//! Metrics: the recorder behind `/metrics`.

use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

const SECONDS: [f64; 12] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5];
const EDITS: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 500.0, 1000.0, 10_000.0];
/// Samples pile up until the recorder folds them into its buckets.
const UPKEEP: Duration = Duration::from_secs(5);

/// Installs the recorder; a process has one.
///
/// # Errors
/// [`BuildError`] when another recorder is installed.
pub fn install() -> Result<PrometheusHandle, BuildError> {
    static INSTALLED: OnceLock<PrometheusHandle> = OnceLock::new();
    if let Some(handle) = INSTALLED.get() {
        return Ok(handle.clone());
    }
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_edits".to_owned()), &EDITS)?
        .install_recorder()?;
    Ok(INSTALLED.get_or_init(|| handle).clone())
}

/// Keeps the recorder small, for as long as the process runs.
pub async fn upkeep(handle: PrometheusHandle) {
    let mut ticks = tokio::time::interval(UPKEEP);
    loop {
        ticks.tick().await;
        handle.run_upkeep();
    }
}
