//! How often selectors are evaluated, and for whom nothing is.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::filter::{Ids, Passed};
use crate::selector::DocView;

/// Counts evaluations.
#[derive(Default)]
struct Counted(Arc<AtomicU64>);

impl Counted {
    fn metrics(&self) -> FilterMetrics {
        FilterMetrics::into_number(Arc::clone(&self.0))
    }

    /// How many there were since the last call.
    fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// What a woken subscriber does with a row.
fn judge(row: &Row, wake: &Wake, counted: &Counted) -> Passed {
    let test = &wake.filter().unwrap().test;
    row.judge(test, DocView::of_winner(row.change()).as_ref(), false, &counted.metrics()).unwrap()
}

fn publish(matcher: &Matcher, row: &Arc<Row>, counted: &Counted) {
    matcher.publish(std::slice::from_ref(row), row.change().seq, &counted.metrics());
}

#[test]
fn a_thousand_subscribers_with_equal_selectors_cost_one_evaluation_a_change() {
    let (matcher, counted) = (Matcher::new(Sequence::ZERO), Counted::default());
    let equal = (0..1_000).map(|n| match n % 2 {
        0 => selector(r#"{"type":"order","total":{"$gt":10}}"#),
        _ => selector(r#"{"total":{"$gt":10},"type":{"$eq":"order"}}"#),
    });
    let wakes: Vec<Wake> = equal.map(|filter| matcher.join(&filter, false)).collect();
    for (version, total) in [(1, 50), (2, 5)] {
        let row = row(version, "d", &format!(r#"{{"type":"order","total":{total}}}"#), &[("1-a", false)]);
        publish(&matcher, &row, &counted);
        let expected = if total > 10 { Passed::All } else { Passed::Nothing };
        assert!(wakes.iter().all(|wake| judge(&row, wake, &counted) == expected));
        assert_eq!(counted.take(), 1, "{total}");
    }
    let other = matcher.join(&selector(r#"{"type":"order"}"#), false);
    let row = row(3, "d", r#"{"type":"order","total":11}"#, &[("1-a", false)]);
    publish(&matcher, &row, &counted);
    assert!(wakes.iter().chain([&other]).all(|wake| judge(&row, wake, &counted) == Passed::All));
    assert_eq!(counted.take(), 2);
}

#[test]
fn each_on_its_own_owner_costs_as_much_as_one() {
    let (matcher, counted) = (Matcher::new(Sequence::ZERO), Counted::default());
    let own = |n: usize| selector(&format!(r#"{{"type":"order","owner":{n}}}"#));
    let mut wakes: Vec<Wake> = (0..1_000).map(|n| matcher.join(&own(n), false)).collect();
    for (version, owner) in [(1, 7), (2, 999), (3, 1_000)] {
        let row = row(version, "d", &format!(r#"{{"type":"order","owner":{owner}.0}}"#), &[("1-a", false)]);
        publish(&matcher, &row, &counted);
        // The first one stood under a type or an owner nobody waited for then.
        assert!(counted.take() <= 2, "{owner}");
        let nothing = |wake: &mut Wake| wake.nothing_up_to(row.change().seq) == row.change().seq;
        let woken: Vec<usize> = (0..1_000).filter(|n| !nothing(&mut wakes[*n])).collect();
        assert_eq!(woken, if owner < 1_000 { vec![owner] } else { vec![] });
    }
}

#[test]
fn where_many_share_a_term_the_prefix_tells_them_apart() {
    let (matcher, counted) = (Matcher::new(Sequence::ZERO), Counted::default());
    let own = |n: usize| Filter { ids: Ids::Prefix(format!("u{n}:").into()), ..selector(r#"{"type":"message"}"#) };
    let wakes: Vec<Wake> = (0..1_000).map(|n| matcher.join(&own(n), false)).collect();
    let row = row(1, "u7:1", r#"{"type":"message"}"#, &[("1-a", false)]);
    publish(&matcher, &row, &counted);
    assert_eq!(counted.take(), 1);
    let woken: Vec<usize> = (0..1_000).filter(|n| wakes[*n].woken.has_changed().unwrap()).collect();
    assert_eq!(woken, [7]);
}

#[test]
fn beyond_what_a_commit_is_shown_groups_are_woken_unasked() {
    let (matcher, counted) = (Matcher::new(Sequence::ZERO), Counted::default());
    let join = |text: &str| matcher.join(&selector(text), false);
    let ranges: Vec<Wake> = (0..20).map(|n| join(&format!(r#"{{"n":{{"$gt":{n}}}}}"#))).collect();
    let owner = join(r#"{"owner":7}"#);
    let large = format!(r#"{{"owner":8,"pad":"{}"}}"#, "x".repeat(900 << 10));
    publish(&matcher, &row(1, "d", &large, &[("1-a", false)]), &counted);
    assert_eq!(counted.take(), 9, "as many bodies of over 900 KiB as go into 8 MiB");
    let woken = ranges.iter().filter(|wake| wake.woken.has_changed().unwrap()).count();
    assert_eq!((woken, owner.woken.has_changed().unwrap()), (11, false));
}

/// All databases' writers waited for seconds.
#[test]
fn what_may_take_long_is_not_asked_while_a_commit_waits() {
    let (matcher, counted) = (Matcher::new(Sequence::ZERO), Counted::default());
    let join = |text: &str| matcher.join(&selector(text), false);
    let repeated = join(r#"{"a":{"$regex":"(?-u)1[01]{900}x"}}"#);
    // What is not asked takes nothing of what there is for others.
    let others: Vec<Wake> = (0..9).map(|n| join(&format!(r#"{{"a":{{"$regex":"(?-u)1[01]{{90{n}}}x"}}}}"#))).collect();
    let short = join(r#"{"a":{"$regex":"x"}}"#);
    let conditions: Vec<_> = (0..900).map(|n| format!(r#"{{"a":{{"$nin":[{n}]}}}}"#)).collect();
    let many = join(&format!(r#"{{"$and":[{}]}}"#, conditions.join(",")));
    let row = row(1, "d", &format!(r#"{{"a":"{}"}}"#, "01".repeat(1_000)), &[("1-a", false)]);
    publish(&matcher, &row, &counted);
    assert_eq!(counted.take(), 1);
    assert_eq!([short, repeated, many].map(|wake| wake.woken.has_changed().unwrap()), [false, true, true]);
    assert!(others.iter().all(|wake| wake.woken.has_changed().unwrap()));
}
