//! Why a function gave no verdict.

use crate::documents::NotFound;

/// Why a function gave no verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FunctionError {
    /// There is no such design document.
    #[error(transparent)]
    NoDesign(NoDesign),
    /// The design document has nothing there.
    #[error(transparent)]
    NoFunction(NoFunction),
    /// The design document is in another language than JavaScript.
    #[error(
        "functions of {design} cannot be run: its language is {language:?}, and \"javascript\" is the only one here"
    )]
    Language {
        /// The design document.
        design: String,
        /// Its language.
        language: String,
    },
    /// There is no way to run functions.
    #[error("functions in design documents cannot be run here: no worker command is set")]
    NoWorkers,
    /// As many batches wait as may. Try again shortly.
    #[error("{waiting_max} batches wait for a function to be run, and no more may")]
    Busy {
        /// The bound.
        waiting_max: usize,
    },
    /// The design documents that validate a database's writes are more than are kept at hand: nothing is validated, and
    /// nothing that is to be validated is written.
    #[error("the design documents that validate writes are larger together than {bytes_max} bytes")]
    TooLarge {
        /// The bound.
        bytes_max: usize,
    },
    /// A worker could not be started or broke off.
    #[error("{function} of {design} could not be run: {what}")]
    Broken {
        /// The design document.
        design: String,
        /// The function's place in it.
        function: String,
        /// What went wrong.
        what: String,
    },
    /// The function does not compile, or threw.
    #[error("{function} of {design} failed: {message}")]
    Failed {
        /// The design document.
        design: String,
        /// The function's place in it.
        function: String,
        /// What it said.
        message: String,
    },
    /// The function was cut short by a limit.
    #[error("{function} of {design} was stopped: {what}")]
    Stopped {
        /// The design document.
        design: String,
        /// The function's place in it.
        function: String,
        /// By which limit.
        what: String,
    },
    /// The engine is stopping or has stopped.
    #[error("the engine has stopped")]
    EngineStopped,
}

/// A design document that is not there. CouchDB says no more than why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", match .why {
    NotFound::Missing => format!("there is no {design}"),
    NotFound::Deleted => format!("{design} is deleted"),
})]
pub struct NoDesign {
    /// Its id.
    pub design: String,
    /// Why it is not given.
    pub why: NotFound,
}

/// A place where a design document has nothing. CouchDB says `missing json key` and the step. Source: CouchDB
/// `couch_util:get_nested_json_value`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{design} has no {place}")]
pub struct NoFunction {
    /// The design document.
    pub design: String,
    /// The place that was looked for.
    pub place: String,
    /// The first step to it that leads nowhere.
    pub step: String,
}

impl FunctionError {
    /// The same, said of one document.
    pub(crate) fn at(mut self, id: &str) -> FunctionError {
        if let FunctionError::Failed { message: text, .. } | FunctionError::Stopped { what: text, .. } = &mut self {
            text.push_str(&format!(" (document {id:?})"));
        }
        self
    }

    /// Whether the function is to blame, with what it was given, and nothing around it.
    pub(crate) fn is_of_the_function(&self) -> bool {
        use FunctionError as E;
        matches!(self, E::Failed { .. } | E::Stopped { .. } | E::Language { .. })
    }
}
