//! How many files and sockets this process, and the servers it starts, may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Allows at least so many.
///
/// # Panics
/// When the system allows fewer; the message says how to change that.
pub fn allow(least: u64) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= least) {
        return;
    }
    let raised = Rlimit { current: Some(least), maximum };
    let allowed = setrlimit(Resource::Nofile, raised);
    assert!(
        allowed.is_ok(),
        "{least} open files are needed, {maximum:?} allowed; raise the hard limit: ulimit -Hn {least}"
    );
}
