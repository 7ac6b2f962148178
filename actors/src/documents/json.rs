//! Documents and lists of revisions as JSON.

use seqtide_storage::json::{Body, write_json_string};
use seqtide_storage::model::rev::{RevHash, RevId};

/// Writes a document: `_id`, `_rev` if it has one yet, the body's members, `_deleted`, then what `extras` writes (each
/// with a comma in front).
pub(crate) fn write_document(
    out: &mut Vec<u8>,
    id: &str,
    rev: Option<&RevId>,
    deleted: bool,
    body: &Body,
    extras: impl FnOnce(&mut Vec<u8>),
) {
    out.extend_from_slice(b"{\"_id\":");
    write_json_string(out, id);
    if let Some(rev) = rev {
        out.extend_from_slice(b",\"_rev\":");
        rev.write_json(out);
    }
    if !body.is_empty() {
        out.push(b',');
        out.extend_from_slice(body.members());
    }
    if deleted {
        out.extend_from_slice(b",\"_deleted\":true");
    }
    extras(out);
    out.push(b'}');
}

/// Writes `,"_revisions":{…}`: the generation of the newest, and the hashes, newest first.
pub(crate) fn write_revisions<'a>(out: &mut Vec<u8>, start: u64, hashes: impl Iterator<Item = &'a RevHash>) {
    out.extend_from_slice(format!(",\"_revisions\":{{\"start\":{start},\"ids\":[").as_bytes());
    for (at, hash) in hashes.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_json_string(out, &hash.to_string());
    }
    out.extend_from_slice(b"]}");
}

/// Writes `,"name":["rev",…]` unless there are none.
pub(crate) fn write_revs<'a>(out: &mut Vec<u8>, name: &str, revs: impl Iterator<Item = &'a RevId>) {
    let mut any = false;
    for rev in revs {
        if any {
            out.push(b',');
        } else {
            out.extend_from_slice(format!(",\"{name}\":[").as_bytes());
        }
        rev.write_json(out);
        any = true;
    }
    if any {
        out.push(b']');
    }
}
