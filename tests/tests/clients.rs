//! Real clients from npm against the real binary: each test runs one script of `tests/clients` with Node.js.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use seqtide_tests::Server;

/// Longest run of one script. A script ends itself earlier; this ends one that can no longer do so.
const DEADLINE: Duration = Duration::from_secs(15 * 60);

#[test]
fn pouchdb_syncs_live_both_ways_with_conflicts() {
    run("pouchdb.mjs");
}

#[test]
fn pouchdb_replicates_what_filters_let_pass() {
    run("pouchdb-filtered.mjs");
}

#[test]
fn eventsource_follows_across_a_restart_without_loss() {
    run("eventsource.mjs");
}

#[test]
fn a_page_notices_a_connection_that_has_died() {
    run("half-open.mjs");
}

#[test]
fn ws_follows_across_a_restart_without_loss() {
    run("ws.mjs");
}

#[test]
fn nano_reads_and_writes() {
    run("nano.mjs");
}

/// Runs a script against a server of its own, restarts the server when it asks for it, and fails with all it
/// printed unless it ends with success.
fn run(name: &str) {
    let mut server = Server::start();
    let mut script = Script::start(name, &server.url());
    while let Some(line) = script.next_line() {
        if line == "RESTART" {
            server.stop();
            server.restart_on_same_port_and_data();
            script.say("RESTARTED");
        }
    }
    let status = script.wait();
    assert!(
        status.success(),
        "{name} failed ({status}):\n{}\nthe server's stderr:\n{}",
        script.output,
        server.stderr()
    );
}

/// A running script; killed when dropped.
struct Script {
    name: String,
    child: Child,
    lines: Receiver<String>,
    output: String,
    deadline: Instant,
}

impl Script {
    fn start(name: &str, server_url: &str) -> Script {
        let mut child = Command::new("node")
            .arg("--test-reporter=spec")
            .arg(name)
            .current_dir(clients_with_packages())
            .env("SEQTIDE_URL", server_url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("these tests need Node.js 20 or later as `node`: {error}"));
        let (sender, lines) = channel();
        send_lines(child.stdout.take().expect("piped"), sender.clone());
        send_lines(child.stderr.take().expect("piped"), sender);
        Script { name: name.to_owned(), child, lines, output: String::new(), deadline: Instant::now() + DEADLINE }
    }

    /// The next line of either output; none when both have ended.
    fn next_line(&mut self) -> Option<String> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => {
                self.output.push_str(&line);
                self.output.push('\n');
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("{} does not end; so far:\n{}", self.name, self.output),
        }
    }

    /// Sends a line. A script that has ended meanwhile is reported by its exit status.
    fn say(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("piped");
        let _ = writeln!(input, "{line}");
    }

    fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("the script's status")
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send_lines(output: impl Read + Send + 'static, lines: Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                break;
            }
        }
    });
}

/// The folder of the scripts, with the packages they import installed.
fn clients_with_packages() -> PathBuf {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients");
    assert!(
        clients.join("node_modules").is_dir(),
        "the npm packages are missing: run `npm ci` in {} (tests/run does it)",
        clients.display()
    );
    clients
}
