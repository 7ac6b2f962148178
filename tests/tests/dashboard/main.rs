//! The dashboard in a real browser, against the real binary: each test runs one script of `tests/clients/dashboard`.

use seqtide_tests::Server;
use seqtide_tests::script::{run, run_against};

#[test]
fn the_overview_follows_the_server_across_a_restart() {
    run("dashboard/overview.mjs");
}

#[test]
fn the_feed_viewer_loses_no_row_and_tries_filters_out() {
    run("dashboard/feed.mjs");
}

#[test]
fn the_document_view_edits_and_resolves_conflicts() {
    run("dashboard/document.mjs");
}

#[test]
fn the_pages_tell_what_a_feed_says_of_itself() {
    // Little is in memory, so that a page can fall behind it, and a stop takes its time.
    let server = Server::launch().arg("--storage-tail-bytes-max=65536").arg("--feeds-drain-ms=3000").start();
    run_against("dashboard/states.mjs", server);
}

#[test]
fn the_demo_is_alive_at_once_and_after_a_restart() {
    let server = run_against("dashboard/demo.mjs", Server::launch().demo().start());
    server.stdout_line("/_dashboard/#/db/demo and http://");
}

#[test]
fn the_pages_are_for_everybody() {
    run("dashboard/access.mjs");
}

#[test]
fn everything_is_done_by_keyboard() {
    run("dashboard/keyboard.mjs");
}

#[test]
fn subscribers_are_shown_and_ended() {
    run("dashboard/subscribers.mjs");
}
