//! A Seqtide that a load starts for itself, on a temporary data folder and a free port of loopback.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::Error;

/// What stands in front of the address in the line that a server prints.
const LISTENING: &str = "listening on http://";

/// A server that is ended when this is dropped.
pub struct OwnServer {
    /// Where it listens.
    pub address: SocketAddr,
    process: Child,
    _data: TempDir,
}

impl OwnServer {
    /// Starts this program as a server, with the settings that are in the environment.
    ///
    /// # Errors
    /// When it does not listen.
    pub fn start(program: &Path) -> Result<OwnServer, Error> {
        let data = tempfile::Builder::new().prefix("seqtide-bench-").tempdir();
        let data = data.map_err(|source| Error::io("a temporary folder", source))?;
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|source| Error::io(program.display().to_string(), source))?;
        let found = process.stdout.take().and_then(listening);
        match found {
            Some(address) => Ok(OwnServer { address, process, _data: data }),
            None => {
                let _ = process.kill();
                let _ = process.wait();
                Err(Error::Protocol(format!("{} serve does not listen", program.display())))
            }
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        // The child is not reaped before this, so its id belongs to nobody else.
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let _ = self.process.wait();
    }
}

/// Reads until the server says where it listens; the rest is read and forgotten, so that it never waits for a reader.
fn listening(stdout: ChildStdout) -> Option<SocketAddr> {
    let mut stdout = BufReader::new(stdout);
    let line = stdout.by_ref().lines().map_while(Result::ok).find(|line| line.contains(LISTENING))?;
    thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    line.split_once(LISTENING)?.1.trim().trim_end_matches('/').parse().ok()
}
