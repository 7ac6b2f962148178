//! The binary `seqtide`: reads what it is asked to do, and serves, shows, checks or measures.

use std::error::Error;
use std::io::{self, Write, stdin, stdout};
use std::process::ExitCode;
use std::thread;

use rustix::process::{Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit};
use seqtide_server::config::cli::Task;
use seqtide_server::config::{Config, ServeFlags, cli};
use seqtide_server::{StartError, check, js_worker, logging, memory, signals};

/// Requests allocate on one thread what another frees; the system's allocator takes a quarter of a write's time for it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let code = run(cli::parse());
    logging::finish();
    code
}

fn run(task: Task) -> ExitCode {
    match task {
        Task::Serve(flags) => exit_of(serve(&Config::default(), &flags, seqtide_server::run)),
        Task::Demo(flags) => exit_of(serve(&Config::for_demo(), &flags, seqtide_server::run_demo)),
        Task::Check(folder) => check::run(&folder, &mut stdout()),
        Task::JsWorker(limits) => js_worker::run(limits),
        Task::Bench(bench) => seqtide_bench::cli::run(&bench, signals::terminated),
    }
}

fn exit_of(served: Result<(), Box<dyn Error>>) -> ExitCode {
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            logging::say(&format!("seqtide: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn serve(
    defaults: &Config,
    flags: &ServeFlags,
    run: fn(Config) -> Result<(), StartError>,
) -> Result<(), Box<dyn Error>> {
    memory::keep_free();
    let config = Config::load(defaults, flags)?;
    if flags.print_config {
        stdout().write_all(config.to_commented_toml().as_bytes())?;
        return Ok(());
    }
    if flags.until_stdin_ends {
        end_with_stdin()?;
    }
    logging::start(&config)?;
    keep_pages_small();
    open_many_files(&config)?;
    run(config)?;
    Ok(())
}

/// Ends this process in order when its standard input ends: a pipe does so with whoever holds its other end.
fn end_with_stdin() -> io::Result<()> {
    let wait = || {
        let _ = io::copy(&mut stdin(), &mut io::sink());
        let _ = kill_process(getpid(), Signal::TERM);
    };
    thread::Builder::new().name("stdin".to_owned()).spawn(wait).map(drop)
}

/// Open files a server has before anyone connects: its own and its first databases', and each worker's.
const FILES_MIN: usize = 64;
const WORKER_FILES: usize = 8;

/// A connection is an open file, and a database several. Few systems let a program have as many as it may without being
/// asked. Where it may have too few to begin with, parts of it that need one would break off later.
fn open_many_files(config: &Config) -> Result<(), String> {
    let may = getrlimit(Resource::Nofile).maximum;
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: may, maximum: may }) {
        tracing::debug!(%error, "the system does not let more files be open");
    }
    let Some(files) = getrlimit(Resource::Nofile).current else { return Ok(()) };
    let workers = config.web_threads();
    let least = FILES_MIN + workers * WORKER_FILES;
    if files < least as u64 {
        return Err(format!(
            "the system allows {files} open files, and a server of {workers} workers needs {least} at least: raise its limit of open files (`ulimit -n`)"
        ));
    }
    let feeds = config.limits.feeds_max;
    if files < feeds as u64 {
        let what = "more feeds may be open than files: raise the system's limit of open files (`ulimit -n`)";
        tracing::warn!(files, feeds, "{what}");
    }
    Ok(())
}

/// The allocator asks for huge pages, of which the system hands out whole ones, 2 MiB each: an idle server would take
/// nine times the memory.
fn keep_pages_small() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "the system may give huge pages");
    }
}
