//! Random writes against a model that knows nothing of tables, chunks or leaves: each document is a set of revisions,
//! each with its parent if that was ever told.

mod documents;
mod steps;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use proptest::prelude::*;
use proptest::sample::Index;
use seqtide_storage::model::body_place::BodyPlace;
use seqtide_storage::model::doc_id::LocalId;
use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{Attempt, Change, Commit, LocalEdit, Outcome, PageLimits, Request, RequestOutcome, Write};

use crate::db::{Db, NO_LIMITS, body, id, line, shown, small};
use crate::feed_index::{agrees_with_a_scan, index, tend};
use crate::transactions::keyed;
use documents::{Document, Effect};
use steps::{Op, Step, Truth, doc_name, step};

/// All that a store should say.
#[derive(Default)]
struct Model {
    documents: HashMap<String, Document>,
    locals: BTreeMap<String, (u64, String)>,
    /// The latest sequence of each document.
    seqs: HashMap<String, Sequence>,
    update_seq: Sequence,
    purge_seq: u64,
    /// Requests with a key that changed something, and what they were answered.
    kept: Vec<(Request, RequestOutcome)>,
    keys: u64,
}

impl Model {
    /// Plans a request as the store should; gives its writes and what should become of them.
    fn request(&mut self, ops: &[Op], truth: &mut Truth) -> (Vec<Write>, Vec<Outcome>) {
        let mut moved = HashMap::new();
        let mut expected = Vec::new();
        let mut writes = Vec::new();
        for op in ops {
            let (write, outcome) = match op {
                Op::Local { name, fresh, json } => self.local(name, *fresh, json.as_deref()),
                Op::Purge { doc, leaves, others } => {
                    let name = doc_name(*doc);
                    let document = self.documents.entry(name.clone()).or_default();
                    let revs = truth.to_purge(*doc, document, leaves, others);
                    let purged = document.purge(&revs);
                    let seq = (!purged.is_empty()).then(|| self.move_document(&name, &mut moved));
                    self.purge_seq += u64::from(seq.is_some());
                    let write = Write::Purge { id: id(&name), revs };
                    (write, Outcome::Purged { revs: purged, seq })
                }
                Op::Edit(edit) => {
                    let doc = edit.doc();
                    let document = self.documents.entry(doc.clone()).or_default();
                    let proposed = edit.proposed(document, truth);
                    let outcome = match document.take(&proposed) {
                        Effect::Conflict => Outcome::Conflict,
                        Effect::Known => Outcome::Known { rev: proposed.rev() },
                        Effect::Changed(rev) => {
                            let seq = self.move_document(&doc, &mut moved);
                            Outcome::Written { rev, seq }
                        }
                    };
                    (Write::Edit(proposed.edit(id(&doc))), outcome)
                }
            };
            writes.push(write);
            expected.push(outcome);
        }
        (writes, expected)
    }

    /// Moves a document to the sequence it has in its request, and takes its row away if nothing is left of it.
    fn move_document(&mut self, doc: &str, moved: &mut HashMap<String, Sequence>) -> Sequence {
        let seq = *moved.entry(doc.to_owned()).or_insert_with(|| self.update_seq.next());
        self.update_seq = self.update_seq.max(seq);
        self.seqs.insert(doc.to_owned(), seq);
        if self.documents[doc].is_new() {
            self.seqs.remove(doc);
        }
        seq
    }

    /// Gives a request a key nobody had.
    fn keyed(&mut self, writes: Vec<Write>) -> Request {
        self.keys += 1;
        keyed(&format!("key-{}", self.keys), self.keys, writes)
    }

    /// Notes what became of requests.
    fn keep(&mut self, sent: Vec<Request>, commit: &Commit) {
        for (request, outcome) in sent.into_iter().zip(&commit.requests) {
            if request.key.is_some() && outcome.outcomes.iter().any(Outcome::is_change) {
                self.kept.push((request, outcome.clone()));
            }
        }
    }

