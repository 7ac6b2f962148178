//! The configuration: what was typed ([`cli`], [`ServeFlags`]) becomes what the program uses ([`Config`]).
//!
//! Defaults, the file named by `--config`, `SEQTIDE_` variables and flags are laid over each other in this order,
//! each winning over the one before, and the whole is checked once.

mod check;
pub mod cli;
mod defaults;
mod error;
mod feeds;
mod flags;
mod functions;
mod keys;
mod layers;
mod limits;
mod listen;
mod millis;
mod origins;
mod print;
mod storage;

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use toml::Table;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

pub use self::error::ConfigError;
pub use self::feeds::Feeds;
pub use self::flags::ServeFlags;
pub use self::functions::Functions;
pub use self::limits::Limits;
pub use self::origins::{CorsOrigins, OriginError};
pub use self::storage::Storage;

/// Everything the server can be told, checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Address and port to listen on, of this machine only; port 0 lets the system choose.
    #[serde(with = "listen")]
    pub listen: SocketAddr,
    /// Folder of the databases; a relative path starts at the working folder.
    pub data: PathBuf,
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// What is logged, as a `tracing` filter.
    pub log: String,
    /// Form of the log.
    pub log_format: LogFormat,
    /// Web threads; 0 is one a core.
    pub workers: usize,
    /// Origins whose pages may use the server.
    pub cors_origins: CorsOrigins,
    /// How long open requests may take to end at a shutdown; `shutdown_timeout_ms` in the file.
    #[serde(rename = "shutdown_timeout_ms", with = "millis")]
    pub shutdown_timeout: Duration,
    /// Bounds on requests and on what waits.
    pub limits: Limits,
    /// Times of feeds.
    pub feeds: Feeds,
    /// Bounds of functions in design documents.
    pub functions: Functions,
    /// How databases are kept.
    pub storage: Storage,
}

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// A power cut: it is synced to disk first.
    Full,
    /// A crash of the server; a power cut may cost the last commits, never the file.
    Relaxed,
}

/// Form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line, for machines.
    Json,
}

/// Most web threads: what the web framework starts at most.
const WORKERS_MAX: usize = 512;

/// What the reader of a table says of a value, without the names that its type has in the program.
fn in_plain_words(error: &str) -> String {
    const WORDS: [(&str, &str); 7] = [
        ("expected usize", "expected a whole number, 0 or more"),
        ("expected u64", "expected a whole number, 0 or more"),
        ("expected a sequence", "expected a list, such as [\"a\", \"b\"]"),
        ("expected path string", "expected a path in quotes"),
        ("expected a string", "expected a text in quotes"),
        ("unknown variant", "no such value:"),
        ("floating point", "number"),
    ];
    WORDS.iter().fold(error.to_owned(), |text, (word, plain)| text.replace(word, plain))
}

impl Config {
    /// Builds the configuration from defaults, the flags (which hold the variables' values too) and the file they name.
    ///
    /// # Errors
    /// In one line: an unreadable or wrong file, an unknown key or variable, a value that makes no sense.
    pub fn load(defaults: &Config, flags: &ServeFlags) -> Result<Config, ConfigError> {
        keys::refuse_unknown_variables(std::env::vars_os().map(|(name, _)| name))?;
        let mut layers = defaults.to_table();
        if let Some(path) = &flags.config {
            layers::overlay(&mut layers, layers::read_file(path)?);
            let file = path.display().to_string();
            Config::from_table(layers.clone()).map_err(|reason| ConfigError::WrongInFile { file, reason })?;
        }
        layers::overlay(&mut layers, to_table(flags));
        let config = Config::from_table(layers).map_err(ConfigError::Wrong)?;
        config.validate()?;
        Ok(config)
    }

    /// The log's filter, parsed.
    ///
    /// # Errors
    /// When `log` is not a filter.
    pub fn log_filter(&self) -> Result<EnvFilter, ConfigError> {
        // A word that is no level would name a part of the program, and silence all others.
        let no_level = |part: &&str| !part.contains(['=', '[']) && part.parse::<LevelFilter>().is_err();
        let word = self.log.split(',').map(str::trim).filter(|part| !part.is_empty()).find(no_level);
        check::refuse_if(word.is_some(), "log", || {
            let word = word.unwrap_or_default();
            format!(
                "{word:?} is no level, which is off, error, warn, info, debug or trace; of a part it is \"{word}=debug\""
            )
        })?;
        EnvFilter::builder().parse(&self.log).map_err(|error| ConfigError::Invalid {
            key: "log",
            reason: format!("{:?} is not a filter such as \"info\" or \"warn,seqtide=debug\": {error}", self.log),
        })
    }

    /// How many web threads there are.
    pub fn web_threads(&self) -> usize {
        if self.workers > 0 {
            return self.workers;
        }
        thread::available_parallelism().map_or(1, NonZero::get).min(WORKERS_MAX)
    }

    fn from_table(table: Table) -> Result<Config, String> {
        table.try_into().map_err(|error: toml::de::Error| in_plain_words(&layers::one_line(&error.to_string())))
    }

    fn to_table(&self) -> Table {
        to_table(self)
    }

    fn validate(&self) -> Result<(), ConfigError> {
        let open_to_others = !self.listen.ip().to_canonical().is_loopback();
        check::refuse_if(open_to_others, "listen", || {
            let why = "there is no authentication yet, so anyone who could connect could read and delete everything";
            format!("{} is not a loopback address; {why}", self.listen)
        })?;
        check::at_most("workers", self.workers, WORKERS_MAX)?;
        check::refuse_if(self.data.as_os_str().is_empty(), "data", || "names no folder".to_owned())?;
        self.log_filter()?;
        self.limits.validate()?;
        self.feeds.validate()?;
        self.functions.validate()?;
        self.storage.validate(self.limits.databases_open_max)
    }
}

fn to_table(settings: &impl Serialize) -> Table {
    Table::try_from(settings).expect("texts and integers within TOML's range")
}

#[cfg(test)]
mod tests;
