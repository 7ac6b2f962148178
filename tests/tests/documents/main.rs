//! The document API: what CouchDB's documents, revisions and bulk calls promise, by example.

mod all_docs;
mod batch;
mod bodies;
mod bulk;
mod bulk_get;
mod compact;
mod databases;
mod errors;
mod ids;
mod listings;
mod local;
mod multipart;
mod plain_put;
mod purge;
mod read;
mod replicated;
mod requests;
mod revs_diff;
mod server;
mod transcripts;
mod write;

use seqtide_tests::database::fresh;

const CONFLICT: (u16, &str, &str) = (409, "conflict", "Document update conflict.");
const MISSING: (u16, &str, &str) = (404, "not_found", "missing");
const DELETED: (u16, &str, &str) = (404, "not_found", "deleted");
const BAD_REV: (u16, &str, &str) = (400, "bad_request", "Invalid rev format");
