//! The JavaScript client of `clients/js`, in Node.js and in a real browser, against the real binary.

use seqtide_tests::script::run;

#[test]
fn its_own_tests_pass() {
    run("js/unit.mjs");
}

#[test]
fn its_types_let_pass_what_works_and_refuse_what_does_not() {
    run("js/types.mjs");
}

#[test]
fn it_follows_across_a_restart_and_through_silence() {
    run("js/follow.mjs");
}

#[test]
fn the_code_of_its_readme_runs() {
    run("js/readme.mjs");
}

#[test]
fn tabs_of_a_browser_share_a_connection() {
    run("js/browser.mjs");
}
