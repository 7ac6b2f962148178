//! The real server as a child process on a temporary data folder.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::process::Process;

/// How long a server may take to listen, or to end once told to.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// What a server is started with. Finish it with [`Launch::start`] or [`Launch::run_to_exit`].
#[derive(Clone)]
pub struct Launch {
    binary: PathBuf,
    verb: &'static str,
    data: DataDir,
    listen: SocketAddr,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    has_own_group: bool,
}

/// The data folder, removed with the last launch or server that uses it unless it was given by path.
#[derive(Clone)]
enum DataDir {
    Fresh(Arc<TempDir>),
    Given(PathBuf),
}

impl DataDir {
    fn path(&self) -> &Path {
        match self {
            DataDir::Fresh(folder) => folder.path(),
            DataDir::Given(path) => path,
        }
    }
}

impl Launch {
    /// Adds a command-line argument after `seqtide serve --listen … --data …`.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Launch {
        self.args.push(arg.into());
        self
    }

    /// Sets an environment variable of the server.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Launch {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Starts this binary instead of the one that was built.
    #[must_use]
    pub fn binary(mut self, path: impl Into<PathBuf>) -> Launch {
        self.binary = path.into();
        self
    }

    /// Runs `seqtide demo` instead of `seqtide serve`.
    #[must_use]
    pub fn demo(mut self) -> Launch {
        self.verb = "demo";
        self
    }

    /// Serves this folder instead of a fresh temporary one.
    #[must_use]
    pub fn data_dir(mut self, path: impl Into<PathBuf>) -> Launch {
        self.data = DataDir::Given(path.into());
        self
    }

    /// Listens here instead of on a free port of loopback.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Launch {
        self.listen = address;
        self
    }

    /// Makes it a process group of its own, as a shell with a terminal does.
    #[must_use]
    pub fn own_group(mut self) -> Launch {
        self.has_own_group = true;
        self
    }

    /// Starts the server and waits until it listens.
    ///
    /// # Panics
    /// When it does not listen within [`DEADLINE`]; the message carries its standard error.
    pub fn start(self) -> Server {
        let (process, address) = self.spawn_listening();
        Server { launch: self, process, address }
    }

    /// Starts the server expecting that it ends by itself.
    ///
    /// # Panics
    /// When it still runs after [`DEADLINE`].
    pub fn run_to_exit(self) -> Exit {
        let mut process = Process::spawn(self.command());
        let status = process.wait();
        Exit { status, stdout: process.stdout.all(), stderr: process.stderr() }
    }

    fn command(&self) -> Command {
        let mut command = command_without_settings(&self.binary);
        command.arg(self.verb).arg("--listen").arg(self.listen.to_string()).arg("--data").arg(self.data.path());
        // Tests that look at how feeds are drained set the flag, which wins.
        command.env("SEQTIDE_FEEDS_DRAIN_MS", "0");
        command.args(&self.args).envs(self.env.iter().cloned());
        if self.has_own_group {
            command.process_group(0);
        }
        command
    }

    fn spawn_listening(&self) -> (Process, SocketAddr) {
        let mut process = Process::spawn(self.command());
        let address = process.wait_until_listening();
        (process, address)
    }
}

/// How a server that was expected to end by itself ended.
#[derive(Debug)]
pub struct Exit {
    /// The exit status.
    pub status: ExitStatus,
    /// Standard output, by line.
    pub stdout: Vec<String>,
    /// Standard error (its last 64 kB).
    pub stderr: String,
}

/// A server that listens; killed when dropped.
pub struct Server {
    launch: Launch,
    process: Process,
    address: SocketAddr,
}

impl Server {
    /// A server on a fresh data folder and a free port of loopback.
    pub fn start() -> Server {
        Server::launch().start()
    }

    /// The same, to be given further arguments before it starts.
    pub fn launch() -> Launch {
        let folder = tempfile::Builder::new().prefix("seqtide-test-").tempdir().expect("a temporary folder");
        Launch {
            binary: binary(),
            verb: "serve",
            data: DataDir::Fresh(Arc::new(folder)),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            args: Vec::new(),
            env: Vec::new(),
            has_own_group: false,
        }
    }

