//! One flip after the other, in a process that may die of it.

use std::fs::{self, File, OpenOptions};
use std::io::stdin;
use std::os::unix::fs::FileExt;
use std::path::Path;

use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::{Edit, Outcome, Request, StorageError, Store, Write, json::Body};

use super::answers::{Answers, is_named};
use super::flips::Flip;
use crate::db::small;
use crate::every_kind;
use crate::feed_index::TestKeys;

/// What became of a flip.
#[derive(Debug)]
pub enum Verdict {
    /// The database is not opened, and the error names the damage.
    Unreadable,
    /// The database is read; these documents are not, and the error names the damage.
    Read {
        /// Whether a check finds something.
        reported: bool,
        lost: Vec<String>,
    },
    /// An answer is wrong and does not say so, or writing goes wrong.
    Wrong(String),
}

impl Verdict {
    /// A line on standard output, where the test harness says something too.
    fn line(&self) -> String {
        match self {
            Verdict::Unreadable => "verdict\tunreadable".to_owned(),
            Verdict::Read { reported, lost } => format!("verdict\tread\t{reported}\t{}", lost.join("\t")),
            Verdict::Wrong(what) => format!("verdict\twrong\t{}", what.replace(['\n', '\t'], " ")),
        }
    }

    pub fn parse(line: &str) -> Option<Verdict> {
        let mut parts = line[line.find("verdict\t")?..].split('\t').skip(1);
        Some(match parts.next()? {
            "unreadable" => Verdict::Unreadable,
            "read" => {
                let reported = parts.next()? == "true";
                Verdict::Read { reported, lost: parts.filter(|id| !id.is_empty()).map(str::to_owned).collect() }
            }
            _ => Verdict::Wrong(parts.collect()),
        })
    }
}

/// Answers a flip a line with a verdict a line.
pub fn answer_questions(sound: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data.mdb");
    let pristine = fs::read(sound.join("data.mdb")).unwrap();
    fs::write(&file, &pristine).unwrap();
    let store = Store::open(folder.path(), &small(), &every_kind::birth()).unwrap();
    let truth = Answers::of(&store).unwrap();
    store.close().unwrap();
    for line in stdin().lines() {
        let flip = Flip::parse(&line.unwrap());
        let data = OpenOptions::new().write(true).open(&file).unwrap();
        data.write_all_at(&[pristine[flip.at] ^ flip.with], flip.at as u64).unwrap();
        let verdict = read(folder.path(), &truth).unwrap_or_else(Verdict::Wrong);
        println!("\n{}", verdict.line());
        put_back(&data, &pristine, flip);
    }
}

/// A database that could be written to was.
fn put_back(data: &File, pristine: &[u8], flip: Flip) {
    data.write_all_at(&pristine[flip.at..=flip.at], flip.at as u64).unwrap();
    let now = fs::read(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(data)));
    if now.is_ok_and(|now| now != pristine) {
        data.set_len(0).unwrap();
        data.write_all_at(pristine, 0).unwrap();
    }
}

fn read(folder: &Path, truth: &Answers) -> Result<Verdict, String> {
    let checked = Store::check_folder(folder, &TestKeys);
    let reported = match &checked {
        Ok(report) => !report.is_clean(),
        Err(error) if is_named(error) => true,
        Err(error) => return Err(format!("checked: {error}")),
    };
    let store = match Store::open(folder, &small(), &every_kind::birth()) {
        Ok(store) => store,
        Err(error) if is_named(&error) && reported => return Ok(Verdict::Unreadable),
        Err(error) => return Err(format!("opened: {error}")),
    };
    let read = Answers::of(&store).map_err(|error| error.to_string())?.compare(truth);
    let lost = read.map_err(|wrong| format!("{wrong} {:?}", store.damages()))?;
    if store.damages().is_empty() {
        write_more(&store)?
    } else {
        is_not_written_to(&store)?
    }
    store.close().unwrap();
    Ok(Verdict::Read { reported, lost })
}

fn edit(number: usize) -> [Request; 1] {
    let id = DocId::parse(&format!("afterwards-{number}")).unwrap();
    let body = Body::from_stored(bytes::Bytes::from(format!("{{\"pad\":\"{}\"}}", "y".repeat(number * 900))));
    [vec![Write::Edit(Edit::interactive(id, None, false, body))].into()]
}

/// What the check of the pages takes for sound can be written on.
fn write_more(store: &Store) -> Result<(), String> {
    for number in 0..6 {
        let commit = store.write(&edit(number)).map_err(|error| format!("written on: {error}"))?;
        if !matches!(commit.requests[0].outcomes[..], [Outcome::Written { .. }]) {
            return Err(format!("written on: {:?}", commit.requests));
        }
    }
    let report = store.check().map_err(|error| format!("after more writes: {error}"))?;
    if report.is_clean() { Ok(()) } else { Err(format!("after more writes: {:?}", report.problems)) }
}

fn is_not_written_to(store: &Store) -> Result<(), String> {
    let report = store.check().map_err(|error| format!("checked inside: {error}"))?;
    match store.write(&edit(0)) {
        _ if report.is_clean() => Err("a check inside says nothing".to_owned()),
        Err(StorageError::ReadOnly { .. }) => Ok(()),
        other => Err(format!("a damaged file is written to: {other:?}")),
    }
}
