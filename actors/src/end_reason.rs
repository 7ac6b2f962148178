//! Why a feed ends: who writes, looks after the server, or deletes a database ends feeds as they do themselves.

/// Why a feed ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// It has given as many rows as were asked for.
    Limit,
    /// It has come to the place up to which it was asked for.
    Until,
    /// It has given all there was when it was opened, and was not to wait for more.
    CaughtUp,
    /// Nothing changed for as long as it was to wait.
    Timeout,
    /// Its database was deleted.
    Deleted,
    /// The server stops; or its database was closed, and is opened again when it is wanted.
    Shutdown,
    /// Someone who looks after the server has ended it.
    Revoked,
}

impl EndReason {
    /// The word for it on the wire.
    pub fn name(self) -> &'static str {
        match self {
            EndReason::Limit => "limit",
            EndReason::Until => "until",
            EndReason::CaughtUp => "caught-up",
            EndReason::Timeout => "timeout",
            EndReason::Deleted => "deleted",
            EndReason::Shutdown => "shutdown",
            EndReason::Revoked => "revoked",
        }
    }
}