    /// Where it listens, as `http://127.0.0.1:PORT` without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The data folder it serves.
    pub fn data_dir(&self) -> &Path {
        self.launch.data.path()
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// Waits for a line of standard output that contains `text`.
    ///
    /// # Panics
    /// When none has come within [`DEADLINE`].
    pub fn stdout_line(&self, text: &str) -> String {
        self.process
            .stdout
            .wait_for(text, DEADLINE)
            .unwrap_or_else(|| self.process.fail(&format!("never printed {text:?}")))
    }

    /// The lines of standard output so far.
    pub fn stdout(&self) -> Vec<String> {
        self.process.stdout.all()
    }

    /// Standard error so far (its last 64 kB).
    pub fn stderr(&self) -> String {
        self.process.stderr()
    }

    /// Standard error once it has `text`: what is written before an answer may be read after it.
    ///
    /// # Panics
    /// When it has not within [`DEADLINE`].
    pub async fn stderr_with(&self, text: &str) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let stderr = self.stderr();
            if stderr.contains(text) {
                return stderr;
            }
            assert!(Instant::now() < deadline, "{text:?} is never logged: {stderr}");
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Sends SIGTERM and returns at once.
    pub fn terminate(&self) {
        self.process.signal(Signal::TERM);
    }

    /// Sends SIGINT to all of its process group, as a terminal does; it was launched with [`Launch::own_group`].
    pub fn interrupt_group(&self) {
        self.process.signal_group(Signal::INT);
    }

    /// Waits for the process to end.
    ///
    /// # Panics
    /// When it still runs after [`DEADLINE`].
    pub fn wait(&mut self) -> ExitStatus {
        self.process.wait()
    }

    /// Ends the server with SIGTERM and waits for it.
    ///
    /// # Panics
    /// When it does not end within [`DEADLINE`] with exit code 0.
    pub fn stop(&mut self) {
        self.terminate();
        let status = self.wait();
        assert_eq!(status.code(), Some(0), "SIGTERM should end the server with code 0: {}", self.process.report());
    }

    /// Ends the server with SIGKILL and waits for it.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts the server again where it was, on the data it left. Call [`Server::stop`] or [`Server::kill`] first.
    ///
    /// # Panics
    /// When it does not listen within [`DEADLINE`].
    pub fn restart_on_same_port_and_data(&mut self) {
        self.process.kill();
        self.launch.listen = self.address;
        (self.process, self.address) = self.launch.spawn_listening();
    }
}

/// A command for the built binary, without any `SEQTIDE_…` variable of this process.
///
/// # Panics
/// When the binary is not built.
pub fn seqtide_command() -> Command {
    command_without_settings(&binary())
}

/// The same in a shell that has set a limit of open files, as its `ulimit` takes it.
///
/// # Panics
/// When the binary is not built.
pub fn seqtide_command_under(files: &str) -> Command {
    let mut shell = command_without_settings(Path::new("sh"));
    shell.arg("-c").arg(format!("ulimit {files} && exec \"$0\" \"$@\"")).arg(binary());
    shell
}

/// The same behind a program that becomes it, such as `env`, with that one's arguments.
///
/// # Panics
/// When the binary is not built.
pub fn seqtide_command_behind(program: &str, args: &[&str]) -> Command {
    let mut command = command_without_settings(Path::new(program));
    command.args(args).arg(binary());
    command
}

fn command_without_settings(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SEQTIDE_")) {
        command.env_remove(name);
    }
    command
}

/// Asserts that what is on disk holds every invariant: `seqtide check` of a data folder, also of one that is served.
///
/// # Panics
/// When anything is wrong with it.
pub fn assert_clean(data: &Path) {
    let checked = seqtide_command().arg("check").arg(data).output().expect("the binary runs");
    let report = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{report}{}", String::from_utf8_lossy(&checked.stderr));
    assert!(report.contains(": ok ("), "{report}");
}

/// The binary: `SEQTIDE_BIN`, or `seqtide` beside this test's build.
///
/// # Panics
/// When it is not built.
pub fn binary() -> PathBuf {
    let path = std::env::var_os("SEQTIDE_BIN").map_or_else(built_beside_this_test, PathBuf::from);
    assert!(
        path.is_file(),
        "{} is not there: build it first (`cargo build --bins`, for a bench with `--release`)",
        path.display()
    );
    path
}

/// `target/<profile>/seqtide` as seen from `target/<profile>/deps/<test>`.
fn built_beside_this_test() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let profile = test.parent().and_then(Path::parent).expect("target/<profile>");
    profile.join(format!("seqtide{}", std::env::consts::EXE_SUFFIX))
}
