//! A child process whose output is kept as it comes.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::server::DEADLINE;

/// What is found, looked for again and again.
///
/// # Panics
/// When it is not found in time.
pub fn eventually<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Bytes of standard error kept for failure messages.
const STDERR_KEPT: usize = 64 * 1024;

/// Lines of standard output kept; the banner is a handful.
const STDOUT_LINES_KEPT: usize = 1000;

/// The child with what it printed.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) stdout: Arc<Lines>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    stderr_reader: JoinHandle<()>,
    ended: Option<ExitStatus>,
}

impl Process {
    pub(crate) fn spawn(mut command: Command) -> Process {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the server's process");
        let stdout = Arc::new(Lines::default());
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        keep_lines(child.stdout.take().expect("piped"), Arc::clone(&stdout));
        let stderr_reader = keep_tail(child.stderr.take().expect("piped"), Arc::clone(&stderr));
        Process { child, stdout, stderr, stderr_reader, ended: None }
    }

    pub(crate) fn wait_until_listening(&mut self) -> SocketAddr {
        let line =
            self.stdout.wait_for("listening on http://", DEADLINE).unwrap_or_else(|| self.fail("does not listen"));
        let (_, address) = line.split_once("http://").expect("the line contains it");
        address.trim().trim_end_matches('/').parse().unwrap_or_else(|_| self.fail(&format!("no address in {line:?}")))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            // The child is not reaped before `ended` is set, so its id cannot belong to anyone else.
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
    }

    /// As [`Process::signal`], to the process group that the child leads.
    pub(crate) fn signal_group(&self, signal: Signal) {
        if self.ended.is_none() {
            let _ = kill_process_group(Pid::from_child(&self.child), signal);
        }
    }

    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait();
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + DEADLINE;
        while self.ended.is_none() {
            self.ended = self.child.try_wait().expect("the server's status");
            assert!(Instant::now() < deadline, "the server should have ended: {}", self.report());
            thread::sleep(Duration::from_millis(2));
        }
        self.stdout.wait_for_end(DEADLINE);
        // The process has ended; its last words may still be in the pipe.
        while !self.stderr_reader.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
        self.ended.expect("just set")
    }

    pub(crate) fn stderr(&self) -> String {
        let kept: Vec<u8> = self.stderr.lock().expect("no panic holds it").iter().copied().collect();
        String::from_utf8_lossy(&kept).into_owned()
    }

    pub(crate) fn report(&self) -> String {
        format!("stdout:\n{}\nstderr:\n{}", self.stdout.all().join("\n"), self.stderr())
    }

    pub(crate) fn fail(&self, what: &str) -> ! {
        panic!("the server {what}; {}", self.report())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended.is_none() {
            let before = self.child.try_wait();
            let _ = self.child.kill();
            let _ = self.child.wait();
            // A failed test says what the program had to say, and whether it had ended by itself.
            if thread::panicking() {
                eprintln!("a program of this test, {before:?} when the test failed; {}", self.report());
            }
        }
    }
}

/// Lines as they arrive from the child.
#[derive(Default)]
pub(crate) struct Lines {
    state: Mutex<LinesSoFar>,
    changed: Condvar,
}

#[derive(Default)]
struct LinesSoFar {
    lines: Vec<String>,
    ended: bool,
}

impl Lines {
    pub(crate) fn all(&self) -> Vec<String> {
        self.state.lock().expect("no panic holds it").lines.clone()
    }

    /// The first line with `text` in it; none when the output ends or the deadline passes without one.
    pub(crate) fn wait_for(&self, text: &str, deadline: Duration) -> Option<String> {
        let found = |so_far: &LinesSoFar| so_far.lines.iter().find(|line| line.contains(text)).cloned();
        let state = self.state.lock().expect("no panic holds it");
        let waiting = |so_far: &mut LinesSoFar| !so_far.ended && found(so_far).is_none();
        let (state, _) = self.changed.wait_timeout_while(state, deadline, waiting).expect("no panic holds it");
        found(&state)
    }

    fn wait_for_end(&self, deadline: Duration) {
        let state = self.state.lock().expect("no panic holds it");
        let _ = self.changed.wait_timeout_while(state, deadline, |so_far| !so_far.ended);
    }

    fn update(&self, change: impl FnOnce(&mut LinesSoFar)) {
        change(&mut self.state.lock().expect("no panic holds it"));
        self.changed.notify_all();
    }
}

fn keep_lines(output: impl Read + Send + 'static, lines: Arc<Lines>) {
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            lines.update(|so_far| {
                if so_far.lines.len() < STDOUT_LINES_KEPT {
                    so_far.lines.push(line);
                }
            });
        }
        lines.update(|so_far| so_far.ended = true);
    });
}

fn keep_tail(mut output: impl Read + Send + 'static, tail: Arc<Mutex<VecDeque<u8>>>) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = output.read(&mut piece) {
            let mut tail = tail.lock().expect("no panic holds it");
            tail.extend(&piece[..length]);
            let excess = tail.len().saturating_sub(STDERR_KEPT);
            tail.drain(..excess);
        }
    })
}
