//! Scripts of `tests/clients`: each is a program for Node.js that tries a real client against the real binary.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::server::Server;

/// Longest run of one script. A script ends itself earlier; this ends one that can no longer do so.
const DEADLINE: Duration = Duration::from_secs(15 * 60);

/// Runs a script against a server of its own.
///
/// # Panics
/// With all that it printed, unless it ends with success.
pub fn run(name: &str) {
    run_against(name, Server::start());
}

/// Runs a script that needs no server.
///
/// # Panics
/// With all that it printed, unless it ends with success.
pub fn run_alone(name: &str) {
    let mut script = Script::start(name, None);
    while script.next_line().is_some() {}
    let status = script.wait();
    assert!(status.success(), "{name} failed ({status}):\n{}", script.output);
}

/// Runs a script against this server, stops and starts the server when it asks for it, and leaves it running.
///
/// # Panics
/// With all that it printed, unless it ends with success.
pub fn run_against(name: &str, mut server: Server) -> Server {
    let mut script = Script::start(name, Some(&server.url()));
    while let Some(line) = script.next_line() {
        match line.as_str() {
            "RESTART" => {
                server.stop();
                server.restart_on_same_port_and_data();
                script.say("RESTARTED");
            }
            "STOP" => {
                server.stop();
                script.say("STOPPED");
            }
            "START" => {
                server.restart_on_same_port_and_data();
                script.say("STARTED");
            }
            _ => {}
        }
    }
    let status = script.wait();
    assert!(
        status.success(),
        "{name} failed ({status}):\n{}\nthe server's stderr:\n{}",
        script.output,
        server.stderr()
    );
    server
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
    fn start(name: &str, server_url: Option<&str>) -> Script {
        let mut child = Command::new("node")
            .arg("--test-reporter=spec")
            .arg(name)
            .current_dir(clients_with_packages())
            .envs(server_url.map(|url| ("SEQTIDE_URL", url)))
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
