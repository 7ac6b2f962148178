//! The index against a walk over all groups.

use std::convert::Infallible;

use proptest::prelude::*;
use seqtide_storage::json::{ScanLimits, scan_document};

use super::*;
use crate::filter::{Ids, Passed, Test};
use crate::selector::DocView;
use crate::selector::tests::tree::{any_body, any_selector};

const IDS: [&str; 6] = ["a", "ab", "abc", "b", "b:1", "_design/a"];

fn any_ids() -> impl Strategy<Value = Ids> {
    let id = || prop::sample::select(&IDS[..]);
    prop_oneof![
        4 => Just(Ids::All),
        1 => prop::collection::vec(id(), 0..3).prop_map(|listed| ids(&listed).ids),
        2 => id().prop_map(|prefix| Ids::Prefix(prefix.into())),
    ]
}

/// Equality, which the index is for, comes more often than in any selector.
fn any_equality() -> impl Strategy<Value = String> {
    let path = prop::sample::select(&["a", "a", "b", "a.b", "a.0", "_id", "_deleted"][..]);
    let value =
        || prop::sample::select(&["1", "1.0", "2", "null", "true", r#""x""#, r#""é""#, r#""e\u0301""#, r#""a""#][..]);
    let equality = prop_oneof![
        (path.clone(), value()).prop_map(|(path, value)| format!(r#"{{"{path}":{value}}}"#)),
        (path.clone(), prop::collection::vec(value(), 0..4))
            .prop_map(|(path, list)| format!(r#"{{"{path}":{{"$in":[{}]}}}}"#, list.join(","))),
        (path, value()).prop_map(|(path, value)| format!(r#"{{"$not":{{"{path}":{{"$ne":{value}}}}}}}"#)),
    ];
    let list = prop::collection::vec(equality, 1..3);
    (prop::sample::select(&["$and", "$or"][..]), list)
        .prop_map(|(name, list)| format!(r#"{{"{name}":[{}]}}"#, list.join(",")))
}

fn any_filter() -> impl Strategy<Value = Filter> {
    let any = any_selector().prop_map(|tree| tree.json(0));
    let text = prop_oneof![any_equality().prop_map(Some), any.prop_map(Some), Just(None)];
    (any_ids(), text, prop::bool::weighted(0.2)).prop_map(|(ids, text, conflicts_only)| {
        let selector = text.and_then(|text| Selector::from_json(&text).ok());
        Filter { ids, test: Test { selector, conflicts_only }, function: None }
    })
}

/// An id, a body and the leaves, each deleted or not.
type Document = (&'static str, String, Vec<(&'static str, bool)>);

fn any_document() -> impl Strategy<Value = Document> {
    let leaves = prop_oneof![
        3 => Just(vec![("2-b", false)]),
        1 => Just(vec![("2-b", true)]),
        1 => any::<bool>().prop_map(|deleted| vec![("2-b", false), ("2-a", deleted)]),
    ];
    (prop::sample::select(&IDS[..]), any_body(), leaves).prop_map(|(id, body, leaves)| {
        let scanned = scan_document(body.json(0).as_bytes(), &ScanLimits::default()).unwrap();
        (id, scanned.body.as_str().to_owned(), leaves)
    })
}

/// What a commit would have to wake if nothing were known of groups. A loser whose body is not there may match.
fn may_concern(row: &Row, filter: &Filter, all_leaves: bool) -> bool {
    let change = row.change();
    let winner = DocView::of_winner(change);
    let (ids, test) = (&filter.ids, &filter.test);
    let judge = || {
        let no_loser = |_| Ok::<_, Infallible>(None);
        test.judge(change, winner.as_ref(), false, &FilterMetrics::default(), no_loser).unwrap()
    };
    ids.contains(change.id.as_str()) && (test.opens_losers(change, all_leaves) || judge() != Passed::Nothing)
}

proptest! {
    #[test]
    fn a_commit_wakes_exactly_those_that_a_walk_over_all_groups_would(
        filters in prop::collection::vec((any_filter(), any::<bool>()), 1..40),
        commits in prop::collection::vec(prop::collection::vec(any_document(), 1..4), 1..6),
    ) {
        let matcher = Matcher::new(Sequence::ZERO);
        let mut wakes: Vec<Wake> = filters.iter().map(|(filter, all_leaves)| matcher.join(filter, *all_leaves)).collect();
        let mut version = 0;
        for documents in &commits {
            let before = Sequence::new(0, version);
            let rows = documents.iter().map(|(id, body, leaves)| {
                version += 1;
                row(version, id, body, leaves)
            });
            let rows: Vec<Arc<Row>> = rows.collect();
            let newest = Sequence::new(0, version);
            matcher.publish(&rows, newest, &FilterMetrics::default());
            prop_assert_eq!(matcher.examined(), newest);
            for ((filter, all_leaves), wake) in filters.iter().zip(&mut wakes) {
                let woken = rows.iter().any(|row| may_concern(row, filter, *all_leaves));
                let expected = if woken { before } else { newest };
                prop_assert_eq!(wake.nothing_up_to(newest), expected, "{:?} on {:?}", filter, documents);
            }
        }
    }
}
