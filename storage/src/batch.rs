//! A group commit: the writes of many, planned one after the other over one state of the tables, written at once.

mod feed_index;
mod purge;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use self::feed_index::IndexUpkeep;
use self::purge::Purges;
use crate::apply::PlannedDoc;
use crate::bodies::Bodies;
use crate::change::Changed;
use crate::codec::head::DocHead;
use crate::codec::meta::Counters;
use crate::codec::{local, meta};
use crate::counts::BlockChanges;
use crate::error::StorageError;
use crate::feed_index::FeedKeys;
use crate::json::Body;
use crate::model::body_place::{BodyKey, BodyPlace};
use crate::model::doc_id::{DocId, LocalId};
use crate::model::rev::RevId;
use crate::model::rev_tree::{Growing, RevTree};
use crate::model::sequence::Sequence;
use crate::plan::{Edit, Plan, make};
use crate::request::{Attempt, Request, RequestOutcome};
use crate::rows::Rows;
use crate::tables::{META_COUNTERS, META_REVS_LIMIT, Table};
use crate::times::{Brought, Times};
use crate::transactions::Transactions;
use crate::view::View;
use crate::write::{LocalEdit, Outcome, Write};

/// What a commit did.
#[derive(Debug)]
pub struct Commit {
    /// One a request, in order.
    pub requests: Vec<RequestOutcome>,
    /// What came, in the order of its sequences. A row that the same commit superseded is not among it.
    pub changes: Vec<Changed>,
    /// Where rows of earlier commits were that are no more: others supersede them, or their documents have vanished.
    pub gone: Vec<Sequence>,
    /// The documents that were purged and have no row any more.
    pub vanished: Vec<DocId>,
    /// Whether a purge may have left bodies that only a sweep finds: those of revisions that stemming had cut off.
    pub sweep: bool,
    /// Whether the index of the feed is of other fields now, so that [`crate::Store::tend_feed_index`] has work.
    pub reindex: bool,
    /// The counters after it.
    pub counters: Counters,
}

/// A batch on its way: what the tables have, and what the writes so far make of it.
pub(crate) struct Batch<'txn> {
    view: View<'txn>,
    counters: Counters,
    revs_limit: u32,
    /// What became of the requests that are planned.
    requests: Vec<RequestOutcome>,
    drafts: HashMap<DocId, Draft>,
    locals: HashMap<LocalId, Option<u64>>,
    purges: Purges,
    index: IndexUpkeep,
    transactions: Transactions,
    moment: Moment,
    rows: Rows,
}

/// When a batch is made, and what is known of when others were.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Seconds since 1970.
    pub now: u64,
    pub times: Times,
    /// The update sequence before the batch.
    behind: Sequence,
}

impl Moment {
    pub fn new(now: u64, times: Times) -> Moment {
        Moment { now, times, behind: Sequence::ZERO }
    }
}

/// A document under edit.
struct Draft {
    before: Option<DocHead>,
    /// The tree as it was when its history was put at hand; `None` before. What was planned before that is in it, which
    /// changes no line of a leaf that stays: that needs all history.
    whole: Option<RevTree>,
    tree: Growing,
    /// In the order of their keys.
    bodies: Vec<(BodyKey, Body)>,
    /// Bodies in the table that go with purged revisions, with their lengths in bytes.
    erased: Vec<(BodyKey, u64)>,
    /// The sequence it moved to last, and the request that moved it; `None` while nothing changed.
    moved: Option<(Sequence, usize)>,
}

