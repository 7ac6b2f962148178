//! One row of a listing.

use seqtide::storage::json::write_json_string;
use seqtide::storage::{Change, LeafRev, LocalDoc};
use seqtide::{RowShape, write_row_document};

use crate::routes::local;

/// Appends the row of a document.
pub fn write_doc(out: &mut Vec<u8>, doc: &Change, shape: RowShape) {
    let LeafRev { rev, deleted } = doc.winner();
    write_start(out, doc.id.as_str(), &rev.to_string());
    out.extend_from_slice(if *deleted { b",\"deleted\":true}" } else { b"}" });
    if shape.doc && *deleted {
        out.extend_from_slice(b",\"doc\":null");
    } else if shape.doc {
        out.extend_from_slice(b",\"doc\":");
        write_row_document(out, doc, shape);
    }
    out.push(b'}');
}

/// Appends the row of a `_local` document.
pub fn write_local(out: &mut Vec<u8>, doc: &LocalDoc, shape: RowShape) {
    let LocalDoc { name, revision, body } = doc;
    let id = format!("_local/{name}");
    write_start(out, &id, &format!("0-{revision}"));
    out.push(b'}');
    if shape.doc {
        out.extend_from_slice(b",\"doc\":");
        local::write_document(out, &id, *revision, body);
    }
    out.push(b'}');
}

/// Appends the row of a key that is no document's id.
pub fn write_missing(out: &mut Vec<u8>, key: &str) {
    out.extend_from_slice(b"{\"key\":");
    write_json_string(out, key);
    out.extend_from_slice(b",\"error\":\"not_found\"}");
}

/// `{"id":…,"key":…,"value":{"rev":…`
fn write_start(out: &mut Vec<u8>, id: &str, rev: &str) {
    out.extend_from_slice(b"{\"id\":");
    write_json_string(out, id);
    out.extend_from_slice(b",\"key\":");
    write_json_string(out, id);
    out.extend_from_slice(b",\"value\":{\"rev\":");
    write_json_string(out, rev);
}
