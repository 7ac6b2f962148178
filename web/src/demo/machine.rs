//! What this machine does: processor, memory, disk, network and processes, as Linux tells it under `/proc`.
//!
//! Source: proc(5).

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// What [`Machine::read`] tells of, in its order.
pub const IDS: [&str; 5] = ["cpu", "memory", "disk", "network", "processes"];

/// The machine, and what its counters stood at when they were read last.
pub struct Machine {
    folder: PathBuf,
    before: Counters,
}

/// What only ever grows.
struct Counters {
    at: Instant,
    /// The processor as a whole first, then each core.
    processors: Vec<Ticks>,
    /// KiB read from and written to disks.
    paged: [u64; 2],
    /// By interface: bytes received and sent.
    network: Vec<(String, [u64; 2])>,
}

#[derive(Clone, Copy)]
struct Ticks {
    busy: u64,
    all: u64,
}

impl Machine {
    /// A machine whose disk is the one with this folder.
    pub fn new(folder: PathBuf) -> io::Result<Machine> {
        Ok(Machine { folder, before: Counters::now()? })
    }

    /// The figures of now, and the rates since the reading before.
    pub fn read(&mut self) -> io::Result<[Value; 5]> {
        let now = Counters::now()?;
        let before = std::mem::replace(&mut self.before, now);
        let now = &self.before;
        let seconds = now.at.duration_since(before.at).as_secs_f64().max(0.001);
        let rate = |after: u64, before: u64| (after.saturating_sub(before) as f64 / seconds).round();
        let load = fs::read_to_string("/proc/loadavg")?;
        let mut load = load.split_whitespace();
        let averages: Vec<f64> = load.by_ref().take(3).filter_map(|number| number.parse().ok()).collect();
        let (running, threads) = load.next().and_then(|pair| pair.split_once('/')).unwrap_or_default();

        let shares: Vec<f64> =
            now.processors.iter().zip(&before.processors).map(|(now, then)| now.share(*then)).collect();
        let (whole, cores) = shares.split_first().unwrap_or((&0.0, &[]));
        let memory = memory(&fs::read_to_string("/proc/meminfo")?);
        let disk = rustix::fs::statvfs(&self.folder)?;
        let interfaces: serde_json::Map<String, Value> = now
            .network
            .iter()
            .map(|(name, [received, sent])| {
                let known =
                    before.network.iter().find(|(known, _)| known == name).map_or([*received, *sent], |(_, was)| *was);
                let rates = json!({
                    "received_bytes_per_second": rate(*received, known[0]),
                    "sent_bytes_per_second": rate(*sent, known[1]),
                });
                (name.clone(), rates)
            })
            .collect();
        let total = |member: &str| interfaces.values().filter_map(|rates| rates[member].as_f64()).sum::<f64>();
        let figures = [
            json!({ "percent": whole, "cores_percent": cores, "load": averages }),
            memory,
            json!({
                "total_bytes": disk.f_blocks * disk.f_frsize,
                "free_bytes": disk.f_bavail * disk.f_frsize,
                "read_bytes_per_second": rate(now.paged[0], before.paged[0]) * 1024.0,
                "written_bytes_per_second": rate(now.paged[1], before.paged[1]) * 1024.0,
            }),
            json!({
                "received_bytes_per_second": total("received_bytes_per_second"),
                "sent_bytes_per_second": total("sent_bytes_per_second"),
                "interfaces": interfaces,
            }),
            json!({ "processes": processes()?, "threads": number(threads), "running": number(running) }),
        ];
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |now| now.as_millis() as f64 / 1000.0);
        Ok(figures.map(|mut figures| {
            figures["at"] = Value::from(at);
            figures
        }))
    }
}

impl Counters {
    fn now() -> io::Result<Counters> {
        let read = |file: &str| fs::read_to_string(format!("/proc/{file}"));
        Ok(Counters {
            at: Instant::now(),
            processors: processors(&read("stat")?),
            paged: ["pgpgin", "pgpgout"].map({
                let counts = read("vmstat")?;
                move |name| named(&counts, name)
            }),
            network: network(&read("net/dev")?),
        })
    }
}

impl Ticks {
    /// In percent, with one digit behind the point.
    fn share(self, then: Ticks) -> f64 {
        let all = self.all.saturating_sub(then.all).max(1);
        (self.busy.saturating_sub(then.busy) as f64 * 1000.0 / all as f64).round() / 10.0
    }
}