impl<'txn> Batch<'txn> {
    /// Keyed requests find, and leave, records among `transactions`. The index of the feed is kept by `keys`.
    pub fn new(
        view: View<'txn>,
        transactions: Transactions,
        keys: &'static dyn FeedKeys,
        moment: Moment,
    ) -> Result<Batch<'txn>, StorageError> {
        let revs_limit = view.expect(Table::Meta, META_REVS_LIMIT, meta::decode_number)?;
        let counters = view.counters()?;
        Ok(Batch {
            view,
            index: IndexUpkeep::new(view, keys, counters.update_seq)?,
            counters,
            revs_limit: u32::try_from(revs_limit).unwrap_or(u32::MAX),
            requests: Vec::new(),
            drafts: HashMap::new(),
            locals: HashMap::new(),
            purges: Purges::default(),
            transactions,
            moment: Moment { behind: counters.update_seq, ..moment },
            rows: Rows::default(),
        })
    }

    /// Plans requests, each on what the ones before made.
    pub fn plan(&mut self, requests: &[Request]) -> Result<(), StorageError> {
        self.requests.reserve_exact(requests.len());
        self.drafts.reserve(requests.iter().map(|request| request.writes.len()).sum());
        for request in requests {
            let outcome = self.plan_request(request)?;
            self.requests.push(outcome);
        }
        Ok(())
    }

    /// The number of the request that is being planned.
    fn number(&self) -> usize {
        self.requests.len()
    }

    /// Plans a request, unless one with its key was carried out before: then that one's outcomes are its own.
    fn plan_request(&mut self, request: &Request) -> Result<RequestOutcome, StorageError> {
        if let Some(key) = &request.key
            && let Some(first) = self.transactions.answer(self.view, key)?
        {
            return Ok(first.answer_to(key.fingerprint));
        }
        if self.any_moved(&request.writes)? {
            let (outcomes, made_ids, seq) = (Vec::new(), Vec::new(), self.counters.update_seq);
            return Ok(RequestOutcome { outcomes, seq, made_ids, attempt: Attempt::Moved });
        }
        let Some(key) = &request.key else { return self.plan_writes(&request.writes, Vec::new()) };
        let done = self.plan_writes(&request.writes, key.made_ids.clone())?;
        self.transactions.keep(key, &done);
        Ok(done)
    }

    /// Whether a document is not where an edit of it, or what was decided of one, expects it to be.
    fn any_moved(&mut self, writes: &[Write]) -> Result<bool, StorageError> {
        for write in writes {
            let is_as_expected = match write {
                Write::Edit(edit) if edit.expected().is_some() => {
                    let draft = Draft::in_batch(&mut self.drafts, self.view, edit.id())?;
                    edit.expects(draft.at(), &draft.tree)
                }
                Write::Decided { expected: Some((id, at)), .. } => {
                    Draft::in_batch(&mut self.drafts, self.view, id)?.at() == *at
                }
                _ => true,
            };
            if !is_as_expected {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Plans a request's writes: its documents get their sequences in the order in which it first changes them, one
    /// each.
    fn plan_writes(&mut self, writes: &[Write], made_ids: Vec<DocId>) -> Result<RequestOutcome, StorageError> {
        let mut outcomes = Vec::with_capacity(writes.len());
        for write in writes {
            outcomes.push(match write {
                Write::Edit(edit) => self.plan_edit(edit)?,
                Write::Local(edit) => self.plan_local(edit)?,
                Write::Purge { id, revs } => self.plan_purge(id, revs)?,
                Write::RevsLimit(limit) => self.set_revs_limit(*limit),
                // Whatever is said of it, it changes nothing.
                Write::Decided { outcome, .. } if outcome.is_change() => Outcome::Conflict,
                Write::Decided { outcome, .. } => outcome.clone(),
                Write::FeedIndex(fields) => self.index.redefine(fields),
            });
        }
        let produced = outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Written { seq, .. } => Some(*seq),
            Outcome::Purged { seq, .. } => *seq,
            _ => None,
        });
        let seq = produced.max().unwrap_or(self.counters.update_seq);
        Ok(RequestOutcome { outcomes, seq, made_ids, attempt: Attempt::First })
    }

    fn plan_edit(&mut self, edit: &Edit) -> Result<Outcome, StorageError> {
        let (view, request) = (self.view, self.number());
        let draft = Draft::in_batch(&mut self.drafts, view, edit.id())?;
        let seq = draft.seq_in(request, self.counters.update_seq);
        let place = draft.place_at(seq, edit.body());
        let made = match make(&mut draft.tree, edit, place, self.revs_limit) {
            Ok(made) => made,
            Err(_history_needed) => {
                draft.load_history(view, edit.id())?;
                make(&mut draft.tree, edit, place, self.revs_limit).unwrap_or(Plan::Conflict)
            }
        };
        Ok(match made {
            Plan::Conflict => Outcome::Conflict,
            Plan::Known { rev } => Outcome::Known { rev },
            Plan::Changed { rev } => {
                draft.take_body(&rev, place, edit.body());
                draft.moved = Some((seq, request));
                self.counters.update_seq = self.counters.update_seq.max(seq);
                Outcome::Written { rev, seq }
            }
        })
    }

    /// Source: CouchDB `couch_db_updater:increment_local_doc_revs`, with the check that it lacks.
    fn plan_local(&mut self, edit: &LocalEdit) -> Result<Outcome, StorageError> {
        let key = edit.id.name().as_bytes();
        let stored = match self.locals.get(&edit.id) {
            Some(revision) => *revision,
            None => self.view.read(Table::Local, key, local::decode)?.map(|(revision, _)| revision),
        };
        if edit.checked && stored.is_some() && stored != edit.base {
            return Ok(Outcome::Conflict);
        }
        let revision = match (&edit.body, stored) {
            (None, None) => return Ok(Outcome::Missing),
            (None, Some(_)) => None,
            (Some(_), _) => Some(edit.base.unwrap_or(0).saturating_add(1)),
        };
        match (&edit.body, revision) {
            (Some(body), Some(revision)) => self.rows.put(Table::Local, key, local::encode(revision, body.as_bytes())),
            _ => self.rows.delete(Table::Local, key),
        }
        self.locals.insert(edit.id.clone(), revision);
        Ok(Outcome::Local { revision: revision.unwrap_or(0) })
    }

    fn set_revs_limit(&mut self, limit: u32) -> Outcome {
        self.revs_limit = limit.max(1);
        self.rows.put(Table::Meta, META_REVS_LIMIT, meta::encode_number(u64::from(self.revs_limit)));
        Outcome::Done
    }

    /// Turns what was planned into rows.
    pub fn finish(mut self) -> Result<(Rows, Finished), StorageError> {
        let mut docs: Vec<PlannedDoc> = (self.drafts.into_iter())
            .filter_map(|(id, draft)| {
                let (seq, _) = draft.moved?;
                let Draft { before, whole, mut tree, bodies, erased, .. } = draft;
                Some(PlannedDoc { id, before, whole, tree: tree.whole().clone(), seq, bodies, erased })
            })
            .collect();
        docs.sort_unstable_by_key(|doc| doc.seq);
        let mut rows = self.rows;
        rows.reserve(docs.iter().map(PlannedDoc::row_bytes).sum());
        let mut blocks = BlockChanges::default();
        let mut changes = Vec::with_capacity(docs.len());
        let (mut gone, mut vanished) = (Vec::new(), Vec::new());
        let (mut index, moves) = (self.index.rows(self.view), !docs.is_empty());
        for doc in docs {
            doc.write(&mut rows);
            index.leave(&doc)?;
            count(&mut self.counters, &doc);
            if let Some(before) = &doc.before {
                blocks.row_left(before.seq);
                gone.push(before.seq);
            }
            if doc.vanishes() {
                vanished.push(doc.id);
                continue;
            }
            blocks.row_came(doc.seq);
            let changed = changed(self.view, doc)?;
            index.come(&changed)?;
            changes.push(changed);
        }
        index.write(&mut rows);
        blocks.write(self.view, &mut rows)?;
        self.purges.write(self.view, &mut rows)?;
        let oldest_record = self.transactions.write(self.view, &mut rows)?;
        let Moment { now, mut times, behind } = self.moment;
        if moves {
            rows.put(Table::Meta, META_COUNTERS, meta::encode_counters(&self.counters));
            let brought = Brought { behind, newest: self.counters.update_seq };
            times = times.note(self.view, now, brought, &mut rows)?;
        }
        let (requests, counters) = (self.requests, self.counters);
        let (sweep, reindex) = (self.purges.stemmed, self.index.is_redefined());
        let commit = Commit { requests, changes, gone, vanished, sweep, reindex, counters };
        Ok((rows, Finished { commit, blocks, times, oldest_record }))
    }
}