    /// Sends a request again: nothing comes of it, and its answer is that of the first time, unless it comes with the
    /// key of another one.
    fn repeat(&self, db: &Db, at: &Index, key_of: Option<&Index>) {
        if self.kept.is_empty() {
            return;
        }
        let (mut request, first) = at.get(&self.kept).clone();
        let other = key_of.map(|other| &other.get(&self.kept).0).filter(|other| !is_same(other, &request));
        if let (Some(key), Some(other)) = (&mut request.key, other.and_then(|other| other.key.as_ref())) {
            key.key = other.key.clone();
        }
        let commit = db.send(&[request]);
        assert!(commit.changes.is_empty());
        let [answer] = &commit.requests[..] else { panic!("{commit:?}") };
        match other {
            Some(_) => assert_eq!((answer.attempt, &answer.outcomes), (Attempt::KeyReused, &Vec::new())),
            None => assert_eq!(*answer, RequestOutcome { attempt: Attempt::Replayed, ..first }),
        }
    }

    fn local(&mut self, name: &str, fresh: bool, json: Option<&str>) -> (Write, Outcome) {
        let stored = self.locals.get(name).map(|(revision, _)| *revision);
        let base = if fresh { stored } else { Some(999) };
        let edit = LocalEdit { id: local_id(name), base, checked: true, body: json.map(body) };
        let outcome = match (stored, json) {
            (Some(_), _) if !fresh => Outcome::Conflict,
            (None, None) => Outcome::Missing,
            (Some(_), None) => {
                self.locals.remove(name);
                Outcome::Local { revision: 0 }
            }
            (_, Some(json)) => {
                let revision = base.unwrap_or(0) + 1;
                self.locals.insert(name.to_owned(), (revision, json.to_owned()));
                Outcome::Local { revision }
            }
        };
        (Write::Local(edit), outcome)
    }

    fn check(&self, db: &Db) {
        let report = db.store.check().unwrap();
        assert_eq!((report.problems, report.transactions), (Vec::new(), self.kept.len() as u64));
        let live = self.documents.values().filter(|document| document.is_live()).count() as u64;
        let there = self.documents.values().filter(|document| !document.is_new()).count() as u64;
        let counters = db.counters();
        assert_eq!((counters.docs, counters.deleted_docs), (live, there - live));
        assert_eq!(counters.update_seq, self.update_seq);
        let body_bytes: u64 = self.documents.values().map(Document::leaf_bytes).sum();
        assert_eq!(counters.body_bytes, body_bytes);
        assert_eq!(db.snapshot().purge_seq().unwrap(), self.purge_seq);
        self.check_feed(db);
        self.check_bodies(db);
        self.documents.iter().filter(|(_, document)| !document.is_new()).for_each(|(doc, document)| {
            check_document(db, doc, document);
        });
        for name in ["x", "y"] {
            let stored = db.snapshot().local(&local_id(name)).unwrap();
            let expected = self.locals.get(name).map(|(revision, json)| (*revision, body(json)));
            assert_eq!(stored, expected);
        }
    }

    /// No body is stored that no revision speaks of: what was purged is gone. (Nothing is stemmed here.)
    fn check_bodies(&self, db: &Db) {
        let documents = self.documents.iter().filter(|(_, document)| !document.is_new());
        let mut bodies = HashSet::new();
        for leaf in documents.flat_map(|(doc, _)| db.whole_tree(doc).leaves().to_vec()) {
            let places = leaf.ancestors.recent.iter().map(|ancestor| ancestor.body).chain([leaf.body]);
            bodies.extend(places.filter_map(|place| match place {
                BodyPlace::Stored { key, .. } if db.body_at(place).is_some() => Some(key),
                _ => None,
            }));
        }
        assert_eq!(db.store.check().unwrap().bodies, bodies.len() as u64);
    }

    fn check_feed(&self, db: &Db) {
        let mut places: Vec<_> = self.seqs.iter().map(|(doc, seq)| (*seq, doc.clone())).collect();
        places.sort();
        let feed = db.feed();
        let found: Vec<_> = feed.iter().map(|change| (change.seq, change.id.to_string())).collect();
        assert_eq!(found, places);
        for change in &feed {
            let document = &self.documents[change.id.as_str()];
            let leaves: Vec<_> = change.leaves.iter().map(|leaf| (leaf.rev.clone(), leaf.deleted)).collect();
            assert_eq!(
                leaves,
                document.leaves().iter().map(|leaf| (leaf.rev.clone(), leaf.deleted)).collect::<Vec<_>>()
            );
            assert_eq!(change.body, document.winner_body());
        }
        let snapshot = db.snapshot();
        for (after, rows) in found.iter().map(|(seq, _)| *seq).zip((0..found.len() as u64).rev()) {
            assert_eq!(snapshot.rows_after(after).unwrap(), rows);
        }
    }
}

