//! A worker process, seen from the engine.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::Instant;

use super::protocol::{Answer, DESIGNS_MAX, Request, body_length, frame};

/// How to start a worker: a program that speaks [`protocol`](super::protocol) on its standard input and output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl WorkerCommand {
    /// A program, started with these arguments and an empty environment.
    pub fn new(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> WorkerCommand {
        WorkerCommand { program: program.into(), arguments: arguments.into_iter().map(Into::into).collect() }
    }
}

/// A process that runs functions. It is killed when it is dropped.
pub(super) struct Worker {
    process: Child,
    input: ChildStdin,
    output: ChildStdout,
    /// The design documents it has been given.
    designs: Vec<String>,
    /// When it answered last.
    pub used: Instant,
}

impl Worker {
    /// Starts one.
    pub fn start(command: &WorkerCommand) -> io::Result<Worker> {
        let mut process = Command::new(&command.program)
            .args(&command.arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            // Signals of a terminal ask this process to end; what it has to finish until then needs its workers.
            .process_group(0)
            .spawn()?;
        let missing = || io::Error::other("the worker has no pipes");
        let input = process.stdin.take().ok_or_else(missing)?;
        let output = process.stdout.take().ok_or_else(missing)?;
        Ok(Worker { process, input, output, designs: Vec::new(), used: Instant::now() })
    }

    /// Whether the process still runs.
    pub fn lives(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Whether it has a design document compiled.
    pub fn knows(&self, design: &str) -> bool {
        self.designs.iter().any(|known| known == design)
    }

    /// Asks and waits for the answer. After an error, or when this is given up, the worker is of no use any more.
    pub async fn ask(&mut self, request: &Request) -> io::Result<Answer> {
        if request.source.is_some() {
            if self.designs.len() >= DESIGNS_MAX {
                self.designs.clear();
            }
            self.designs.push(request.design.clone());
        }
        let frame = frame(request)?;
        self.input.write_all(&frame).await?;
        self.input.flush().await?;
        let mut head = [0; 4];
        self.output.read_exact(&mut head).await?;
        let mut body = Vec::new();
        let length = body_length(head)?;
        // What it says it will send is not what it sends: memory follows the bytes that come.
        (&mut self.output).take(length as u64).read_to_end(&mut body).await?;
        if body.len() < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.used = Instant::now();
        Ok(serde_json::from_slice(&body)?)
    }
}
