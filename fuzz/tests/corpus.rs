//! Every input that fuzzing found worth keeping, checked without fuzzing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use seqtide_fuzz::TARGETS;

fn corpus(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

#[test]
fn every_corpus_holds() {
    let mut failed = Vec::new();
    for (target, check) in TARGETS {
        let files = corpus(target);
        assert!(!files.is_empty(), "{target} has no corpus");
        for file in files {
            let input = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            if catch_unwind(AssertUnwindSafe(|| check(&input))).is_err() {
                failed.push(file.display().to_string());
            }
        }
    }
    assert!(failed.is_empty(), "the panics above are of these inputs, in this order: {failed:#?}");
}

#[test]
fn every_corpus_has_its_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let entries = std::fs::read_dir(folder).expect("the corpora");
    let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name().into_string()).collect();
    names.sort();
    assert_eq!(names, TARGETS.map(|(target, _)| Ok(target.to_owned())));
}

proptest! {
    /// Most random bytes make a revision tree; other targets need inputs that are almost right.
    #[test]
    fn random_trees_hold(input in prop::collection::vec(any::<u8>(), 0..200)) {
        seqtide_fuzz::rev_tree::check(&input);
    }
}
