//! How many files and sockets this process, and the servers it starts, may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Error;

/// Files that a process has open besides its connections.
const BESIDES: u64 = 200;

/// Allows at least so many connections, here and in the servers that are started from now on.
///
/// # Errors
/// When the system allows fewer open files; the message says how to change that.
pub fn allow_connections(least: usize) -> Result<(), Error> {
    let least = least as u64 + BESIDES;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= least) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(least), maximum };
    setrlimit(Resource::Nofile, raised).map_err(|_| {
        let allowed = maximum.map_or_else(|| "fewer".to_owned(), |maximum| maximum.to_string());
        Error::Usage(format!("{least} open files are needed, {allowed} allowed; raise the limit: ulimit -Hn {least}"))
    })
}
