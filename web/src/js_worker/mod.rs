//! `seqtide js-worker`: a process that runs the functions of design documents for a server.
//!
//! It reads requests and writes answers (`seqtide::functions::protocol`), and does nothing else: the engine it runs has
//! no files, no network and no timers, and the process takes from itself what it does not need before the first
//! function runs.

mod confine;
mod sandbox;

use std::collections::HashMap;
use std::io::{stdin, stdout};
use std::process::ExitCode;
use std::time::Duration;

use seqtide::functions::protocol::{Answer, Call, DESIGNS_MAX, Request, read_frame, write_frame};
use serde_json::value::RawValue;

use self::sandbox::Sandbox;

/// What bounds a worker.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Memory of one design document's functions, in bytes.
    pub memory_bytes_max: usize,
    /// The longest one batch may take. Who asks kills the process a little later, should it not notice.
    pub batch_timeout: Duration,
}

impl Limits {
    /// The memory that an engine may keep while it rests: all of them together keep no more than the one that runs may.
    fn resting_bytes_max(self) -> usize {
        self.memory_bytes_max / DESIGNS_MAX
    }
}

/// Answers requests until the input ends.
pub fn run(limits: Limits) -> ExitCode {
    match confine::confine(limits.memory_bytes_max).and_then(|()| serve(limits)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("seqtide js-worker: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(limits: Limits) -> std::io::Result<()> {
    let (mut input, mut output) = (stdin().lock(), stdout().lock());
    let mut designs: HashMap<String, Design> = HashMap::new();
    while let Some(request) = read_frame::<Request>(&mut input)? {
        let answer = answer(&mut designs, request, limits);
        write_frame(&mut output, &answer)?;
    }
    Ok(())
}

/// A design document, and its functions' engine while they keep little.
struct Design {
    source: Box<RawValue>,
    sandbox: Option<Sandbox>,
}

impl Design {
    fn call(&mut self, call: &Call, limits: Limits) -> Answer {
        let mut sandbox = match self.sandbox.take() {
            Some(sandbox) => sandbox,
            None => match Sandbox::new(limits) {
                Ok(sandbox) => sandbox,
                Err(error) => return Answer::Stopped(format!("there is no engine for it: {error}")),
            },
        };
        let answer = sandbox.call(self.source.get(), call);
        self.sandbox = (sandbox.memory_bytes() <= limits.resting_bytes_max()).then_some(sandbox);
        answer
    }
}

fn answer(designs: &mut HashMap<String, Design>, request: Request, limits: Limits) -> Answer {
    let Request { design, source, call } = request;
    if let Some(source) = source {
        if designs.len() >= DESIGNS_MAX {
            designs.clear();
        }
        designs.insert(design.clone(), Design { source, sandbox: None });
    }
    match designs.get_mut(&design) {
        Some(design) => design.call(&call, limits),
        None => Answer::Stopped("its design document was not sent".to_owned()),
    }
}
