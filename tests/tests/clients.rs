//! Real clients from npm against the real binary: each test runs one script of `tests/clients` with Node.js.

use seqtide_tests::Server;
use seqtide_tests::script::{run, run_against};

#[test]
fn pouchdb_syncs_live_both_ways_with_conflicts() {
    run("pouchdb.mjs");
}

#[test]
fn pouchdb_replicates_what_filters_let_pass() {
    run("pouchdb-filtered.mjs");
}

/// The drain is long enough for it to ask again meanwhile.
#[test]
fn rxdb_replicates_live_both_ways_across_a_restart() {
    run_against("rxdb.mjs", Server::launch().arg("--feeds-drain-ms=2000").start());
}

#[test]
fn eventsource_follows_across_a_restart_without_loss() {
    run("eventsource.mjs");
}

#[test]
fn a_page_notices_a_connection_that_has_died() {
    run("half-open.mjs");
}

#[test]
fn ws_follows_across_a_restart_without_loss() {
    run("ws.mjs");
}

#[test]
fn nano_reads_and_writes() {
    run("nano.mjs");
}
