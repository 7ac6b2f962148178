//! A Prometheus of Debian's that scrapes a server under test, by the configuration that users are given.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::bench::peer;
use crate::http::{Api, escaped};
use crate::process::Process;
use crate::server::Server;

/// The folder with what users are given.
pub fn given() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboards/prometheus")
}

/// A Prometheus that runs; killed when dropped.
pub struct Prometheus {
    /// A client of it.
    pub api: Api,
    _process: Process,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts one that scrapes this server every second.
    ///
    /// # Panics
    /// When it is not installed, as `tests/run` does, or the configuration is another one than this knows.
    pub fn start(server: &Server) -> Prometheus {
        let (address, folder) = (peer::free_address(), peer::folder("prometheus"));
        let mut configuration = fs::read_to_string(given().join("prometheus.yml")).expect("the configuration");
        let own = server.address().to_string();
        for (from, to) in [("127.0.0.1:5984", own.as_str()), ("_interval: 15s", "_interval: 1s")] {
            assert!(configuration.contains(from), "{from:?} is not in prometheus.yml");
            configuration = configuration.replace(from, to);
        }
        fs::write(folder.path().join("prometheus.yml"), configuration).expect("a configuration");
        fs::copy(given().join("alerts.yml"), folder.path().join("alerts.yml")).expect("the rules");
        let mut command = Command::new(program("prometheus"));
        command.arg("--config.file").arg(folder.path().join("prometheus.yml"));
        command.arg("--storage.tsdb.path").arg(folder.path().join("data"));
        command.arg("--web.listen-address").arg(address.to_string());
        let process = Process::spawn(command);
        Prometheus { api: Api::at(format!("http://{address}")), _process: process, _folder: folder }
    }

    /// What a query gives now: one value a series; none while it does not answer yet.
    ///
    /// # Panics
    /// When the query is wrong.
    pub async fn query(&self, query: &str) -> Vec<f64> {
        let Ok(answer) = self.api.get(&format!("/api/v1/query?query={}", escaped(query))).try_send().await else {
            return Vec::new();
        };
        let answer: Value = serde_json::from_str(answer.text()).unwrap_or_default();
        assert_ne!(answer["status"], "error", "{query}: {answer}");
        let series = answer["data"]["result"].as_array().cloned().unwrap_or_default();
        let value = |series: &Value| series["value"][1].as_str().and_then(|value| value.parse().ok());
        series.iter().filter_map(value).collect()
    }
}

/// A program of Debian's package, as `tests/run` has unpacked it.
///
/// # Panics
/// When it is not there.
pub fn program(name: &str) -> PathBuf {
    let program = peer::home("prometheus").join("usr/bin").join(name);
    assert!(program.is_file(), "{} is missing: tests/run unpacks it", program.display());
    program
}
