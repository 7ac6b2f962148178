//! The command line: `seqtide serve` and its flags, `seqtide demo`, `seqtide check`, `seqtide bench`.

use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::exit;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use seqtide_bench::cli::Bench;
use toml::Table;

use super::flags::ServeFlags;
use super::{Config, Functions, defaults, keys, layers};
use crate::js_worker::Limits;

/// A change feed for documents, kept in one folder and served over HTTP.
///
/// Without a command it serves, with the options of `seqtide serve`.
#[derive(Debug, Parser)]
#[command(name = "seqtide", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    serve: ServeFlags,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Serve the databases of a data folder (what happens without a command)
    ///
    /// Every setting is a flag, a variable and a key of the file given by --config; --print-config shows the keys.
    /// A flag wins over a variable, a variable over the file, the file over the default.
    Serve(Box<ServeFlags>),
    /// Serve with a database `demo` that follows this machine: processor, memory, disk, network, processes
    ///
    /// Takes the options of `seqtide serve`. Its data is in ./seqtide-demo unless --data, SEQTIDE_DATA or the file of
    /// --config says otherwise.
    Demo(Box<ServeFlags>),
    /// Run functions of design documents for a server, which starts this itself, or for a program that embeds the
    /// engine
    #[command(hide = true)]
    JsWorker {
        /// Memory of one design document's functions, in bytes
        #[arg(long, default_value_t = Functions::default().memory_bytes_max)]
        memory_bytes_max: usize,
        /// Longest run of one batch, in milliseconds
        #[arg(long, default_value_t = Functions::default().batch_timeout.as_millis() as u64)]
        batch_timeout_ms: u64,
    },
    /// Look at every row of a data folder's databases, or of one database's folder, and say what is wrong
    ///
    /// Nothing is changed, and a server may have the folder open meanwhile. Exits with 0 when all is well, with 1 when
    /// something is wrong, with 2 when a database could not be looked at.
    Check {
        /// A data folder, or the folder of one database in it
        #[arg(id = "check_folder", value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Measure a server: feeds that many listen to, durable writes, catching up, idle subscribers
    ///
    /// Without --address it starts one of its own, on a temporary folder. The load is on one thread of this process.
    Bench(Bench),
}

/// What the program is asked to do.
#[derive(Debug)]
pub enum Task {
    /// Serve.
    Serve(Box<ServeFlags>),
    /// Serve with the demo's database.
    Demo(Box<ServeFlags>),
    /// Check a folder.
    Check(PathBuf),
    /// Run functions of design documents.
    JsWorker(Limits),
    /// Measure a server.
    Bench(Bench),
}

/// Reads the process's arguments and `SEQTIDE_` variables; answers `--help`, `--version` and wrong usage itself
/// and then exits, with code 2 for wrong usage, and 1 for a variable that makes no sense.
pub fn parse() -> Task {
    let matches = command().try_get_matches().unwrap_or_else(|error| match wrong_variable(&error) {
        Some(what) => {
            eprintln!("seqtide: {what}");
            exit(1)
        }
        None => error.exit(),
    });
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match cli.action {
        Some(Action::Check { folder }) => Task::Check(folder),
        Some(Action::JsWorker { memory_bytes_max, batch_timeout_ms }) => {
            Task::JsWorker(Limits { memory_bytes_max, batch_timeout: Duration::from_millis(batch_timeout_ms) })
        }
        Some(Action::Bench(bench)) => Task::Bench(bench),
        Some(Action::Serve(flags)) => Task::Serve(flags),
        Some(Action::Demo(flags)) => Task::Demo(flags),
        None => Task::Serve(Box::new(cli.serve)),
    }
}

/// What is wrong with a variable, where it is none of what was typed that is wrong: only the flag has a name in the
/// error.
fn wrong_variable(error: &clap::Error) -> Option<String> {
    if error.kind() == ErrorKind::InvalidUtf8 {
        return unreadable_variable();
    }
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let flag = text(ContextKind::InvalidArg)?.split(' ').next()?;
    let is_flag = |typed: OsString| typed.to_string_lossy().split('=').next() == Some(flag);
    if std::env::args_os().any(is_flag) {
        return None;
    }
    let options = options();
    let option =
        options.iter().find(|option| option.get_long().is_some_and(|long| flag.strip_prefix("--") == Some(long)))?;
    let (variable, value) = (option.get_env()?.to_string_lossy(), text(ContextKind::InvalidValue)?);
    if value.is_empty() && option.get_possible_values().is_empty() {
        return Some(format!("{variable} is empty: give it a value, or unset it"));
    }
    let why = match (error.source(), error.get(ContextKind::ValidValue)) {
        (Some(why), _) => format!(": {why}"),
        (None, Some(ContextValue::Strings(valid))) => format!(", but one of {}", valid.join(", ")),
        (None, _) => String::new(),
    };
    Some(format!("{variable} cannot be {value:?}{why}"))
}

/// What is wrong with a variable that is no text, where what was typed is: the error names neither.
fn unreadable_variable() -> Option<String> {
    if std::env::args_os().any(|typed| typed.to_str().is_none()) {
        return None;
    }
    options().iter().find_map(|option| {
        let name = option.get_env()?;
        let value = std::env::var_os(name)?;
        // Any path is one of a file to read; the others are kept as text.
        let is_wrong = value.to_str().is_none() && option.get_id() != keys::CONFIG;
        is_wrong.then(|| format!("{} cannot be {value:?}: it is no text in UTF-8", name.display()))
    })
}

/// The whole command line, each option under the names that follow from its key and in the order of declaration.
fn command() -> Command {
    let in_order = |serve: Command, defaults: &Table| {
        let mut place = 0;
        serve.mut_args(|arg| {
            place += 1;
            named(arg, defaults).display_order(place)
        })
    };
    let (defaults, of_demo) = (defaults::table(), Config::for_demo().to_table());
    let command = Cli::command().mut_args(|arg| named(arg, defaults).hide(true));
    // Another command asks no setting of the server's, however wrong it is.
    let others = ["check", "bench", "js-worker"];
    let serves = !std::env::args_os().nth(1).is_some_and(|verb| others.iter().any(|other| verb == *other));
    let command = if serves { command } else { command.mut_args(|arg| arg.env(None::<&str>)) };
    let command = command.mut_subcommand("serve", |serve| in_order(serve, defaults));
    command.mut_subcommand("demo", |demo| in_order(demo, &of_demo))
}

/// The options of `serve`, in the order of their declaration.
pub(super) fn options() -> Vec<Arg> {
    let serve = command().find_subcommand("serve").cloned().unwrap_or_default();
    serve.get_arguments().cloned().collect()
}

/// Gives an option its flag, its variable and its default's mention, unless it is a switch with a name of its own.
fn named(arg: Arg, defaults: &Table) -> Arg {
    if arg.get_long().is_some() {
        return arg;
    }
    let key = arg.get_id().to_string();
    let arg = arg.long(keys::flag(&key)).env(keys::variable(&key)).hide_env_values(true);
    // It is none of the settings', but who gives one is to be told so, and not that there is no such flag.
    let arg = arg.allow_negative_numbers(true);
    match (arg.get_help().cloned(), layers::value_at(defaults, &key)) {
        (Some(help), Some(default)) => arg.help(format!("{help} [default: {default}]")),
        _ => arg,
    }
}
