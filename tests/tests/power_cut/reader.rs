//! The program `read-image` as a child: an image that kills or hangs it is a fault found, not the end of the test.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::load;
use crate::promise::Holds;

/// An image is read within this.
const DEADLINE: Duration = Duration::from_secs(60);

/// What the ids of documents begin with that it writes to an image after it has read it.
pub const WRITTEN_AFTERWARDS: &str = "/afterwards-";

/// Reads images, one after the other.
pub struct Reader {
    variables: Vec<(OsString, OsString)>,
    process: Option<Process>,
}

struct Process {
    child: Child,
    answers: Receiver<String>,
}

impl Reader {
    pub fn new() -> Reader {
        Reader::with(&[])
    }

    /// One whose process has these variables.
    pub fn with(variables: &[(&str, &Path)]) -> Reader {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Reader { variables, process: None }
    }

    /// What the image in `folder` holds, or what is wrong with it.
    pub fn read(&mut self, folder: &Path) -> Result<Holds, String> {
        let process = self.process.get_or_insert_with(|| Process::start(&self.variables));
        let answer = process.ask(folder).inspect_err(|_| self.process = None)?;
        let mut answer: Value = serde_json::from_str(&answer).map_err(|error| format!("{error} in {answer}"))?;
        match answer["fault"].as_str() {
            Some(fault) => Err(fault.to_owned()),
            None => serde_json::from_value(answer["holds"].take()).map_err(|error| error.to_string()),
        }
    }
}

impl Process {
    fn start(variables: &[(OsString, OsString)]) -> Process {
        let mut child = Command::new(env!("CARGO_BIN_EXE_read-image"))
            .envs(variables.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("read-image should start");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Process { child, answers }
    }

    fn ask(&mut self, folder: &Path) -> Result<String, String> {
        let question = json!({ "folder": folder, "database": load::DATABASE, "locals": load::local_ids() });
        let asked = writeln!(self.child.stdin.as_mut().expect("a pipe"), "{question}");
        let answer = asked.ok().and_then(|()| self.answers.recv_timeout(DEADLINE).ok());
        answer.ok_or_else(|| format!("the reader died or hung: {:?}", self.child.try_wait()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
