//! A server that Seqtide is held against: installed below the target folder, run on loopback, ended by its id.

use std::env;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use seqtide_bench::service::Service;
use tempfile::TempDir;

use crate::process::Process;
use crate::server::DEADLINE;

/// A running peer; killed when dropped.
pub struct Peer {
    /// What it is called in figures.
    pub name: &'static str,
    /// How it takes documents and gives them out.
    pub service: Service,
    _process: Process,
    _folder: TempDir,
}

impl Peer {
    /// Starts a program that is to be this service, and waits until it listens. The folder is the peer's own.
    ///
    /// # Panics
    /// When it does not listen within [`DEADLINE`].
    pub(super) fn start(name: &'static str, command: Command, service: Service, folder: TempDir) -> Peer {
        let process = Process::spawn(command);
        let deadline = Instant::now() + DEADLINE;
        while TcpStream::connect(service.address).is_err() {
            if Instant::now() > deadline {
                process.fail(&format!("({name}) does not listen"));
            }
            thread::sleep(Duration::from_millis(20));
        }
        let service = Service { pid: Some(process.child.id()), ..service };
        Peer { name, service, _process: process, _folder: folder }
    }
}

/// A temporary folder for a peer.
pub(crate) fn folder(name: &str) -> TempDir {
    tempfile::Builder::new().prefix(&format!("{name}-")).tempdir().expect("a temporary folder")
}

/// A port of loopback that nobody listens on: peers do not tell which one they took.
pub(crate) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address")
}

/// The folder below the target folder in which this is installed, and stays.
pub(crate) fn home(what: &str) -> PathBuf {
    // From `target/PROFILE/deps/BENCH`, or a test's.
    let bench = env::current_exe().expect("the path of this bench");
    bench.ancestors().nth(3).expect("the target folder").join(what)
}

/// Runs a command that installs a peer.
///
/// # Panics
/// When it fails: without the peer nothing can be compared.
pub(super) fn install(command: &mut Command) {
    eprintln!("installing: {command:?}");
    let status = command.status().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    assert!(status.success(), "{command:?} failed, and without it there is nothing to compare with");
}
