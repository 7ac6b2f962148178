//! What a server's process takes of the machine, as `/proc` tells it.

use std::fs;
use std::time::Duration;

use tokio::time::sleep;

use crate::Error;

/// How often memory is looked at while a load goes on.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A process on this machine.
#[derive(Debug, Clone, Copy)]
pub struct Process(pub u32);

impl Process {
    /// The processor time it has taken so far, its kernel's part included, in seconds.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn cpu_secs(self) -> Result<f64, Error> {
        let stat = self.read("stat")?;
        // The name, in parentheses, may have anything in it; then come the state and ten other fields.
        let fields = stat.rsplit_once(')').map(|(_, fields)| fields.split_whitespace().skip(11).take(2));
        let ticks: Option<u64> = fields.and_then(|fields| fields.map(|field| field.parse::<u64>().ok()).sum());
        let ticks = ticks.ok_or_else(|| self.unreadable("stat"))?;
        Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// The memory it has that no file stands behind and that is not given back, in bytes: pages of a mapped database do
    /// not count.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn anonymous_bytes(self) -> Result<u64, Error> {
        let status = self.read("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        Ok(kib.ok_or_else(|| self.unreadable("status"))? * 1024)
    }

    fn read(self, file: &str) -> Result<String, Error> {
        let path = format!("/proc/{}/{file}", self.0);
        fs::read_to_string(&path).map_err(|source| Error::io(path, source))
    }

    fn unreadable(self, file: &str) -> Error {
        Error::Usage(format!("/proc/{}/{file} cannot be read", self.0))
    }
}

/// What a server's process took during a load.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// Processor time, its kernel's part included.
    pub cpu_secs: f64,
    /// The most anonymous memory that was seen.
    pub anonymous_bytes_max: u64,
}

/// Does a load; what it came to, and what the process took meanwhile.
///
/// # Errors
/// When the load fails, or there is no such process.
pub async fn watched<T>(
    process: Option<Process>,
    load: impl Future<Output = Result<T, Error>>,
) -> Result<(T, Option<Usage>), Error> {
    let Some(process) = process else { return Ok((load.await?, None)) };
    let cpu_secs_before = process.cpu_secs()?;
    let mut anonymous_bytes_max = process.anonymous_bytes()?;
    let mut look = async || -> Result<(), Error> {
        loop {
            anonymous_bytes_max = anonymous_bytes_max.max(process.anonymous_bytes()?);
            sleep(LOOK_EVERY).await;
        }
    };
    let done = tokio::select! {
        done = load => done?,
        gone = look() => return Err(gone.err().unwrap_or_else(|| process.unreadable("status"))),
    };
    let anonymous_bytes_max = anonymous_bytes_max.max(process.anonymous_bytes()?);
    Ok((done, Some(Usage { cpu_secs: process.cpu_secs()? - cpu_secs_before, anonymous_bytes_max })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_measured_and_a_missing_one_is_an_error() {
        let this = Process(std::process::id());
        let memory = this.anonymous_bytes().unwrap();
        assert!((1 << 16..1 << 40).contains(&memory), "{memory}");
        assert!(this.cpu_secs().unwrap() >= 0.0);
        assert!(Process(u32::MAX).cpu_secs().is_err());
    }
}
