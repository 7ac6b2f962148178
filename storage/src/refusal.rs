//! Why a write was refused before it came here, kept with the outcomes of its request.

/// A write that was looked at and must not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What kind of refusal it is.
    pub kind: RefusalKind,
    /// The reason, for people.
    pub reason: String,
}

/// Kinds of refusal. Source, of the first two: CouchDB, what a validation function may throw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusalKind {
    /// Nobody may write this.
    Forbidden,
    /// Who writes it may not.
    Unauthorized,
    /// Whether it may be written could not be found out.
    Undecided,
    /// It is none of what is taken, whatever the database has: the name of the error that says so.
    Unfit(String),
}
