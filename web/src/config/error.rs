//! Why a configuration is refused, in one line each.

use std::io;

/// A configuration that cannot be used; its text names the key, the variable or the file at fault.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file named by `--config` cannot be read.
    #[error("cannot read the configuration file {file}: {cause}")]
    Unreadable {
        /// Path of the file.
        file: String,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// The file is not TOML.
    #[error("{file}, line {line}: {reason}")]
    Syntax {
        /// Path of the file.
        file: String,
        /// Line of the mistake, from 1.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// The file sets something that does not exist.
    #[error("{file}: unknown key {key:?}{hint}")]
    UnknownKey {
        /// Path of the file.
        file: String,
        /// The key, with its section.
        key: String,
        /// What was probably meant, where that can be told, with a comma in front.
        hint: String,
    },
    /// A variable with our prefix sets something that does not exist.
    #[error("unknown variable {name}{hint}")]
    UnknownVariable {
        /// Name of the variable.
        name: String,
        /// What was probably meant, where that can be told, with a comma in front.
        hint: String,
    },
    /// A value of the file has the wrong type or is out of its type's range.
    #[error("{file}: {reason}")]
    WrongInFile {
        /// Path of the file.
        file: String,
        /// What is wrong, with the key.
        reason: String,
    },
    /// A value given by a flag or a variable is out of its type's range.
    #[error("{0}")]
    Wrong(String),
    /// A value has the right type and makes no sense.
    #[error("{key}: {reason}")]
    Invalid {
        /// The key, with its section.
        key: &'static str,
        /// What is wrong with its value.
        reason: String,
    },
}
