//! What the parts of a write and of a feed take by themselves, in one thread, without HTTP.
//!
//! `cargo bench -p seqtide-tests --bench micro [-- NAME...]`. Each is what an embedding program can call: rows are made
//! of a plan (`apply`) nowhere but in a commit, so they are measured with it. A bench is about one document or row,
//! unless its name says otherwise; nothing is required of it. `docs/performance.md` says where these parts belong.

mod documents;
mod engine;
mod store;

fn main() {
    divan::main();
}
