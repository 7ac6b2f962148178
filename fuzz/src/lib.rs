//! What must hold for any input, one module a kind of input: each has `check`, which panics when it does not hold.
//!
//! libFuzzer looks for inputs with `cargo fuzz` (see CONTRIBUTING.md); those it found worth keeping lie in
//! `corpus/<target>/`, and an ordinary test checks each of them. Nothing here needs libFuzzer.

pub mod document;
pub mod name;
pub mod query;
pub mod rev_tree;
pub mod revision;
pub mod row;

/// A check of any input, by the name of its corpus and of its program in `fuzz_targets/`.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 6] = [
    ("document", document::check),
    ("name", name::check),
    ("query", query::check),
    ("rev_tree", rev_tree::check),
    ("revision", revision::check),
    ("row", row::check),
];
