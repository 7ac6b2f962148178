//! `seqtide check`: every database of a data folder, or the one of a folder, looked at row by row.

use std::collections::HashSet;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use seqtide::SelectorKeys;
use seqtide::storage::model::db_name::DbName;
use seqtide::storage::{CheckReport, DataFolder, StorageError, Store};

/// Checks a folder and reports line by line. 0: all is well; 1: something is wrong; 2: something could not be looked at.
pub fn run(folder: &Path, out: &mut impl Write) -> ExitCode {
    let (databases, nameless) = match databases_in(folder) {
        Ok(found) => found,
        Err(why) => {
            eprintln!("seqtide: {why}");
            return ExitCode::from(2);
        }
    };
    if databases.is_empty() {
        let _ = writeln!(out, "no databases");
    }
    let births: Vec<_> = databases.iter().map(|(_, database)| birth(database)).collect();
    // Read when all databases are known: one that is being made is known from before its folder is there.
    let unfinished = DataFolder::unfinished(folder);
    // Another of its name may have been made meanwhile.
    let is_passing = |name: &str, database: &Path, born: &Option<_>| {
        birth(database) != *born || !database.exists() || names(&DataFolder::unfinished(folder), name)
    };
    let mut worst = report_nameless(&nameless, out).max(report_catalogue(&unfinished, out));
    for ((name, database), born) in databases.iter().zip(&births) {
        let report = (!names(&unfinished, name)).then(|| Store::check_folder(database, &SelectorKeys));
        let is_well = matches!(&report, Some(Ok(report)) if report.is_clean());
        // What a server makes or deletes meanwhile is only half there.
        worst = worst.max(match report {
            Some(report) if is_well || !is_passing(name, database, born) => self::report(name, report, out),
            _ => report_passing(name, out),
        });
    }
    ExitCode::from(worst)
}

/// Which folder this is, and when it was made where the file system can say so.
fn birth(database: &Path) -> Option<(u64, Option<SystemTime>)> {
    let folder = database.metadata().ok()?;
    Some((folder.ino(), folder.created().ok()))
}

/// Whether this name is among those of unfinished databases.
fn names(unfinished: &Result<HashSet<String>, StorageError>, name: &str) -> bool {
    unfinished.as_ref().is_ok_and(|unfinished| unfinished.contains(name))
}

/// Says that a database is not there yet, or no more; gives its exit code.
fn report_passing(name: &str, out: &mut impl Write) -> u8 {
    let _ = writeln!(out, "{name}: passed over: it is being made or deleted, or was when the server ended");
    0
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

/// The databases to look at, each with its name, and the folders of those that have none.
type Found = (Vec<(String, PathBuf)>, Vec<PathBuf>);

fn databases_in(folder: &Path) -> Result<Found, String> {
    if Store::is_in(folder) {
        return Ok((vec![(folder.display().to_string(), folder.to_owned())], Vec::new()));
    }
    let databases = folder.join("databases");
    let entries = databases.read_dir().map_err(|error| {
        format!("{} is no data folder and no database's folder: {}: {error}", folder.display(), databases.display())
    })?;
    let (mut found, mut nameless) = (Vec::new(), Vec::new());
    for entry in entries {
        let entry = entry.map_err(|error| format!("{}: {error}", databases.display()))?;
        let path = entry.path();
        if Store::is_in(&path) {
            match entry.file_name().to_str().and_then(DbName::from_folder) {
                Some(name) => found.push((name.to_string(), path)),
                None => nameless.push(path),
            }
        }
    }
    found.sort();
    nameless.sort();
    Ok((found, nameless))
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
