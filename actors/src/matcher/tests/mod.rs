//! Whom commits wake.

mod evaluations;
mod index;
mod model;

use seqtide_storage::json::Body;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::RevId;
use seqtide_storage::model::sequence::SeqFormat;
use seqtide_storage::{Change, LeafRev, Previous};

use super::*;
use crate::selector::Selector;

fn commit(matcher: &Matcher, version: u64, id: &str) {
    commit_leaves(matcher, version, id, "{}", &[("1-a", false)]);
}

/// Commits a document with this winner's body and these leaves, each deleted or not.
fn commit_leaves(matcher: &Matcher, version: u64, id: &str, body: &str, leaves: &[(&str, bool)]) {
    let rows = [row(version, id, body, leaves)];
    matcher.publish(&rows, Sequence::new(0, version), &FilterMetrics::default());
}

fn row(version: u64, id: &str, body: &str, leaves: &[(&str, bool)]) -> Arc<Row> {
    let leaf = |(rev, deleted): &(&str, bool)| LeafRev { rev: RevId::parse(rev).unwrap(), deleted: *deleted };
    let leaves = leaves.iter().map(leaf).collect();
    let body = Some(Body::from_stored(body.to_owned().into()));
    let change = Change {
        seq: Sequence::new(0, version),
        id: DocId::parse(id).unwrap(),
        leaves,
        body,
        previous: Previous::Nothing,
    };
    Arc::new(Row::new(change, SeqFormat::Integer))
}

fn selector(json: &str) -> Filter {
    Filter::selector(Selector::from_json(json).unwrap())
}

fn ids(ids: &[&str]) -> Filter {
    Filter::ids(ids.iter().map(|id| DocId::parse(id).unwrap()))
}

#[test]
fn a_commit_wakes_whom_it_concerns_and_nobody_else() {
    let matcher = Matcher::new(Sequence::ZERO);
    let mut all = matcher.join(&Filter::ALL, false);
    let mut two = matcher.join(&ids(&["a", "b"]), false);
    let mut other = matcher.join(&ids(&["c"]), false);
    let mut prefix = matcher.join(&Filter::prefix("ab"), false);
    let mut design = matcher.join(&Filter::design(), false);
    let at = |version| Sequence::new(0, version);
    let mut idle_up_to = |version| {
        let wakes = [&mut all, &mut two, &mut other, &mut prefix, &mut design];
        wakes.map(|wake| wake.nothing_up_to(Sequence::new(0, version)))
    };
    assert_eq!(idle_up_to(0), [at(0); 5]);
    for (version, id, whom) in [
        (1, "a", [true, true, false, false, false]),
        (2, "abc", [true, false, false, true, false]),
        (3, "_design/x", [true, false, false, false, true]),
        (4, "é", [true, false, false, false, false]),
    ] {
        commit(&matcher, version, id);
        let expected = whom.map(|woken| at(if woken { version - 1 } else { version }));
        assert_eq!(idle_up_to(version), expected, "{id}");
        assert_eq!(idle_up_to(version), [at(version); 5]);
        assert_eq!(matcher.examined(), at(version));
    }
}

