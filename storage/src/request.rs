//! A write request: what is written together, and what makes its repetition known.

use crate::codec::transaction::Transaction;
use crate::model::doc_id::DocId;
use crate::model::idempotency::{Fingerprint, FingerprintBuilder, IdempotencyKey};
use crate::model::rev::RevId;
use crate::model::sequence::Sequence;
use crate::plan::{Edit, EditKind};
use crate::write::{LocalEdit, Outcome, Write};

/// Writes that belong together, in order. A request without a key is written as often as it is sent.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// What is written.
    pub writes: Vec<Write>,
    /// What makes its repetition known.
    pub key: Option<RequestKey>,
}

impl From<Vec<Write>> for Request {
    fn from(writes: Vec<Write>) -> Request {
        Request { writes, key: None }
    }
}

impl Request {
    /// Whether all of it makes room, now or once garbage is reclaimed: it is let into the reserve of a full map. The
    /// record that a key leaves is small, and goes again, but for what it says of refusals.
    pub fn makes_room(&self) -> bool {
        self.writes.iter().all(|write| write.makes_room(self.key.is_some()))
    }
}

/// What makes a request's repetition known, and what its record keeps besides the outcomes.
#[derive(Debug, Clone)]
pub struct RequestKey {
    /// The client's name for the request.
    pub key: IdempotencyKey,
    /// Of all that the request asks for. A record with another one belongs to another request.
    pub fingerprint: Fingerprint,
    /// The ids that were made for documents which came without one: a repetition gets them back.
    pub made_ids: Vec<DocId>,
    /// When it was sent, in seconds since 1970.
    pub at_secs: u64,
}

/// What became of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestOutcome {
    /// One outcome a write, in order.
    pub outcomes: Vec<Outcome>,
    /// The highest sequence the request produced; the current one where it changed nothing.
    pub seq: Sequence,
    /// The ids that were made for its documents, when it was first sent.
    pub made_ids: Vec<DocId>,
    /// Whether it was the first with its key.
    pub attempt: Attempt,
}

/// Whether a request was the first with its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// It was, or came without a key: it was carried out.
    First,
    /// The same request was carried out before: it wrote nothing, and its outcomes are those of then.
    Replayed,
    /// Another request was carried out with its key: it wrote nothing, and has no outcomes.
    KeyReused,
    /// A document is not where one of its edits expects it to be: it wrote nothing, and has no outcomes.
    Moved,
}

impl Transaction {
    /// What a request is answered that comes with the record's key and has this fingerprint.
    pub(crate) fn answer_to(self, fingerprint: Fingerprint) -> RequestOutcome {
        let Transaction { outcomes, seq, made_ids, .. } = self;
        if self.fingerprint == fingerprint {
            RequestOutcome { outcomes, seq, made_ids, attempt: Attempt::Replayed }
        } else {
            RequestOutcome { outcomes: Vec::new(), seq, made_ids: Vec::new(), attempt: Attempt::KeyReused }
        }
    }
}

impl Fingerprint {
    /// Of writes, in order.
    pub fn of_writes(writes: &[Write]) -> Fingerprint {
        writes.iter().fold(Fingerprint::builder(), add_write).finish()
    }
}

fn add_write(parts: FingerprintBuilder, write: &Write) -> FingerprintBuilder {
    match write {
        Write::Edit(edit) => add_edit(parts, edit),
        Write::Local(LocalEdit { id, base, checked, body }) => {
            let base = base.map(|revision| format!("0-{revision}")).unwrap_or_default();
            // No body is empty text, so a deletion is told from all of them.
            let body = body.as_ref().map_or(&b""[..], |body| body.as_bytes());
            parts.part("local").part(id.name()).part(base).part([u8::from(*checked)]).part(body)
        }
        Write::Purge { id, revs } => {
            let parts = parts.part("purge").part(id.as_str()).part((revs.len() as u64).to_be_bytes());
            revs.iter().fold(parts, |parts, rev| parts.part(rev.to_string()))
        }
        Write::RevsLimit(limit) => parts.part("revs_limit").part(limit.to_be_bytes()),
        Write::Decided { outcome, .. } => parts.part("decided").part(format!("{outcome:?}")),
        Write::FeedIndex(fields) => {
            let parts = parts.part("feed_index").part((fields.len() as u64).to_be_bytes());
            fields.iter().fold(parts, |parts, field| parts.part(field))
        }
    }
}

fn add_edit(parts: FingerprintBuilder, edit: &Edit) -> FingerprintBuilder {
    let parts = match edit.kind() {
        EditKind::Interactive { parent } => {
            parts.part("edit").part(parent.as_ref().map(RevId::to_string).unwrap_or_default())
        }
        EditKind::Replicated { path } => {
            let parts = parts.part("replicated").part(path.start().to_be_bytes());
            let hashes = parts.part((path.hashes().len() as u64).to_be_bytes());
            path.hashes().iter().fold(hashes, |parts, hash| parts.part(hash.to_string()))
        }
    };
    parts.part(edit.id().as_str()).part([u8::from(edit.deleted())]).part(edit.body().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Body, ScanLimits, scan_document};
    use crate::model::doc_id::LocalId;
    use crate::model::rev_path::RevPath;

    fn edit(id: &str, parent: Option<&str>, deleted: bool, json: &str) -> Write {
        let body = scan_document(json.as_bytes(), &ScanLimits::default()).unwrap().body;
        let parent = parent.map(|rev| RevId::parse(rev).unwrap());
        Write::Edit(Edit::interactive(DocId::parse(id).unwrap(), parent, deleted, body))
    }

    fn pushed(rev: &str) -> Write {
        let path = RevPath::lone(RevId::parse(rev).unwrap());
        Write::Edit(Edit::replicated(DocId::parse("a").unwrap(), path, false, Body::empty()))
    }

    fn local(name: &str, base: Option<u64>, checked: bool, body: Option<Body>) -> Write {
        let id = LocalId::parse(&format!("_local/{name}")).unwrap().unwrap();
        Write::Local(LocalEdit { id, base, checked, body })
    }

    #[test]
    fn writes_that_differ_in_anything_have_different_fingerprints() {
        let all = [
            vec![],
            vec![edit("a", None, false, "{}")],
            vec![edit("a", None, false, "{}"), edit("a", None, false, "{}")],
            vec![edit("b", None, false, "{}")],
            vec![edit("a", Some("1-a"), false, "{}")],
            vec![edit("a", None, true, "{}")],
            vec![edit("a", None, false, r#"{"n":1}"#)],
            vec![pushed("1-a")],
            vec![pushed("2-a")],
            vec![pushed("1-b")],
            vec![local("a", None, true, Some(Body::empty()))],
            vec![local("b", None, true, Some(Body::empty()))],
            vec![local("a", Some(0), true, Some(Body::empty()))],
            vec![local("a", Some(1), true, Some(Body::empty()))],
            vec![local("a", None, false, Some(Body::empty()))],
            vec![local("a", None, true, None)],
            vec![Write::RevsLimit(1)],
            vec![Write::RevsLimit(2)],
            vec![Write::FeedIndex(vec![])],
            vec![Write::FeedIndex(vec!["a".to_owned()])],
            vec![Write::FeedIndex(vec!["a".to_owned(), "b".to_owned()])],
        ];
        for (at, one) in all.iter().enumerate() {
            let fingerprint = Fingerprint::of_writes(one);
            assert_eq!(fingerprint, Fingerprint::of_writes(&one.clone()));
            for other in &all[at + 1..] {
                assert_ne!(fingerprint, Fingerprint::of_writes(other), "{one:?} and {other:?}");
            }
        }
    }
}