/// A planned batch: what its commit does, and what is then to be known for the next one.
pub(crate) struct Finished {
    pub commit: Commit,
    pub blocks: BlockChanges,
    pub times: Times,
    /// No record of a keyed request has a lower order, but damaged ones.
    pub oldest_record: u64,
}

impl Draft {
    fn of(before: Option<DocHead>) -> Draft {
        let tree = before.as_ref().map(|head| head.tree.clone()).unwrap_or_default();
        let tree = Growing::from(tree);
        Draft { before, whole: None, tree, bodies: Vec::new(), erased: Vec::new(), moved: None }
    }

    /// A document's draft in a batch; from the tables where the batch has none yet.
    fn in_batch<'a>(
        drafts: &'a mut HashMap<DocId, Draft>,
        view: View<'_>,
        id: &DocId,
    ) -> Result<&'a mut Draft, StorageError> {
        Ok(match drafts.entry(id.clone()) {
            Entry::Occupied(draft) => draft.into_mut(),
            Entry::Vacant(slot) => slot.insert(Draft::of(view.head(id)?)),
        })
    }

    /// The document's latest sequence; zero when it never was.
    fn at(&self) -> Sequence {
        let before = self.before.as_ref().map_or(Sequence::ZERO, |head| head.seq);
        self.moved.map_or(before, |(seq, _)| seq)
    }

    /// The sequence a request moves the document to: the one it has moved it to already, or the next.
    fn seq_in(&self, request: usize, update_seq: Sequence) -> Sequence {
        match self.moved {
            Some((seq, by)) if by == request => seq,
            _ => update_seq.next(),
        }
    }

    /// Where a body lies if its edit changes the tree: the next ordinal at the sequence.
    fn place_at(&self, seq: Sequence, body: &Body) -> BodyPlace {
        if body.is_empty() {
            return BodyPlace::Empty;
        }
        let last = self.bodies.last().filter(|(key, _)| key.seq == seq);
        let ordinal = last.map_or(0, |(key, _)| key.ordinal.saturating_add(1));
        let bytes = u32::try_from(body.as_bytes().len()).unwrap_or(u32::MAX);
        BodyPlace::Stored { key: BodyKey { seq, ordinal }, bytes }
    }

    /// Takes the body of an edit that was made, if its revision has it in the tree.
    fn take_body(&mut self, rev: &RevId, place: BodyPlace, body: &Body) {
        if let BodyPlace::Stored { key, .. } = place
            && self.tree.tip(rev).is_some_and(|tip| tip.body == place)
        {
            if self.bodies.is_empty() {
                // Most documents bring no more than one.
                self.bodies.reserve_exact(1);
            }
            self.bodies.push((key, body.clone()));
        }
    }

    /// Puts all ancestors at hand.
    fn load_history(&mut self, view: View<'_>, id: &DocId) -> Result<(), StorageError> {
        let tree = view.with_history(id, self.tree.whole())?;
        self.whole = Some(tree.clone());
        self.tree.set(tree);
        Ok(())
    }
}

fn count(counters: &mut Counters, doc: &PlannedDoc) {
    let change = doc.counts_change();
    counters.docs = counters.docs.saturating_add_signed(change.docs);
    counters.deleted_docs = counters.deleted_docs.saturating_add_signed(change.deleted_docs);
    counters.body_bytes = counters.body_bytes.saturating_add_signed(change.body_bytes);
    counters.garbage_bytes = counters.garbage_bytes.saturating_add_signed(change.garbage_bytes);
}

fn changed(view: View<'_>, doc: PlannedDoc) -> Result<Changed, StorageError> {
    let previous = doc.previous();
    let PlannedDoc { seq, id, tree, bodies, .. } = doc;
    let place = tree.winner().map_or(BodyPlace::Unknown, |winner| winner.body);
    let brought = match place {
        BodyPlace::Stored { key, .. } => bodies.into_iter().find(|(at, _)| *at == key).map(|(_, body)| body),
        _ => None,
    };
    let body = match brought {
        Some(body) => Some(body),
        None => Bodies::new(view).read(place)?,
    };
    Ok(Changed { seq, id, tree, body, previous })
}

#[cfg(test)]
mod tests;
