//! Real clients from npm against the real binary: each test runs one script of `tests/clients` with Node.js.

use seqtide_tests::script::run;

#[test]
fn pouchdb_syncs_live_both_ways_with_conflicts() {
    run("pouchdb.mjs");
}

#[test]
fn pouchdb_replicates_what_filters_let_pass() {
    run("pouchdb-filtered.mjs");
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
