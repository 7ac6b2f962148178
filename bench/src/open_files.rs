//! How many files and sockets this process, and the servers it starts, may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Error;

/// Allows at least so many.
///
/// # Errors
/// When the system allows fewer; the message says how to change that.
pub fn allow(least: u64) -> Result<(), Error> {
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