/// Lines `cpu…` of `/proc/stat`: user, nice, system, idle, iowait, and more that is busy. What guests take is in
/// `user`.
fn processors(stat: &str) -> Vec<Ticks> {
    let line = |line: &str| {
        let ticks: Vec<u64> = line
            .strip_prefix("cpu")?
            .split_whitespace()
            .skip(usize::from(!line.starts_with("cpu ")))
            .map(number)
            .collect();
        let all = ticks.iter().take(8).sum();
        let idle = ticks.iter().skip(3).take(2).sum::<u64>();
        Some(Ticks { busy: all - idle, all })
    };
    stat.lines().map_while(line).collect()
}

/// `/proc/meminfo`, whose figures are in KiB.
fn memory(meminfo: &str) -> Value {
    let bytes = |name: &str| named(meminfo, &format!("{name}:")) * 1024;
    let (total, available) = (bytes("MemTotal"), bytes("MemAvailable"));
    json!({
        "total_bytes": total,
        "used_bytes": total.saturating_sub(available),
        "available_bytes": available,
        "cached_bytes": bytes("Cached"),
        "swap_used_bytes": bytes("SwapTotal").saturating_sub(bytes("SwapFree")),
    })
}

/// `/proc/net/dev`: received bytes are an interface's first number, sent ones its ninth.
fn network(dev: &str) -> Vec<(String, [u64; 2])> {
    let interface = |line: &str| {
        let (name, counts) = line.split_once(':')?;
        let counts: Vec<u64> = counts.split_whitespace().map(number).collect();
        Some((name.trim().to_owned(), [*counts.first()?, *counts.get(8)?]))
    };
    dev.lines().filter_map(interface).collect()
}

/// Processes are the folders of `/proc` that are called by a number.
fn processes() -> io::Result<usize> {
    let is_one = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
    Ok(fs::read_dir("/proc")?.filter_map(Result::ok).filter(is_one).count())
}

/// The number behind a name at the beginning of a line; 0 where there is none.
fn named(text: &str, name: &str) -> u64 {
    let value = |line: &str| line.strip_prefix(name)?.split_whitespace().next().map(number);
    text.lines().find_map(value).unwrap_or(0)
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_busy_when_they_neither_idle_nor_wait() {
        let then = processors("cpu  10 0 10 70 10 0 0 0 5 0\ncpu0 10 0 10 70 10 0 0 0 5 0\nintr 1 2 3\n");
        let now = processors("cpu  20 0 20 140 20 0 0 0 9 0\ncpu0 25 0 15 140 20 0 0 0 9 0\nintr 1 2 3\n");
        assert_eq!(then.len(), 2);
        let shares: Vec<f64> = now.iter().zip(&then).map(|(now, then)| now.share(*then)).collect();
        assert_eq!(shares, [20.0, 20.0]);
    }

    #[test]
    fn memory_is_told_in_bytes() {
        let told = memory(
            "MemTotal:       100 kB\nMemFree: 5 kB\nMemAvailable:   40 kB\nCached: 7 kB\nSwapTotal: 9 kB\nSwapFree: 9 kB\n",
        );
        assert_eq!(told["used_bytes"], 60 * 1024);
        assert_eq!(told["cached_bytes"], 7 * 1024);
        assert_eq!(told["swap_used_bytes"], 0);
    }

    #[test]
    fn interfaces_are_told_apart() {
        let dev = "Inter-| Receive | Transmit\n face |bytes packets\n    lo: 100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n  eth0:7 1 0 0 0 0 0 0 8 1 0 0 0 0 0 0\n";
        assert_eq!(network(dev), [("lo".to_owned(), [100, 200]), ("eth0".to_owned(), [7, 8])]);
    }

    #[test]
    fn this_machine_can_be_read() {
        let mut machine = Machine::new(std::env::temp_dir()).unwrap();
        let [cpu, memory, disk, _, processes] = machine.read().unwrap();
        assert!(!cpu["cores_percent"].as_array().unwrap().is_empty(), "{cpu}");
        assert!(memory["total_bytes"].as_u64().unwrap() > 0, "{memory}");
        assert!(disk["total_bytes"].as_u64().unwrap() > 0, "{disk}");
        assert!(processes["processes"].as_u64().unwrap() > 0, "{processes}");
    }
}
