//! A flipped byte anywhere in a database's file: every answer is right or a named error, nothing crashes, and what does
//! not lie on the damaged page is still read.
//!
//! LMDB would end the process over many of these bytes, so children of this test read the damaged files; one that dies
//! fails it. `SEQTIDE_TEST_FLIPS` is the number of flips in each page, from 4096 on all of its bytes;
//! `SEQTIDE_TEST_SEED` chooses others.

pub mod answers;
mod examples;
mod flips;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use seqtide_storage::Store;

use self::flips::{Flip, Layout};
use self::trial::Verdict;
use crate::db::small;
use crate::every_kind;
use crate::feed_index::{index, tend};

/// Set for a child: the folder of the sound database.
const CHILD: &str = "SEQTIDE_TEST_SOUND_DATABASE";
const CHILDREN: usize = 2;

/// The pages whose loss costs the whole database, at most: two meta pages, the list of tables, the table `meta`.
const VITAL_PAGES_MAX: usize = 4;

#[test]
fn a_flipped_byte_in_any_page_gives_a_named_error_for_what_it_hits_and_the_rest_is_read() {
    if let Some(sound) = std::env::var_os(CHILD) {
        return trial::answer_questions(Path::new(&sound));
    }
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), &small(), &every_kind::birth()).unwrap();
    every_kind::write(&store).unwrap();
    store.write(&[vec![index(&["edit"])].into()]).unwrap();
    tend(&store, 100);
    store.close().unwrap();
    let layout = Layout::of(&folder.path().join("data.mdb"));
    let verdicts = try_all(folder.path(), &flips::chosen(&layout));
    judge(&layout, &verdicts);
}

/// Has children try the flips; gives what became of each.
fn try_all(sound: &Path, flips: &[Flip]) -> Vec<(Flip, Verdict)> {
    let shares = flips.chunks(flips.len().div_ceil(CHILDREN));
    std::thread::scope(|scope| {
        let children: Vec<_> = shares.map(|share| scope.spawn(|| try_share(sound, share))).collect();
        children.into_iter().flat_map(|child| child.join().expect("a child died")).collect()
    })
}

fn try_share(sound: &Path, flips: &[Flip]) -> Vec<(Flip, Verdict)> {
    let mut child = Reader::start(sound);
    flips.iter().map(|flip| (*flip, child.ask(*flip))).collect()
}

struct Reader {
    child: Child,
    answers: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Reader {
    fn start(sound: &Path) -> Reader {
        let this = "damage::a_flipped_byte_in_any_page_gives_a_named_error_for_what_it_hits_and_the_rest_is_read";
        let program: PathBuf = std::env::current_exe().unwrap();
        let mut child = Command::new(program)
            .args(["--exact", this, "--nocapture"])
            .env(CHILD, sound)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        Reader { child, answers }
    }

    fn ask(&mut self, flip: Flip) -> Verdict {
        let asked = writeln!(self.child.stdin.as_mut().unwrap(), "{flip}");
        let answers = self.answers.by_ref().map_while(Result::ok);
        let verdict = answers.filter_map(|line| Verdict::parse(&line)).next().filter(|_| asked.is_ok());
        verdict.unwrap_or_else(|| panic!("{}: the reader died: {:?}", flip.place(), self.child.wait()))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Nothing is wrong in silence, nothing is lost that is not on the page, and headers never change unseen.
fn judge(layout: &Layout, verdicts: &[(Flip, Verdict)]) {
    let mut vital = BTreeSet::new();
    let mut seen: BTreeMap<u64, Vec<(Flip, bool)>> = BTreeMap::new();
    for (flip, verdict) in verdicts {
        let place = flip.place();
        match verdict {
            Verdict::Wrong(what) => panic!("{place}: {what}"),
            Verdict::Unreadable => {
                vital.insert(flip.page());
            }
            Verdict::Read { reported, lost } => {
                assert!(*reported || lost.is_empty(), "{place}: documents are lost, and a check does not say so");
                let elsewhere = lost.iter().find(|id| !layout.may_lose(flip.page(), id));
                assert_eq!(elsewhere, None, "{place}: this document is not on the page, and yet lost");
            }
        }
        let reported = !matches!(verdict, Verdict::Read { reported: false, .. });
        seen.entry(flip.page()).or_default().push((*flip, reported));
    }
    assert!(vital.len() <= VITAL_PAGES_MAX, "the database cannot be read when one of the pages {vital:?} is damaged");
    for flips in seen.values().filter(|flips| flips.iter().any(|(_, reported)| *reported)) {
        let unseen = flips.iter().find(|(flip, reported)| !*reported && layout.is_header(*flip));
        assert_eq!(unseen, None, "a damaged header of a page in use is not reported");
    }
    let pages_seen = seen.values().filter(|flips| flips.iter().any(|(_, reported)| *reported)).count();
    println!("{} flips on {} pages, reported on {pages_seen}", verdicts.len(), seen.len());
    assert!(pages_seen > seen.len() / 3, "most pages are in use, and damage in them is reported");
}
