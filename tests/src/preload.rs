//! Libraries that stand between a server and the system (`LD_PRELOAD`), compiled by the tests that use them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a C file of this crate into a library in the folder `into`.
///
/// # Panics
/// When `cc` does not.
pub fn build(source: &str, into: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let library = into.join("preloaded.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-pthread", "-o"])
        .args([&library, &source])
        .status();
    assert!(built.is_ok_and(|status| status.success()), "cc should build {}", source.display());
    library
}
