//! `seqtide check`: every database of a data folder, or the one of a folder, looked at row by row.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use seqtide::SelectorKeys;
use seqtide::storage::model::db_name::DbName;
use seqtide::storage::{CheckReport, DataFolder, Listed, StorageError, Store};

/// Checks a folder and reports line by line. 0: all is well; 1: something is wrong; 2: something could not be looked
/// at.
pub fn run(folder: &Path, out: &mut impl Write) -> ExitCode {
    let (found, nameless) = match databases_in(folder) {
        Ok(found) => found,
        Err(why) => {
            eprintln!("seqtide: {why}");
            return ExitCode::from(2);
        }
    };
    let mut databases: BTreeMap<_, _> = found.into_iter().map(|(name, database)| (name, born(database))).collect();
    // Read when all folders are known: a database that is being made is known from before its folder is there.
    let listed = DataFolder::listed(folder);
    for name in listed.iter().flatten().filter(|(_, listed)| **listed != Listed::Unfinished).map(|(name, _)| name) {
        if let Ok(parsed) = DbName::parse(name) {
            let database = || born(folder.join("databases").join(parsed.folder()));
            databases.entry(name.clone()).or_insert_with(database);
        }
    }
    if databases.is_empty() {
        let _ = writeln!(out, "no databases");
    }
    let mut worst = report_nameless(&nameless, out).max(report_catalogue(&listed, out));
    for (name, (database, birth)) in &databases {
        let before = listed.as_ref().ok().and_then(|listed| listed.get(name));
        let now = || DataFolder::listed(folder).ok()?.remove(name);
        // Another of its name may have been made meanwhile.
        let is_other = || self::birth(database) != *birth;
        worst = worst.max(if before == Some(&Listed::Unfinished) {
            report_passing(name, out)
        } else if Store::is_empty(database) {
            let now = now();
            let is_passing = now.as_ref() != before || is_other() || (now.is_none() && !database.exists());
            if is_passing { report_passing(name, out) } else { report_empty(name, database, before.is_some(), out) }
        } else {
            let report = Store::check_folder(database, &SelectorKeys);
            let is_well = matches!(&report, Ok(report) if report.is_clean());
            let is_passing = || is_other() || !database.exists() || now() == Some(Listed::Unfinished);
            // What a server makes or deletes meanwhile is only half there.
            if is_well || !is_passing() { self::report(name, report, out) } else { report_passing(name, out) }
        });
    }
    ExitCode::from(worst)
}

/// Which folder this is, and when it was made where the file system can say so.
type Birth = Option<(u64, Option<SystemTime>)>;

fn birth(database: &Path) -> Birth {
    let folder = database.metadata().ok()?;
    Some((folder.ino(), folder.created().ok()))
}

fn born(database: PathBuf) -> (PathBuf, Birth) {
    let birth = birth(&database);
    (database, birth)
}

/// Says that a database is not there yet, or no more; gives its exit code.
fn report_passing(name: &str, out: &mut impl Write) -> u8 {
    let _ = writeln!(out, "{name}: passed over: it is being made or deleted, or was when the server ended");
    0
}

/// Says that there is nothing where a database is to be; gives the exit code for it.
fn report_empty(name: &str, database: &Path, is_listed: bool, out: &mut impl Write) -> u8 {
    let file = database.join("data.mdb");
    let (here, then) = match is_listed {
        true => ("it is in the catalogue, but ", "makes an empty database of it"),
        false => ("", "takes the folder in as an empty database"),
    };
    let gone = if file.exists() { "is empty" } else { "is not there" };
    let _ = writeln!(out, "{name}: {here}{} {gone} and there is no log: a server {then}", file.display());
    1
}

/// Says which databases no server finds; gives the exit code for them.
fn report_nameless(folders: &[PathBuf], out: &mut impl Write) -> u8 {
    for folder in folders {
        let _ = writeln!(out, "{}: passed over: {}", folder.display(), DbName::FOLDERS);
    }
    if folders.is_empty() { 0 } else { 2 }
}

/// Says what is wrong with the catalogue; gives its exit code.
fn report_catalogue<T>(read: &Result<T, StorageError>, out: &mut impl Write) -> u8 {
    let Err(error) = read else { return 0 };
    if matches!(error, StorageError::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied) {
        let _ = writeln!(out, "{error}: whether it is sound only somebody who may read it can see");
        return 2;
    }
    let remedy = "no server starts on it: take it from a backup, or move it away, and databases are taken in anew";
    let _ = writeln!(out, "{error}: {remedy}");
    1
}

/// The folders to look at, each with its database's name, and those of databases that have none.
type Found = (Vec<(String, PathBuf)>, Vec<PathBuf>);

fn databases_in(folder: &Path) -> Result<Found, String> {
    if Store::is_in(folder) {
        return Ok((vec![(folder.display().to_string(), folder.to_owned())], Vec::new()));
    }
    let databases = folder.join("databases");
    let entries = match databases.read_dir() {
        // A server makes it anew, and what the catalogue names in it.
        Err(error) if error.kind() == ErrorKind::NotFound && names_databases(folder) => return Ok(Found::default()),
        entries => entries.map_err(|error| {
            format!("{} is no data folder and no database's folder: {}: {error}", folder.display(), databases.display())
        })?,
    };
    let (mut found, mut nameless) = (Vec::new(), Vec::new());
    for entry in entries {
        let entry = entry.map_err(|error| format!("{}: {error}", databases.display()))?;
        let path = entry.path();
        match entry.file_name().to_str().and_then(DbName::from_folder) {
            // As a server does, which takes in each.
            Some(name) if path.is_dir() => found.push((name.to_string(), path)),
            None if Store::is_in(&path) => nameless.push(path),
            _ => {}
        }
    }
    nameless.sort();
    Ok((found, nameless))
}

/// Whether a folder has a catalogue of some databases.
fn names_databases(folder: &Path) -> bool {
    DataFolder::listed(folder).is_ok_and(|listed| !listed.is_empty())
}

/// Says how it went with one database; gives its exit code. Who reads the report may have gone away.
fn report(name: &str, checked: Result<CheckReport, StorageError>, out: &mut impl Write) -> u8 {
    let report = match checked {
        Ok(report) => report,
        Err(error) => {
            let _ = writeln!(out, "{name}: cannot be checked: {error}");
            return if error.is_damage() { 1 } else { 2 };
        }
    };
    let CheckReport {
        docs,
        deleted_docs,
        rows,
        bodies,
        locals,
        transactions,
        index_rows,
        times: _,
        problems,
        problems_total,
    } = &report;
    for problem in problems {
        let _ = writeln!(out, "{name}: {problem}");
    }
    let more = problems_total - problems.len() as u64;
    if more > 0 {
        let _ = writeln!(out, "{name}: and {more} more");
    }
    let verdict = if report.is_clean() { "ok".to_owned() } else { format!("{problems_total} problems") };
    let documents = format!("{docs} documents, {deleted_docs} deleted, {rows} rows, {bodies} bodies, {locals} local");
    let _ = writeln!(out, "{name}: {verdict} ({documents}, {transactions} idempotency keys, {index_rows} index rows)");
    u8::from(!report.is_clean())
}