fn check_document(db: &Db, doc: &str, document: &Document) {
    let tree = db.whole_tree(doc);
    let leaves = document.leaves();
    assert_eq!(tree.leaves().len(), leaves.len());
    for (found, expected) in tree.leaves().iter().zip(leaves) {
        assert_eq!((&found.rev, found.deleted), (&expected.rev, expected.deleted));
        assert_eq!(line(found), expected.line);
        assert_eq!(db.body_at(found.body), Some(expected.body));
    }
}

fn is_same(one: &Request, other: &Request) -> bool {
    let fingerprint = |request: &Request| request.key.as_ref().map(|key| key.fingerprint);
    fingerprint(one) == fingerprint(other)
}

fn local_id(name: &str) -> LocalId {
    LocalId::parse(&format!("_local/{name}")).unwrap().unwrap()
}

/// Sweeps from wherever the last slice ended, twice to the end; gives the bytes freed.
fn reclaim_all(db: &Db) -> u64 {
    let (mut freed, mut ends) = (0, 0);
    while ends < 2 {
        let slice = db.reclaim(7);
        freed += slice.bytes;
        ends += u32::from(slice.swept);
    }
    freed
}

fn seqs(feed: &[Change]) -> BTreeSet<Sequence> {
    feed.iter().map(|row| row.seq).collect()
}

/// Values of the indexed members, and one that no document has.
const VALUES: [&str; 4] = ["\"x\"", "\"xx\"", "\"xxx\"", "1"];

proptest! {
    #![proptest_config(crate::db::cases(96))]

    #[test]
    fn a_store_agrees_with_a_plain_model(steps in prop::collection::vec(step(), 1..40), cut: Index) {
        let (mut db, mut model, mut truth) = (Db::with(small()), Model::default(), Truth::default());
        for step in &steps {
            match step {
                Step::Commit(requests) => {
                    let planned = requests.iter().map(|(ops, keyed)| {
                        let (writes, expected) = model.request(ops, &mut truth);
                        (if *keyed { model.keyed(writes) } else { writes.into() }, expected)
                    });
                    let (sent, expected): (Vec<_>, Vec<_>) = planned.unzip();
                    let before = db.feed();
                    let commit = db.send(&sent);
                    model.keep(sent, &commit);
                    let found: Vec<_> = commit.requests.into_iter().map(|request| request.outcomes).collect();
                    prop_assert_eq!(found, expected);
                    let feed = db.feed();
                    prop_assert_eq!(&shown(&commit.changes)[..], &feed[feed.len() - commit.changes.len()..]);
                    let gone = |change: &Change| feed.iter().all(|row| row.id != change.id);
                    prop_assert!(before.iter().filter(|row| gone(row)).all(|row| commit.vanished.contains(&row.id)));
                    prop_assert!(commit.vanished.iter().all(|id| feed.iter().all(|row| row.id != *id)));
                    let gone: BTreeSet<_> = seqs(&before).difference(&seqs(&feed)).copied().collect();
                    prop_assert_eq!(commit.gone.len(), gone.len());
                    prop_assert_eq!(BTreeSet::from_iter(commit.gone), gone);
                }
                Step::Repeat { request, key_of } => model.repeat(&db, request, key_of.as_ref()),
                Step::Reopen => db = db.reopen(),
                Step::Reclaim(rows_max) => drop(db.reclaim(*rows_max)),
                Step::Index(fields) => drop(db.write(index(fields))),
                Step::Tend(rows_max) => {
                    db.store.tend_feed_index(PageLimits { rows_max: *rows_max, ..NO_LIMITS }).unwrap();
                }
                Step::RaiseIncarnation => {
                    model.update_seq.incarnation += 1;
                    db.store.raise_incarnation(model.update_seq.incarnation).unwrap();
                }
            }
        }
        model.check(&db);
        agrees_with_a_scan(&db, &VALUES, cut);
        tend(&db.store, 3);
        agrees_with_a_scan(&db, &VALUES, cut);
        let garbage = db.counters().garbage_bytes;
        prop_assert_eq!((reclaim_all(&db), db.counters().garbage_bytes), (garbage, 0));
        model.check(&db);
    }
}
