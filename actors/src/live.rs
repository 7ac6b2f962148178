//! What a database shows to feeds: the tail, whom a commit wakes, and when feeds end.

use std::collections::{HashMap, VecDeque};
use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use seqtide_storage::Changed;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use tokio::sync::watch;

use crate::end_reason::EndReason;
use crate::error::Error;
use crate::filter::Filter;
use crate::leaving::Leaving;
use crate::matcher::{Matcher, Wake};
use crate::metrics::FilterMetrics;
use crate::rounds::Rounds;
use crate::row::Row;
use crate::tail::Tail;

pub(crate) struct Live {
    tail: RwLock<Tail>,
    matcher: Matcher,
    counted: FilterMetrics,
    /// The rounds of its feeds, which answers to writes keep step with.
    pub rounds: Arc<Rounds>,
    ended: watch::Sender<Option<EndReason>>,
    format: SeqFormat,
    /// How many commits have changed design documents.
    design_changes: AtomicU64,
    purged: Mutex<Purged>,
    leaving: Arc<Leaving>,
    /// Tells the engine of a change.
    announce: Box<dyn Fn() + Send + Sync>,
}

/// The purges of late.
#[derive(Default)]
struct Purged {
    /// How many there were.
    count: u64,
    /// Documents and sequences, the newest last.
    newest: VecDeque<(DocId, Sequence)>,
}

/// Most purges remembered: pages that are read meanwhile are given without what they took away.
const PURGED_MAX: usize = 10_000;

impl Live {
    /// Of a database whose update sequence is `newest`; its tail takes at most `tail_bytes_max`, a round of its feeds
    /// is to take `round` at most, and its changes are announced beyond it.
    pub fn new(
        newest: Sequence,
        format: SeqFormat,
        tail_bytes_max: usize,
        round: Duration,
        announce: impl Fn() + Send + Sync + 'static,
    ) -> Live {
        Live {
            tail: RwLock::new(Tail::new(newest, tail_bytes_max)),
            matcher: Matcher::new(newest),
            counted: FilterMetrics::default(),
            rounds: Arc::new(Rounds::new(round)),
            ended: watch::Sender::new(None),
            format,
            design_changes: AtomicU64::new(0),
            purged: Mutex::default(),
            leaving: Leaving::new(newest),
            announce: Box::new(announce),
        }
    }

    /// Makes a commit visible to feeds, then wakes those it concerns. A document that has vanished concerns nobody: it
    /// has no row any more. `purged` are the documents that it purged, and at which sequences.
    pub fn publish(
        &self,
        mut changes: Vec<Changed>,
        gone: &[Sequence],
        vanished: &[DocId],
        purged: impl IntoIterator<Item = (DocId, Sequence)>,
        newest: Sequence,
    ) {
        self.leaving.committed(&changes);
        let changes_design = changes.iter().map(|changed| &changed.id).chain(vanished).any(DocId::is_design);
        let is_news = !changes.is_empty() || !vanished.is_empty();
        let is_wanted = self.matcher.is_anybody_there() || self.tail.read().keeps_rows();
        // Nobody waits for the tail while they are made, unless somebody joins just then.
        let mut rows = if is_wanted { self.rows_of(take(&mut changes)) } else { Vec::new() };
        let mut tail = self.tail.write();
        // Who joins from here on begins at the newest row, or further back, where the disk has them.
        let is_anybody_there = self.matcher.is_anybody_there();
        if is_anybody_there {
            rows.extend(self.rows_of(take(&mut changes)));
        }
        if changes.is_empty() {
            tail.push(rows.iter().cloned(), gone, newest);
        } else {
            tail.pass_over(newest);
        }
        match is_anybody_there {
            true => tail.note_followed(),
            false => tail.shorten(rows.len()),
        }
        // Counted when there is nothing of them to be read any more: who has read when they were counted need not look
        // again.
        self.count_purged(purged);
        drop(tail);
        if changes_design {
            self.design_changes.fetch_add(1, Ordering::Release);
        }
        self.matcher.publish(&rows, newest, &self.counted);
        if is_news {
            (self.announce)();
        }
    }

    fn rows_of(&self, changes: Vec<Changed>) -> Vec<Arc<Row>> {
        changes.into_iter().map(|changed| Arc::new(Row::new(changed.into(), self.format))).collect()
    }

