//! What can go wrong with a load.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Why a load was not measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused something.
    #[error("{what}: {source}")]
    Io {
        /// What was refused.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// Nobody listens there.
    #[error("cannot connect to {address}: {source}; is a server listening there?")]
    Connect {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A request was refused.
    #[error("{request} was answered with {status}: {body}")]
    Refused {
        /// Its first line.
        request: String,
        /// The status of the answer.
        status: u16,
        /// The body of the answer.
        body: String,
    },
    /// The server said something that cannot be read, or ended the connection.
    #[error("{0}")]
    Protocol(String),
    /// The server did not go on.
    #[error("{what} took longer than {} s", .limit.as_secs())]
    Late {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
    },
    /// Whoever asked for the load does not want to wait any more; what is not done, or not known, for that.
    #[error("interrupted: {0}")]
    Interrupted(String),
    /// A load was over before its first request.
    #[error("nothing was measured: no request was sent in that time")]
    Nothing,
    /// Something is asked for that cannot be done.
    #[error("{0}")]
    Usage(String),
}

impl Error {
    /// An error of the system, with what was being done.
    pub fn io(what: impl Into<String>, source: io::Error) -> Error {
        Error::Io { what: what.into(), source }
    }
}
