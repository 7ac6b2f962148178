//! The section `[limits]`: what one client may ask for, and what all of them together may hold.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::check::{at_least, at_most, refuse_if, some_time};
use super::error::ConfigError;
use super::millis;

/// Largest value LMDB stores is 4 GiB; a document keeps clear of it.
const DOCUMENT_BYTES_CEILING: usize = 4_000_000_000;

/// An event's `id:` has a place for each of a connection's subscriptions, and must fit into a header.
const SUBSCRIPTIONS_CEILING: usize = 1_000;

/// Bounds on requests and on what waits; going over one is an error the client sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Largest document, in bytes.
    pub document_bytes_max: usize,
    /// Largest request body, in bytes.
    pub request_bytes_max: usize,
    /// Bytes of the bodies of all requests that are there at once, but for those that came in one piece.
    pub bodies_bytes_max: usize,
    /// Documents one request may name: in `docs` or `keys`, to `_revs_diff`, `_missing_revs` or `_purge`; and revisions
    /// to those.
    pub bulk_docs_max: usize,
    /// Deepest nesting of objects and arrays in a document.
    pub nesting_max: usize,
    /// Feeds open at once, over all databases.
    pub feeds_max: usize,
    /// Subscriptions of one connection to `/_feed/many`.
    pub subscriptions_max: usize,
    /// Databases open at once.
    pub databases_open_max: usize,
    /// Edits that wait for one database's writer.
    pub write_queue_edits_max: usize,
    /// Bytes of bodies, and of the `_revisions` of replicated ones, that wait for one database's writer.
    pub write_queue_bytes_max: usize,
    /// Databases one POST to `/_dbs_info` may name. Source: CouchDB configuration, `max_db_number_for_dbs_info_req`.
    pub dbs_info_max: usize,
    /// Ids one request to `/_uuids` may ask for.
    pub uuids_max: usize,
    /// Largest body of a feed request, in bytes.
    pub feed_body_bytes_max: usize,
    /// Longest wait of a write for its answer; `write_timeout_ms` in the file.
    #[serde(rename = "write_timeout_ms", with = "millis")]
    pub write_timeout: Duration,
}

impl Limits {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        at_least("limits.document_bytes_max", self.document_bytes_max, 1)?;
        at_most("limits.document_bytes_max", self.document_bytes_max, DOCUMENT_BYTES_CEILING)?;
        at_least("limits.request_bytes_max", self.request_bytes_max, 1)?;
        refuse_if(self.request_bytes_max < self.document_bytes_max, "limits.request_bytes_max", || {
            let (request, document) = (self.request_bytes_max, self.document_bytes_max);
            format!("{request} is less than limits.document_bytes_max ({document}), so such a document never fits")
        })?;
        at_least("limits.bodies_bytes_max", self.bodies_bytes_max, 1)?;
        refuse_if(self.bodies_bytes_max / 2 < self.request_bytes_max, "limits.bodies_bytes_max", || {
            let (bodies, request) = (self.bodies_bytes_max, self.request_bytes_max);
            let why = "so such a request, gzipped and not, never fits";
            format!("{bodies} is less than twice limits.request_bytes_max ({request}), {why}")
        })?;
        at_least("limits.bulk_docs_max", self.bulk_docs_max, 1)?;
        at_least("limits.nesting_max", self.nesting_max, 1)?;
        at_least("limits.feeds_max", self.feeds_max, 1)?;
        at_least("limits.subscriptions_max", self.subscriptions_max, 1)?;
        at_most("limits.subscriptions_max", self.subscriptions_max, SUBSCRIPTIONS_CEILING)?;
        at_least("limits.databases_open_max", self.databases_open_max, 1)?;
        at_least("limits.write_queue_edits_max", self.write_queue_edits_max, 1)?;
        at_least("limits.write_queue_bytes_max", self.write_queue_bytes_max, 1)?;
        at_least("limits.dbs_info_max", self.dbs_info_max, 1)?;
        at_least("limits.uuids_max", self.uuids_max, 1)?;
        at_least("limits.feed_body_bytes_max", self.feed_body_bytes_max, 1)?;
        some_time("limits.write_timeout_ms", self.write_timeout)
    }
}
