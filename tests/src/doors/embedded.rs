//! The door inside the program: an engine in this process, without HTTP.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use seqtide::storage::json::{ScanLimits, scan_document};
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::rev_path::RevPath;
use seqtide::storage::model::sequence::{SeqFormat, Sequence};
use seqtide::storage::{Edit, Outcome, Write};
use seqtide::{
    Change, ChangeEvent, ChangesOptions, Database, FeedEvent, FeedKind, FeedMode, FeedOptions, Portion, RowShape, Since,
};
use serde_json::{Value, json};

use super::{Door, Item};
use crate::workload::Store;

/// A database of an engine in this process, written as `_bulk_docs` writes.
pub struct EmbeddedStore {
    database: Database,
}

impl EmbeddedStore {
    /// The store of this database.
    pub fn new(database: &Database) -> EmbeddedStore {
        EmbeddedStore { database: database.clone() }
    }
}

impl Store for EmbeddedStore {
    fn write(&self, docs: Vec<Value>, new_edits: bool) -> BoxFuture<'_, Vec<Value>> {
        async move {
            let edits: Vec<Edit> = docs.iter().map(|doc| edit(doc, new_edits)).collect();
            let ids: Vec<DocId> = edits.iter().map(|edit| edit.id().clone()).collect();
            let written = self.database.write(edits.into_iter().map(Write::Edit).collect()).await;
            let outcomes = written.expect("the engine takes it").outcomes;
            let results = ids.iter().zip(outcomes);
            results.filter_map(|(id, outcome)| result(id, outcome, new_edits)).collect()
        }
        .boxed()
    }

    fn rows(&self) -> BoxFuture<'_, Vec<Value>> {
        async move {
            let shape = RowShape { all_leaves: true, ..RowShape::default() };
            let (since, mode) = (Since::START, FeedMode::Once);
            let options = FeedOptions { since, mode, shape, ..FeedOptions::live(FeedKind::Embedded) };
            let mut feed = self.database.feed(options).await.expect("a feed");
            let mut all = Vec::new();
            while let Some(event) = feed.next().await.expect("a feed that can be read") {
                if let FeedEvent::Change(Portion::Rows(rows)) = event {
                    let row = |json: &[u8]| serde_json::from_slice(json).expect("a row is JSON");
                    all.extend(rows.iter().map(|given| row(&given.frame(shape).json())));
                }
            }
            all
        }
        .boxed()
    }
}

fn edit(doc: &Value, new_edits: bool) -> Edit {
    let scanned = scan_document(doc.to_string().as_bytes(), &ScanLimits::default()).expect("a document");
    let id = DocId::parse(&scanned.id.expect("an id")).expect("a good id");
    if new_edits {
        return Edit::interactive(id, scanned.rev, scanned.deleted, scanned.body);
    }
    let path = scanned.revisions.or_else(|| scanned.rev.map(RevPath::lone)).expect("an ancestry");
    Edit::replicated(id, path, scanned.deleted, scanned.body)
}

/// As `_bulk_docs` answers: of pushed leaves only what was refused.
fn result(id: &DocId, outcome: Outcome, new_edits: bool) -> Option<Value> {
    let id = id.as_str();
    match outcome {
        Outcome::Written { rev, .. } | Outcome::Known { rev } => {
            new_edits.then(|| json!({ "ok": true, "id": id, "rev": rev.to_string() }))
        }
        refused => Some(json!({ "id": id, "error": format!("{refused:?}") })),
    }
}

/// The stream of an engine in this process; it is cut between two items.
pub struct EmbeddedDoor {
    database: Database,
    options: ChangesOptions,
}

impl EmbeddedDoor {
    /// The stream of this database; where it starts, whoever opens it says.
    pub fn new(database: &Database, options: ChangesOptions) -> EmbeddedDoor {
        EmbeddedDoor { database: database.clone(), options }
    }
}

impl Door for EmbeddedDoor {
    fn name(&self) -> &'static str {
        "the embedded stream"
    }

    fn largest_cut(&self) -> usize {
        5
    }

    fn open(&self, since: Option<String>, cut: usize) -> BoxFuture<'_, BoxStream<'static, Item>> {
        async move {
            let since = since.map(|token| Sequence::parse(&token).expect("a token")).unwrap_or_default();
            let options = ChangesOptions { since: Since::Seq(since), ..self.options.clone() };
            let changes = self.database.changes(options).await.expect("a stream");
            changes.map(|event| item(event.expect("a stream that can be read"))).take(cut).boxed()
        }
        .boxed()
    }
}

fn item(event: ChangeEvent) -> Item {
    let token = |seq| SeqFormat::Integer.plain(seq).to_string();
    let (name, seq) = match event {
        ChangeEvent::Change(change) => return Item::Row { token: token(change.seq), row: row(&change) },
        ChangeEvent::CaughtUp { seq } => ("caught-up", seq),
        ChangeEvent::Heartbeat { seq, .. } => ("heartbeat", seq),
        ChangeEvent::Open { seq, .. } => ("opened", seq),
        ChangeEvent::Lagging { seq, .. } => ("lagging", seq),
        ChangeEvent::Live { seq } => ("live", seq),
        ChangeEvent::SnapshotEnd { seq } => ("snapshot-end", seq),
        ChangeEvent::Rewind { since, .. } => panic!("{since:?} was a token of this database"),
        ChangeEvent::Draining { seq, .. } => ("draining", seq),
        ChangeEvent::End { seq, .. } => ("end", seq),
    };
    Item::Event { name: name.to_owned(), token: Some(token(seq)), body: Value::Null }
}

/// A change as every other door writes it.
fn row(change: &Change) -> Value {
    let leaves: Vec<Value> = change.leaves.iter().map(|rev| json!({ "rev": rev.to_string() })).collect();
    let mut row = json!({ "seq": change.seq.to_integer(), "id": change.id.as_str(), "changes": leaves });
    if change.deleted {
        row["deleted"] = json!(true);
    }
    if change.left {
        row["left"] = json!(true);
    }
    row
}