    /// The tail. It is held for as long as it takes to copy a page of pointers.
    pub fn tail(&self) -> RwLockReadGuard<'_, Tail> {
        self.tail.read()
    }

    /// The feeds that tell what leaves.
    pub fn leaving(&self) -> &Arc<Leaving> {
        &self.leaving
    }

    /// The update sequence, as far as feeds can see.
    pub fn newest(&self) -> Sequence {
        self.tail().newest()
    }

    fn count_purged(&self, documents: impl IntoIterator<Item = (DocId, Sequence)>) {
        let mut purged = self.purged.lock();
        for document in documents {
            purged.count += 1;
            if purged.newest.len() == PURGED_MAX {
                purged.newest.pop_front();
            }
            purged.newest.push_back(document);
        }
    }

    /// How often something was purged: what was read when it was as often may be given.
    pub fn purges(&self) -> u64 {
        self.purged.lock().count
    }

    /// What was purged since it was so often, and at which sequence; `None` when that is too much to be remembered.
    pub fn purged_since(&self, purges: u64) -> Option<HashMap<DocId, Sequence>> {
        let purged = self.purged.lock();
        let since = usize::try_from(purged.count - purges).ok()?;
        let first = purged.newest.len().checked_sub(since)?;
        Some(purged.newest.range(first..).cloned().collect())
    }

    /// How many commits have changed design documents: while this stays the same, so do they.
    pub fn design_changes(&self) -> u64 {
        self.design_changes.load(Ordering::Acquire)
    }

    /// Up to where every change has woken whom it concerns.
    pub fn examined(&self) -> Sequence {
        self.matcher.examined()
    }

    /// Waits until that is so up to a sequence.
    pub fn reached(&self, seq: Sequence) -> impl Future<Output = ()> + Send + 'static {
        self.matcher.reached(seq)
    }

    /// What its filters count.
    pub fn counted(&self) -> &FilterMetrics {
        &self.counted
    }

    /// Waits from now on for what passes the filter, which sees the winner or all leaves.
    pub fn join(&self, filter: &Filter, all_leaves: bool) -> Wake {
        self.matcher.join(filter, all_leaves)
    }

    /// Ends every feed, the ones to come too.
    pub fn end(&self, reason: EndReason) {
        self.ended.send_if_modified(|ended| ended.is_none().then(|| *ended = Some(reason)).is_some());
    }

    /// The answer to who still asks when the database is closed: an engine that stops must not pass for a deletion.
    pub fn gone(&self) -> Error {
        match *self.ended.borrow() {
            Some(EndReason::Deleted) => Error::NoDatabase,
            _ => Error::Stopped,
        }
    }

    /// The answer to who has asked a database that takes no more, once it is known why that is.
    pub async fn when_gone(&self) -> Error {
        // What it waits on is its own.
        let _ = self.ended().wait_for(Option::is_some).await;
        self.gone()
    }

    /// Tells when and why feeds end.
    pub fn ended(&self) -> watch::Receiver<Option<EndReason>> {
        self.ended.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use seqtide_storage::Previous;
    use seqtide_storage::model::rev_tree::RevTree;
    use tokio::time::advance;

    use super::*;
    use crate::filter::Ids;

    /// More rows take longer to be made than a reader takes to look.
    const ROWS: u64 = 20_000;

    fn seq(version: u64) -> Sequence {
        Sequence::new(0, version)
    }

    fn change(version: u64) -> Changed {
        let id = DocId::parse(&format!("d{version}")).unwrap();
        Changed { seq: seq(version), id, tree: RevTree::default(), body: None, previous: Previous::Nothing }
    }

    #[test]
    fn who_reads_when_a_purge_is_counted_reads_nothing_that_it_took_away() {
        let live = Live::new(Sequence::ZERO, SeqFormat::Integer, 1 << 30, Duration::ZERO, || {});
        live.publish(vec![change(1)], &[], &[], [], seq(1));
        let purged = change(1).id;
        let others = (2..ROWS).map(change).collect();
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                while live.purges() == 0 {}
                live.tail().row(seq(1)).is_some()
            });
            live.publish(others, &[seq(1)], std::slice::from_ref(&purged), [(purged.clone(), seq(ROWS))], seq(ROWS));
            assert!(!reader.join().unwrap());
        });
    }

    #[tokio::test(start_paused = true)]
    async fn the_tail_is_as_long_as_it_may_be_while_there_is_a_feed() {
        let live = Live::new(Sequence::ZERO, SeqFormat::Integer, 1 << 30, Duration::ZERO, || {});
        let publish = |versions: std::ops::RangeInclusive<u64>| {
            let newest = seq(*versions.end());
            live.publish(versions.map(change).collect(), &[], &[], [], newest);
            live.tail().valid_from()
        };
        let of_all = live.join(&Filter::ALL, false);
        assert_eq!(publish(1..=ROWS), seq(0));
        let of_one = live.join(&Filter { ids: Ids::Prefix("d7".into()), ..Filter::ALL }, false);
        let again = of_one.again();
        drop((of_all, of_one));
        assert_eq!(publish(ROWS + 1..=2 * ROWS), seq(0));
        drop(again);
        assert_eq!(publish(2 * ROWS + 1..=2 * ROWS + 1), seq(0));
        advance(Duration::from_secs(10)).await;
        assert_eq!(publish(2 * ROWS + 2..=2 * ROWS + 2), seq(2));
    }

    #[test]
    fn where_there_is_no_feed_there_is_no_tail() {
        let live = Live::new(Sequence::ZERO, SeqFormat::Integer, 1 << 30, Duration::ZERO, || {});
        let publish = |version| live.publish(vec![change(version)], &[], &[], [], seq(version));
        publish(1);
        assert_eq!((live.tail().valid_from(), live.tail().bytes()), (seq(1), 0));
        // One that brings the sequence further and no row.
        live.publish(Vec::new(), &[seq(1)], &[change(1).id], [], seq(2));
        assert_eq!((live.tail().valid_from(), live.newest()), (seq(1), seq(2)));
        let _feed = live.join(&Filter::ALL, false);
        publish(3);
        assert_eq!(live.tail().valid_from(), seq(1));
        assert!(live.tail().row(seq(3)).is_some());
    }

    #[test]
    fn whatever_comes_behind_the_place_where_a_feed_begins_is_in_the_tail() {
        let live = Live::new(Sequence::ZERO, SeqFormat::Integer, 1 << 30, Duration::ZERO, || {});
        let all_have_begun = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for version in (1..).take_while(|_| !all_have_begun.load(Ordering::Relaxed)) {
                    live.publish(vec![change(version)], &[], &[], [], seq(version));
                }
            });
            for _ in 0..1_000 {
                // The tail is long for some time behind a feed: only the first of a database finds none.
                live.tail.write().forget_feeds();
                let _feed = live.join(&Filter::ALL, false);
                let from = live.newest();
                while live.newest() < seq(from.version + 2) {
                    assert!(live.tail().valid_from() <= from);
                }
                assert!(live.tail().row(seq(from.version + 1)).is_some());
            }
            all_have_begun.store(true, Ordering::Relaxed);
        });
    }
}
