//! An engine in a process that may have few files open, a bound that is the whole process's: these tests take turns.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use seqtide::{ChangesOptions, Engine, EngineOptions, Error};

static TURN: Mutex<()> = Mutex::new(());

/// What the system calls the thread of a test.
const TEST: &str = "a test";

/// How many files this process may have open; as many as before when it is dropped.
struct Bound {
    before: Rlimit,
}

impl Bound {
    /// So many more than it has now.
    fn leave(&self, left: usize) {
        let numbers = fs::read_dir("/proc/self/fd").unwrap().map(|file| file.unwrap().file_name());
        let taken: BTreeSet<usize> = numbers.filter_map(|number| number.to_str()?.parse().ok()).collect();
        // What a bound counts is not files, but numbers below it. One is the folder's that was read.
        let end = (0..).filter(|number| !taken.contains(number)).nth(left).unwrap();
        setrlimit(Resource::Nofile, Rlimit { current: Some(end as u64), ..self.before }).unwrap();
    }

    fn lift(&self) {
        setrlimit(Resource::Nofile, self.before).unwrap();
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.lift();
    }
}

/// Runs a test while no other has files open.
fn in_turn(test: impl AsyncFnOnce(&Bound)) {
    fs::write("/proc/thread-self/comm", TEST).unwrap();
    let _turn = TURN.lock();
    until_no_engine();
    let bound = Bound { before: getrlimit(Resource::Nofile) };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test(&bound));
}

/// The threads of engines: those that bear another name than tests and what starts these, which come and go at any
/// time.
fn threads() -> usize {
    let main = fs::read_to_string("/proc/self/comm").unwrap();
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    // One that cannot be read has ended.
    let names = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| *name != main && name.trim_end() != TEST).count()
}

/// What engines have: threads, and open files beside those of the process.
fn held() -> (usize, usize) {
    (threads(), fs::read_dir("/proc/self/fd").unwrap().count())
}

/// What an engine had open is closed when its threads have ended.
fn until_no_engine() {
    until(|| threads() == 0, || format!("{} threads", threads()));
}

fn until(so: impl Fn() -> bool, found: impl Fn() -> String) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !so() {
        assert!(Instant::now() < deadline, "{}", found());
        thread::sleep(Duration::from_millis(1));
    }
}

fn options(folder: &tempfile::TempDir) -> EngineOptions {
    let mut options = EngineOptions { committers: 2, ..EngineOptions::new(folder.path()) };
    options.store.map_bytes = 64 << 20;
    options
}

#[test]
fn an_engine_that_cannot_be_started_says_why_and_leaves_nothing_behind() {
    in_turn(async |files: &Bound| {
        let folder = tempfile::tempdir().unwrap();
        Engine::start_with(options(&folder)).unwrap().shutdown().await.unwrap();
        until_no_engine();
        let before = held();
        let mut failures = 0;
        let engine = loop {
            files.leave(failures);
            let started = Engine::start_with(options(&folder));
            files.lift();
            let error = match started {
                Ok(engine) => break engine,
                Err(error) => error,
            };
            assert!(matches!(error, Error::Storage(_)), "{failures} files left: {error:?}");
            assert!(error.to_string().contains("Too many open files"), "{failures} files left: {error}");
            until(|| held() == before, || format!("{failures} files left: {:?} of {before:?}", held()));
            failures += 1;
        };
        assert!(failures > 5, "it needs more files than that");
        engine.create_database("db").await.unwrap();
        engine.shutdown().await.unwrap();
    });
}

#[test]
fn databases_that_nobody_uses_are_closed_where_the_system_has_no_more_files() {
    in_turn(async |files: &Bound| {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::start_with(options(&folder)).unwrap();
        let first = engine.create_database("first").await.unwrap();
        files.leave(30);
        let _in_use = first.changes(ChangesOptions::default()).await.unwrap();
        for n in 0..20 {
            let database = engine.create_database(&format!("db{n}")).await.unwrap();
            database.put("a", "{}").await.unwrap();
        }
        for n in 0..20 {
            let database = engine.database(&format!("db{n}")).unwrap();
            assert!(database.get("a").await.unwrap().is_some());
            first.put(&format!("d{n}"), "{}").await.unwrap();
        }
        files.leave(2);
        // Those that are open keep what they have.
        first.put("last", "{}").await.unwrap();
        engine.shutdown().await.unwrap();
        files.lift();
        let engine = Engine::start_with(options(&folder)).unwrap();
        assert_eq!(engine.databases().len(), 21);
        engine.shutdown().await.unwrap();
    });
}

#[test]
fn where_no_database_is_idle_it_is_said_that_there_are_no_more_files() {
    in_turn(async |files: &Bound| {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::start_with(options(&folder)).unwrap();
        let first = engine.create_database("first").await.unwrap();
        let _in_use = first.changes(ChangesOptions::default()).await.unwrap();
        files.leave(1);
        let error = engine.create_database("second").await.map(drop).unwrap_err();
        assert!(error.to_string().contains("Too many open files"), "{error}");
        files.lift();
        engine.create_database("second").await.unwrap();
        engine.shutdown().await.unwrap();
    });
}