#[test]
fn a_test_wakes_by_what_the_winner_is_like_and_where_a_loser_may_pass() {
    let matcher = Matcher::new(Sequence::ZERO);
    let mut winner = matcher.join(&selector(r#"{"t":1}"#), false);
    let mut any_leaf = matcher.join(&selector(r#"{"t":1}"#), true);
    let mut conflicts = matcher.join(&Filter::conflicts_only(), false);
    let mut gone = matcher.join(&selector(r#"{"_deleted":true}"#), false);
    for (version, body, leaves, whom) in [
        (1, r#"{"t":1}"#, &[("1-a", false)][..], [true, true, false, false]),
        (2, r#"{"t":2}"#, &[("1-a", false)], [false, false, false, false]),
        (3, r#"{"t":2}"#, &[("2-b", false), ("2-a", false)], [false, true, true, false]),
        (4, r#"{"t":2}"#, &[("2-b", false), ("2-a", true)], [false, true, false, false]),
        (5, r#"{"t":1}"#, &[("2-b", true)], [true, true, false, true]),
    ] {
        commit_leaves(&matcher, version, "d", body, leaves);
        let wakes = [&mut winner, &mut any_leaf, &mut conflicts, &mut gone];
        let idle_up_to = wakes.map(|wake| wake.nothing_up_to(Sequence::new(0, version)));
        let expected = whom.map(|woken| Sequence::new(0, if woken { version - 1 } else { version }));
        assert_eq!(idle_up_to, expected, "{body} {leaves:?}");
    }
}

#[test]
fn equal_filters_share_a_group_and_one_compiled_selector() {
    let matcher = Matcher::new(Sequence::ZERO);
    let texts = [r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, r#"{"b":{"$eq":2},"a":1}"#];
    let wakes = texts.map(|json| matcher.join(&selector(json), false));
    let same = |one: &Wake, other: &Wake| std::ptr::eq(one.filter().unwrap(), other.filter().unwrap());
    assert!(same(&wakes[0], &wakes[1]) && same(&wakes[0], &wakes[2]));
    let in_prefix = |prefix| Filter { ids: Filter::prefix(prefix).ids, ..selector(texts[0]) };
    let prefixed = matcher.join(&in_prefix("p"), false);
    assert!(same(&prefixed, &matcher.join(&in_prefix("p"), false)));
    for other in [matcher.join(&selector(texts[0]), true), matcher.join(&in_prefix("q"), false)] {
        assert!(!same(&other, &wakes[0]) && !same(&other, &prefixed));
    }
}

/// A feed that keeps up was taken for one that lags when two commits that concerned it came before it was polled.
#[test]
fn who_was_woken_twice_before_it_looked_knows_where_the_first_one_was() {
    let matcher = Matcher::new(Sequence::ZERO);
    let mut wake = matcher.join(&ids(&["a"]), false);
    for (version, id) in [(1, "b"), (2, "a"), (3, "b"), (4, "a"), (5, "a")] {
        commit(&matcher, version, id);
    }
    assert_eq!(wake.nothing_up_to(matcher.examined()), Sequence::new(0, 1));
    commit(&matcher, 6, "b");
    assert_eq!(wake.nothing_up_to(matcher.examined()), Sequence::new(0, 6));
    commit(&matcher, 7, "a");
    commit(&matcher, 8, "a");
    assert_eq!(wake.nothing_up_to(matcher.examined()), Sequence::new(0, 6));
}

/// A feed that had nothing to do with what was written for long was taken for one that lags when two commits concerned
/// it, and another of its group looked in between.
#[test]
fn who_was_woken_again_behind_one_that_has_looked_knows_where_the_first_one_was() {
    let matcher = Matcher::new(Sequence::ZERO);
    let mut early = matcher.join(&Filter::prefix("a"), false);
    let mut late = early.again();
    commit(&matcher, 1, "b");
    commit(&matcher, 2, "a");
    assert_eq!(early.nothing_up_to(matcher.examined()), Sequence::new(0, 1));
    commit(&matcher, 3, "a");
    let mut latest = late.again();
    for version in 4..100 {
        commit(&matcher, version, "a");
        early.nothing_up_to(matcher.examined());
    }
    assert_eq!(late.nothing_up_to(matcher.examined()), Sequence::new(0, 1));
    assert_eq!(latest.nothing_up_to(matcher.examined()), Sequence::new(0, 3));
    assert_eq!(early.nothing_up_to(matcher.examined()), Sequence::new(0, 99));
    commit(&matcher, 100, "b");
    for wake in [&mut early, &mut late, &mut latest] {
        assert_eq!(wake.nothing_up_to(matcher.examined()), Sequence::new(0, 100));
    }
}

#[test]
fn groups_nobody_is_in_are_forgotten() {
    let matcher = Matcher::new(Sequence::ZERO);
    for n in 0..5_000 {
        drop(matcher.join(&ids(&[&format!("d{n}")]), false));
        drop(matcher.join(&Filter::prefix(&format!("p{n}")), false));
        drop(matcher.join(&selector(&format!("{{\"n\":{n}}}")), false));
        drop(matcher.join(&selector(&format!("{{\"n\":{{\"$gt\":{n}}}}}")), true));
        let places = matcher.groups.lock().places;
        assert!(places < 100, "{places}");
    }
    let nothing = Filter { ids: Ids::Listed(Default::default()), ..selector(r#"{"n":1}"#) };
    for _ in 0..5_000 {
        drop(matcher.join(&nothing, true));
    }
    let places = matcher.groups.lock().places;
    assert!(places < 100, "{places} of lists without ids");
    let kept = matcher.join(&Filter::prefix("kept"), false);
    for n in 0..1_000 {
        drop(matcher.join(&Filter::prefix(&format!("p{n}")), false));
    }
    commit(&matcher, 1, "kept-1");
    assert!(kept.woken.has_changed().unwrap());
}

#[test]
fn places_stay_in_proportion_to_the_subscribers_there_are() {
    let matcher = Matcher::new(Sequence::ZERO);
    let join = |n: usize| matcher.join(&selector(&format!("{{\"n\":{{\"$in\":[{n},{}]}}}}", n + 1)), false);
    let many: Vec<Wake> = (0..1_000).map(join).collect();
    assert!((3_000..=6_000).contains(&matcher.groups.lock().places));
    drop(many);
    let _few: Vec<Wake> =
        (0..5_000).map(join).enumerate().filter(|(n, _)| n % 1_000 == 0).map(|(_, wake)| wake).collect();
    let places = matcher.groups.lock().places;
    assert!(places < 500, "{places}");
}
