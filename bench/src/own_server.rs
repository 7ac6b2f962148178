//! A Seqtide that a load starts for itself, on a temporary data folder and a free port of loopback.

use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::Error;

/// How long a server may take to end once it is asked to, and how often it is looked whether it has.
const ENDING_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What stands in front of the address in the line that a server prints.
const LISTENING: &str = "listening on http://";

/// A server that is killed when this is dropped, and ends by itself when this process does.
pub struct OwnServer {
    /// Where it listens.
    pub address: SocketAddr,
    running: Running,
}

/// Its process, and its data for as long as that runs.
struct Running {
    process: Child,
    _data: TempDir,
}

impl OwnServer {
    /// Starts this program as a server, with the settings that are in the environment, and waits until it listens.
    ///
    /// # Errors
    /// When it does not listen.
    pub async fn start(program: &Path) -> Result<OwnServer, Error> {
        let data = tempfile::Builder::new().prefix("seqtide-bench-").tempdir();
        let data = data.map_err(|source| Error::io("a temporary folder", source))?;
        let mut command = Command::new(program);
        command.args(["serve", "--until-stdin-ends", "--listen", "127.0.0.1:0", "--data"]).arg(data.path());
        // Its standard input ends with this process, however that ends.
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let process = command.spawn().map_err(|source| Error::io(program.display().to_string(), source))?;
        let mut running = Running { process, _data: data };
        let address = match running.process.stdout.take() {
            Some(stdout) => listening(stdout).await,
            None => None,
        };
        let address = address.ok_or_else(|| Error::Protocol(format!("{} serve does not listen", program.display())))?;
        Ok(OwnServer { address, running })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.running.process.id()
    }

    /// Asks it to end in order, as it has to where it counts what it does, to be built by that. It is killed where that
    /// takes longer than half a minute, or is interrupted.
    pub async fn end(mut self, interrupted: impl Future) {
        let process = &mut self.running.process;
        // The child is not reaped before this, so its id belongs to nobody else.
        let _ = kill_process(Pid::from_child(process), Signal::TERM);
        let ended = async {
            while let Ok(None) = process.try_wait() {
                sleep(LOOK_EVERY).await;
            }
        };
        tokio::select! {
            _ = timeout(ENDING_MAX, ended) => {}
            _ = interrupted => {}
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A server that hangs ends, too; nobody will read its data.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until the server says where it listens; the rest is read and forgotten, so that it never waits for a reader.
async fn listening(stdout: ChildStdout) -> Option<SocketAddr> {
    let (found, line) = oneshot::channel();
    thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        let _ = found.send(stdout.by_ref().lines().map_while(Result::ok).find(|line| line.contains(LISTENING)));
        let _ = io::copy(&mut stdout, &mut io::sink());
    });
    line.await.ok()??.split_once(LISTENING)?.1.trim().trim_end_matches('/').parse().ok()
}
