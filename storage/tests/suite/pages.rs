//! Reading in pages gives what reading at once gives, and rows are counted without reading them.

use std::collections::HashSet;
use std::ops::{Bound, RangeBounds};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use seqtide_storage::model::doc_id::LocalId;
use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{
    Change, Detail, Direction, LocalEdit, PageLimits, ReadChanges, ReadDocs, ReadLocals, Snapshot, Write,
};

use crate::db::{Db, NO_LIMITS, body, create, delete, everything, id, push, push_deleted, seq, update};

/// Forty documents: updated, deleted, in conflict, or as they were made.
fn varied() -> Db {
    let db = Db::new();
    for n in 0..40 {
        let doc = format!("doc-{:02}", n * 7 % 40);
        let first = db.rev(create(&doc, &format!(r#"{{"n":{n},"pad":"{}"}}"#, "x".repeat(n))));
        match n % 4 {
            0 => drop(db.rev(delete(&doc, &first))),
            1 => drop(db.rev(update(&doc, &first, r#"{"updated":true}"#))),
            2 => drop(db.write(push(&doc, 2, &["b", "a"], "{}"))),
            _ => {}
        }
    }
    db
}

fn tiny_limits() -> Vec<PageLimits> {
    let rows = [0, 1, 2, 3, 7].map(|rows_max| PageLimits { rows_max, ..NO_LIMITS });
    let bytes = [0, 1, 200].map(|bytes_max| PageLimits { bytes_max, ..NO_LIMITS });
    let no_time = PageLimits { time_max: Duration::ZERO, ..NO_LIMITS };
    rows.into_iter().chain(bytes).chain([no_time]).collect()
}

/// Reads a stretch page by page, each from where the last one ended.
fn paged(snapshot: &Snapshot<'_>, mut read: ReadChanges, keep: &dyn Fn(&str) -> bool) -> Vec<Change> {
    let mut rows = Vec::new();
    loop {
        let page = snapshot.changes(&read, keep).unwrap();
        rows.extend(page.changes);
        if page.complete {
            return rows;
        }
        let examined = page.examined.expect("a page examines at least one row");
        match read.direction {
            Direction::Forward => read.after = examined,
            Direction::Backward => read.up_to = Sequence::new(examined.incarnation, examined.version - 1),
        }
    }
}

#[test]
fn pages_of_the_feed_put_together_are_the_feed() {
    let db = varied();
    let snapshot = db.snapshot();
    let whole = db.feed();
    for limits in tiny_limits() {
        let forward = ReadChanges { limits, ..everything() };
        assert_eq!(paged(&snapshot, forward, &|_| true), whole, "{limits:?}");
        let backward = ReadChanges { direction: Direction::Backward, ..forward };
        let mut reversed = paged(&snapshot, backward, &|_| true);
        reversed.reverse();
        assert_eq!(reversed, whole, "{limits:?}");
    }
}

#[test]
fn since_is_exclusive_and_the_end_is_not() {
    let db = varied();
    let whole = db.feed();
    let (after, up_to) = (whole[3].seq, whole[9].seq);
    let read = ReadChanges { after, up_to, ..everything() };
    assert_eq!(db.snapshot().changes(&read, &|_| true).unwrap().changes, whole[4..=9]);
    let backwards = ReadChanges { after: up_to, up_to: after, ..read };
    let nothing = db.snapshot().changes(&backwards, &|_| true).unwrap();
    assert!(nothing.complete && nothing.changes.is_empty());
}

#[test]
fn a_page_tells_what_it_examined_though_it_gives_nothing() {
    let db = varied();
    let page = db.snapshot().changes(&everything(), &|_| false).unwrap();
    assert_eq!((page.examined, page.complete), (Some(db.feed().last().unwrap().seq), true));
    let odd = |id: &str| id.ends_with(['1', '3', '5', '7', '9']);
    let kept: Vec<_> = db.feed().into_iter().filter(|change| odd(change.id.as_str())).collect();
    for limits in tiny_limits() {
        assert_eq!(paged(&db.snapshot(), ReadChanges { limits, ..everything() }, &odd), kept);
    }
}

#[test]
fn looking_ids_up_gives_what_reading_the_feed_gives() {
    let db = varied();
    let ids: HashSet<_> = ["doc-03", "doc-10", "doc-39", "doc-00", "nowhere"].map(id).into();
    let keep = |text: &str| ids.contains(text);
    let after = db.feed()[5].seq;
    for direction in [Direction::Forward, Direction::Backward] {
        let read = ReadChanges { after, direction, ..everything() };
        let look_up = |read| db.snapshot().changes_of_shown(&ids, read, |change| Ok(Some(change))).unwrap();
        let looked_up = look_up(&read);
        let found = db.snapshot().changes(&read, &keep).unwrap();
        assert_eq!(looked_up.changes, found.changes);
        assert!(looked_up.complete && !found.changes.is_empty());
        let short = ReadChanges { limits: PageLimits { rows_max: 1, ..NO_LIMITS }, ..read };
        let page = look_up(&short);
        assert_eq!((page.changes.len(), page.complete), (1, false));
        assert_eq!(page.examined, Some(found.changes[0].seq));
    }
}

#[test]
fn rows_carry_only_what_was_asked_for() {
    let db = Db::new();
    db.request(vec![push("a", 2, &["b", "a"], r#"{"n":1}"#), push_deleted("a", 2, &["c", "a"])]);
    let read = |leaves, bodies| {
        let read = ReadChanges { detail: Detail { leaves, bodies }, ..everything() };
        let change = db.snapshot().changes(&read, &|_| true).unwrap().changes.remove(0);
        (change.leaves.len(), change.body.is_some(), change.winner().rev.to_string())
    };
    assert_eq!(read(false, false), (1, false, "2-b".to_owned()));
    assert_eq!(read(true, false), (2, false, "2-b".to_owned()));
    assert_eq!(read(false, true), (1, true, "2-b".to_owned()));
}

fn all_docs() -> ReadDocs {
    ReadDocs {
        from: Bound::Unbounded,
        to: Bound::Unbounded,
        direction: Direction::Forward,
        detail: Detail { leaves: true, bodies: true },
        limits: NO_LIMITS,
    }
}

fn docs_paged(snapshot: &Snapshot<'_>, mut read: ReadDocs) -> Vec<String> {
    let mut ids = Vec::new();
    loop {
        let page = snapshot.docs(&read).unwrap();
        ids.extend(page.docs.iter().map(|doc| doc.id.to_string()));
        let Some(last) = page.next_after else { return ids };
        match read.direction {
            Direction::Forward => read.from = Bound::Excluded(last),
            Direction::Backward => read.to = Bound::Excluded(last),
        }
    }
}

#[test]
fn pages_of_documents_put_together_are_the_live_documents_in_order() {
    let db = varied();
    let mut live: Vec<_> = db.feed().into_iter().filter(|doc| !doc.deleted()).map(|doc| doc.id.to_string()).collect();
    live.sort();
    let snapshot = db.snapshot();
    let text = |text: &str| text.to_owned();
    let (long, none) = ("z".repeat(600), String::new());
    let bounds = [
        (Bound::Unbounded, Bound::Unbounded),
        (Bound::Included(text("doc-05")), Bound::Included(text("doc-20"))),
        (Bound::Excluded(text("doc-05")), Bound::Excluded(text("doc-20"))),
        (Bound::Included(text("doc-05x")), Bound::Excluded(long.clone())),
        (Bound::Included(none.clone()), Bound::Included(long.clone())),
        (Bound::Excluded(none.clone()), Bound::Unbounded),
        (Bound::Unbounded, Bound::Included(none.clone())),
        (Bound::Unbounded, Bound::Excluded(none.clone())),
        (Bound::Included(none.clone()), Bound::Included(none)),
        (Bound::Included(text("doc-20")), Bound::Included(text("doc-05"))),
        (Bound::Excluded(text("doc-05")), Bound::Included(text("doc-05"))),
        (Bound::Included(long), Bound::Unbounded),
    ];
    for ((from, to), limits) in bounds.iter().flat_map(|b| tiny_limits().into_iter().map(move |l| (b.clone(), l))) {
        let within = |id: &&String| RangeBounds::<String>::contains(&(from.as_ref(), to.as_ref()), *id);
        let inverted = matches!((&from, &to), (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b)) if a > b);
        let mut expected: Vec<String> = if inverted { vec![] } else { live.iter().filter(within).cloned().collect() };
        let read = ReadDocs { from: from.clone(), to: to.clone(), limits, ..all_docs() };
        assert_eq!(docs_paged(&snapshot, read.clone()), expected, "{read:?}");
        expected.reverse();
        let backward = ReadDocs { direction: Direction::Backward, ..read.clone() };
        assert_eq!(docs_paged(&snapshot, backward), expected, "backward {read:?}");
    }
}

#[test]
fn documents_are_counted_unless_there_are_too_many() {
    let db = varied();
    let snapshot = db.snapshot();
    let count = |from: &str, count_max| {
        snapshot.count_docs(&Bound::Included(from.to_owned()), &Bound::Unbounded, count_max).unwrap()
    };
    assert_eq!(count("", 40), Some(30));
    assert_eq!(count("", 39), None);
    let tail = docs_paged(&snapshot, ReadDocs { from: Bound::Included("doc-30".to_owned()), ..all_docs() });
    assert_eq!(count("doc-30", 10), Some(tail.len() as u64));
    assert_eq!(count("x", 0), Some(0));
}

/// Counts rows the slow way.
fn counted(snapshot: &Snapshot<'_>, after: Sequence) -> u64 {
    let read = ReadChanges { after, detail: Detail::default(), ..everything() };
    snapshot.changes(&read, &|_| true).unwrap().changes.len() as u64
}

#[test]
fn an_old_snapshot_counts_its_own_rows() {
    let db = varied();
    let first = db.rev(create("new", "{}"));
    let old = db.snapshot();
    let expected = counted(&old, seq(5));
    thread::scope(|scope| scope.spawn(|| db.rev(update("new", &first, "{}"))).join().unwrap());
    thread::scope(|scope| scope.spawn(|| db.rev(create("newer", "{}"))).join().unwrap());
    assert_eq!(old.rows_after(seq(5)).unwrap(), expected);
    drop(old);
    assert_eq!(db.snapshot().rows_after(seq(5)).unwrap(), expected + 1);
}

#[test]
fn counting_is_exact_while_several_threads_write() {
    let db = Db::new();
    thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let db = &db;
                scope.spawn(move || (0..300).for_each(|n| drop(db.rev(create(&format!("{writer}-{n}"), "{}")))))
            })
            .collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            let snapshot = db.snapshot();
            assert_eq!(snapshot.rows_after(Sequence::ZERO).unwrap(), snapshot.counters().unwrap().rows());
        }
    });
    assert_eq!(db.snapshot().rows_after(Sequence::ZERO).unwrap(), 900);
}

/// Something that happens to a database.
#[derive(Debug, Clone)]
enum Step {
    /// A commit that touches this many documents of the pool, from this one on.
    Touch {
        from: usize,
        count: usize,
    },
    Reopen,
    RaiseIncarnation,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0usize..600, 1usize..500).prop_map(|(from, count)| Step::Touch { from, count }),
        1 => Just(Step::Reopen),
        1 => Just(Step::RaiseIncarnation),
    ]
}

/// Moves a document of the pool once more, whatever it was.
fn touch(n: usize, times: &mut [u64]) -> seqtide_storage::Write {
    times[n] += 1;
    push(&format!("doc-{n}"), times[n], &[&format!("r{}", times[n])], "{}")
}

fn check_counts(db: &Db, asked: &[Sequence]) {
    let snapshot = db.snapshot();
    let rows: Vec<_> = db.feed().iter().map(|change| change.seq).collect();
    for seq in asked.iter().chain(rows.iter().step_by(37)) {
        let expected = rows.iter().filter(|row| *row > seq).count() as u64;
        assert_eq!(snapshot.rows_after(*seq).unwrap(), expected, "after {seq:?}");
    }
    assert_eq!(snapshot.last_row_seq().unwrap(), rows.last().copied().unwrap_or_default());
}

proptest! {
    #![proptest_config(crate::db::cases(24))]

    #[test]
    fn rows_after_is_a_count_of_rows_wherever_it_is_asked(steps in prop::collection::vec(step(), 1..20)) {
        let (mut db, mut times) = (Db::new(), [0; 600]);
        for step in steps {
            match step {
                Step::Touch { from, count } => {
                    let docs = (from..(from + count).min(600)).map(|n| touch(n, &mut times));
                    db.request(docs.collect());
                }
                Step::Reopen => db = db.reopen(),
                Step::RaiseIncarnation => {
                    let next = db.counters().update_seq.incarnation + 1;
                    db.store.raise_incarnation(next).unwrap();
                }
            }
            let Sequence { incarnation, version, .. } = db.counters().update_seq;
            let versions = [0, 1, version / 2, version.saturating_sub(1), version, version + 1, version + 5000];
            let asked = (0..=incarnation + 1).flat_map(|i| versions.map(|version| Sequence::new(i, version)));
            let between = Sequence { user: 3, ..Sequence::new(0, version / 3) };
            check_counts(&db, &asked.chain([between, Sequence::MAX]).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_row_of_an_earlier_incarnation_lies_before_all_later_ones() {
    let db = Db::new();
    db.request(vec![create("a", "{}"), create("b", "{}")]);
    db.store.raise_incarnation(2).unwrap();
    let first = db.feed()[0].winner().rev.clone();
    db.rev(update("a", &first, "{}"));
    db.rev(create("c", "{}"));
    let feed: Vec<_> = db.feed().iter().map(|change| (change.seq, change.id.to_string())).collect();
    let row = |seq, id: &str| (seq, id.to_owned());
    let expected = [row(seq(2), "b"), row(Sequence::new(2, 3), "a"), row(Sequence::new(2, 4), "c")];
    assert_eq!(feed, expected);
    assert_eq!(db.snapshot().rows_after(Sequence::new(1, 9)).unwrap(), 2);
}

/// Names in a stretch of local documents, read page by page.
fn paged_locals(snapshot: &Snapshot<'_>, mut read: ReadLocals) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let page = snapshot.locals(&read).unwrap();
        names.extend(page.docs.into_iter().map(|doc| doc.name));
        let Some(next) = page.next_after.map(Bound::Excluded) else { return names };
        match read.direction {
            Direction::Forward => read.from = next,
            Direction::Backward => read.to = next,
        }
    }
}

#[test]
fn pages_of_local_documents_put_together_are_all_of_a_stretch() {
    let db = Db::new();
    for n in 0..40 {
        let id = LocalId::parse(&format!("_local/n-{:02}", n * 7 % 40)).unwrap().unwrap();
        db.write(Write::Local(LocalEdit { id, base: None, checked: true, body: Some(body(r#"{"a":1}"#)) }));
    }
    let snapshot = db.snapshot();
    let names = |range: std::ops::Range<usize>| range.map(|n| format!("n-{n:02}")).collect::<Vec<_>>();
    for limits in tiny_limits() {
        let all = ReadLocals { from: Bound::Unbounded, to: Bound::Unbounded, direction: Direction::Forward, limits };
        assert_eq!(paged_locals(&snapshot, all.clone()), names(0..40), "{limits:?}");
        let from = Bound::Included("n-10".to_owned());
        let to = Bound::Excluded("n-20".to_owned());
        let part = ReadLocals { from, to, direction: Direction::Backward, limits };
        assert_eq!(paged_locals(&snapshot, part), names(10..20).into_iter().rev().collect::<Vec<_>>(), "{limits:?}");
        let none = ReadLocals { from: Bound::Included("z".to_owned()), to: Bound::Included("a".to_owned()), ..all };
        assert_eq!(paged_locals(&snapshot, none), names(0..0));
    }
}
