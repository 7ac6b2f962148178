//! `docs/guarantees.md` names tests: each of them is there.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace")
}

/// Texts in backticks, in order.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The functions a file of tests has, those of its modules in a folder of the same name or beside a `main.rs` included.
fn functions_of(file: &Path) -> String {
    let mut text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let modules = match file.file_name().and_then(|name| name.to_str()) {
        Some("main.rs") => file.parent().expect("a folder").to_owned(),
        _ => file.with_extension(""),
    };
    for module in fs::read_dir(modules).into_iter().flatten() {
        let path = module.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "rs") && path != file {
            text += &fs::read_to_string(path).expect("a module");
        }
    }
    text
}

#[test]
fn every_test_that_a_guarantee_names_is_there() {
    let page = fs::read_to_string(root().join("docs/guarantees.md")).expect("the page");
    let mut named = 0;
    for line in page.lines().filter(|line| line.contains(".rs`")) {
        let mut functions = None;
        for name in quoted(line) {
            if name.ends_with(".rs") {
                functions = Some((name, functions_of(&root().join(name))));
            } else if let Some((file, functions)) = &functions
                && name.contains('_')
                && !name.contains(['/', '.', ' ', '='])
            {
                named += 1;
                assert!(functions.contains(&format!("fn {name}(")), "docs/guarantees.md: no test `{name}` in {file}");
            }
        }
    }
    assert!(named > 40, "{named} tests are named");
}
