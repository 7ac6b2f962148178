use std::collections::{BTreeSet, HashMap};

use proptest::prelude::*;

use super::*;
use crate::model::body_place::BodyKey;
use crate::model::sequence::Sequence;

const LIMIT: u32 = 1000;

fn rev(text: &str) -> RevId {
    RevId::parse(text).unwrap()
}

fn path(start: u64, hashes: &[&str]) -> RevPath {
    RevPath::new(start, hashes.iter().map(|hash| RevHash::parse(hash).unwrap()).collect()).unwrap()
}

fn merged(tree: &RevTree, path: &RevPath, deleted: bool, limit: u32) -> RevTree {
    match tree.merge(path, deleted, BodyPlace::Empty, limit).unwrap() {
        Merge::Known => tree.clone(),
        Merge::Changed(tree) => tree,
    }
}

fn tree_of(paths: &[(u64, &[&str], bool)]) -> RevTree {
    let add =
        |tree, (start, hashes, deleted): &(u64, &[&str], bool)| merged(&tree, &path(*start, hashes), *deleted, LIMIT);
    paths.iter().fold(RevTree::default(), add)
}

fn leaves(tree: &RevTree) -> Vec<String> {
    tree.leaves().iter().map(|leaf| leaf.rev.to_string()).collect()
}

/// What is found of a revision, the leaves that it became, and how often their history was loaded for each of the two.
fn looked_up(tree: &RevTree, whole: &RevTree, rev: &RevId) -> (Presence, Vec<String>, usize) {
    let loads = std::cell::Cell::new(0);
    let load = |leaf: &Leaf| {
        loads.set(loads.get() + 1);
        Ok::<_, ()>(whole.leaf(&leaf.rev).unwrap().ancestors.recent.clone())
    };
    let (mut presence, mut under) = (Presence::Absent, Vec::new());
    let revs = std::slice::from_ref(rev);
    let found = |_: &RevId, Found { deleted, body, .. }: Found<'_>| presence = Presence::Present { deleted, body };
    let missing = tree.look_up(revs, load, found).unwrap();
    assert_eq!(missing.contains(rev), presence == Presence::Absent);
    let is_under = |leaf: &Leaf, _: &[&RevId]| {
        under.push(leaf.rev.to_string());
        Ok(())
    };
    tree.leaves_under(revs, load, is_under).unwrap();
    (presence, under, loads.get())
}

fn line(leaf: &Leaf) -> Vec<String> {
    leaf.ancestors.recent.iter().map(|ancestor| ancestor.hash.to_string()).collect()
}

#[test]
fn live_leaves_win_over_longer_deleted_ones() {
    let tree = tree_of(&[(2, &["b", "a"], false), (3, &["e", "c", "a"], true), (2, &["d", "a"], true)]);
    assert_eq!(leaves(&tree), ["2-b", "3-e", "2-d"]);
    assert!(tree.is_live());
}

#[test]
fn several_roots_stand_side_by_side() {
    let tree = tree_of(&[(3, &["c", "b", "a"], false), (1, &["z"], false), (2, &["w", "b0"], false)]);
    assert_eq!(leaves(&tree), ["3-c", "2-w", "1-z"]);
}

#[test]
fn a_known_revision_changes_nothing() {
    let tree = tree_of(&[(2, &["b", "a"], false), (2, &["c", "a"], true)]);
    for known in [path(2, &["b", "a"]), path(2, &["c"]), path(1, &["a"])] {
        assert_eq!(tree.merge(&known, false, BodyPlace::Empty, LIMIT), Ok(Merge::Known), "{known:?}");
    }
}

#[test]
fn a_path_that_joins_two_roots_leaves_one_branch() {
    let tree = tree_of(&[(2, &["b"], false), (4, &["d"], false), (5, &["e", "d", "c", "b"], false)]);
    assert_eq!(leaves(&tree), ["5-e"]);
    assert_eq!(line(&tree.leaves()[0]), ["d", "c", "b"]);
}

#[test]
fn an_interactive_edit_needs_a_leaf() {
    let tree = tree_of(&[(2, &["b", "a"], false)]);
    let mut longer = tree.clone();
    assert!(!longer.extend(Some(&rev("1-a")), rev("2-x"), false, BodyPlace::Empty, LIMIT));
    assert_eq!(longer, tree);
    assert!(longer.extend(Some(&rev("2-b")), rev("3-c"), true, BodyPlace::Empty, LIMIT));
    assert_eq!((leaves(&longer), longer.is_live()), (vec!["3-c".to_owned()], false));
}

#[test]
fn branches_are_stemmed_and_what_was_cut_off_comes_back_as_a_root() {
    let mut tree = tree_of(&[(1, &["a"], false)]);
    for (parent, child) in [("1-a", "2-b"), ("2-b", "3-c"), ("3-c", "4-d"), ("4-d", "5-e")] {
        assert!(tree.extend(Some(&rev(parent)), rev(child), false, BodyPlace::Empty, 3));
    }
    assert_eq!(line(&tree.leaves()[0]), ["d", "c"]);
    assert_eq!(tree.find(&rev("2-b")), Presence::Absent);
    let again = merged(&tree, &path(5, &["e", "d", "c", "b", "a"]), false, 3);
    assert_eq!(again, tree, "what stemming would cut again is not news");
    assert_eq!(leaves(&merged(&tree, &path(2, &["b", "a"]), false, 3)), ["5-e", "2-b"]);
}

#[test]
fn a_path_below_a_cut_branch_still_makes_ancestors_of_other_leaves() {
    let tree = [path(3, &["c"]), path(2, &["b"])];
    let tree = tree.iter().fold(RevTree::default(), |tree, path| merged(&tree, path, false, 1));
    assert_eq!(leaves(&tree), ["3-c", "2-b"]);
    assert_eq!(leaves(&merged(&tree, &path(3, &["c", "b"]), false, 1)), ["3-c"]);
}

#[test]
fn ancestors_on_disk_are_asked_for_only_when_they_decide() {
    let mut tree = tree_of(&[(4, &["d", "c", "b", "a"], false)]);
    let whole = tree.clone();
    for leaf in tree.leaves_mut() {
        leaf.ancestors.recent.truncate(1);
        leaf.ancestors.deeper = 2;
    }
    assert_eq!(tree.find(&rev("3-c")), Presence::Present { deleted: false, body: BodyPlace::Unknown });
    assert_eq!(tree.find(&rev("2-b")), Presence::HistoryNeeded);
    assert_eq!(tree.find(&rev("5-b")), Presence::Absent);
    let at_root = Presence::Present { deleted: false, body: BodyPlace::Unknown };
    assert_eq!(looked_up(&tree, &whole, &rev("1-a")), (at_root, vec!["4-d".to_owned()], 2));
    assert_eq!(looked_up(&tree, &whole, &rev("1-b")), (Presence::Absent, vec![], 2));
    let ask = |path: &RevPath| tree.merge(path, false, BodyPlace::Empty, LIMIT);
    assert_eq!(ask(&path(4, &["d", "c"])), Ok(Merge::Known));
    assert!(matches!(ask(&path(6, &["f", "e", "d"])), Ok(Merge::Changed(_))));
    assert_eq!(ask(&path(3, &["x", "b"])), Err(HistoryNeeded));
    let loaded = tree.with_history(|_| Ok::<_, ()>(whole.leaves()[0].ancestors.recent.clone())).unwrap();
    assert_eq!(loaded, whole);
    assert_eq!(leaves(&merged(&loaded, &path(3, &["x", "b"]), false, LIMIT)), ["4-d", "3-x"]);
}

/// A leaf is found by its place, and what cannot be above a revision is not looked at: there may be thousands of
/// leaves, each with a long history, and all may be asked for.
#[test]
fn no_history_is_loaded_where_leaves_tell() {
    let mut tree = tree_of(&[(4, &["d", "c", "b", "a"], false), (4, &["e", "c", "b", "a"], true), (2, &["x"], false)]);
    let whole = tree.clone();
    for leaf in tree.leaves_mut().filter(|leaf| leaf.rev.generation == 4) {
        leaf.ancestors.recent.truncate(1);
        leaf.ancestors.deeper = 2;
    }
    let present = |deleted, body| Presence::Present { deleted, body };
    let leaf = |of: &str| (vec![of.to_owned()], 0);
    for (of, deleted) in [("4-d", false), ("4-e", true), ("2-x", false)] {
        let (found, under, loads) = looked_up(&tree, &whole, &rev(of));
        assert_eq!((found, (under, loads)), (present(deleted, BodyPlace::Empty), leaf(of)));
    }
    let both = vec!["4-d".to_owned(), "4-e".to_owned()];
    let unknown = present(false, BodyPlace::Unknown);
    assert_eq!(looked_up(&tree, &whole, &rev("3-c")), (unknown, both.clone(), 0));
    assert_eq!(looked_up(&tree, &whole, &rev("2-b")), (unknown, both, 1 + 2));
    assert_eq!(looked_up(&tree, &whole, &rev("4-y")), (Presence::Absent, vec![], 0));
}

#[test]
fn a_branch_is_loaded_once_for_all_revisions_that_are_looked_up() {
    let branch = |at: usize| (1..=9).rev().map(|generation| format!("{generation}-b{at}")).collect::<Vec<_>>();
    let whole = (0..3).map(branch).fold(RevTree::default(), |tree, revs| {
        let hashes = revs.iter().map(|text| rev(text).hash).collect();
        merged(&tree, &RevPath::new(9, hashes).unwrap(), false, LIMIT)
    });
    let mut tree = whole.clone();
    for leaf in tree.leaves_mut() {
        leaf.ancestors.recent.truncate(2);
        leaf.ancestors.deeper = 6;
    }
    let known: Vec<RevId> = branch(1).iter().map(|text| rev(text)).collect();
    let unknown: Vec<RevId> = (1..=9).map(|generation| rev(&format!("{generation}-x"))).collect();
    let revs = [&known[..], &unknown].concat();
    let loads = std::cell::Cell::new(0);
    let load = |leaf: &Leaf| {
        loads.set(loads.get() + 1);
        Ok::<_, ()>(whole.leaf(&leaf.rev).unwrap().ancestors.recent.clone())
    };
    let mut found = Vec::new();
    let missing = tree.look_up(&revs, load, |rev, _| found.push(rev.clone())).unwrap();
    assert_eq!((found, missing), (known.clone(), unknown.iter().collect()));
    assert_eq!(loads.take(), 3);
    let mut under = Vec::new();
    let is_under = |leaf: &Leaf, revs: &[&RevId]| {
        under.push((leaf.rev.clone(), revs.len()));
        Ok(())
    };
    tree.leaves_under(&revs, load, is_under).unwrap();
    assert_eq!(under, [(known[0].clone(), 1), (known[0].clone(), 8)]);
    assert_eq!(loads.take(), 3);
}

#[test]
fn lowering_the_limit_changes_no_tree_by_itself() {
    let tree = tree_of(&[(4, &["d", "c", "b", "a"], false), (2, &["x", "a"], false)]);
    assert_eq!(tree.merge(&path(1, &["a"]), false, BodyPlace::Empty, 2), Ok(Merge::Known));
}

/// A consistent history: each node has one parent for good; `pushes` are leaves' paths of random depth.
fn history() -> impl Strategy<Value = Vec<(RevPath, bool)>> {
    history_of(1..12)
}

fn history_of(pushes: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(RevPath, bool)>> {
    let node = (any::<prop::sample::Index>(), any::<bool>());
    let push = (any::<prop::sample::Index>(), 1usize..8);
    (prop::collection::vec(node, 1..30), prop::collection::vec(push, pushes)).prop_map(|(nodes, pushes)| {
        let mut forest: Vec<(u64, Option<usize>, bool)> = Vec::new();
        for (parent, deleted) in nodes {
            let parent = parent.index(forest.len() + 2);
            match forest.get(parent).copied() {
                Some((generation, ..)) => forest.push((generation + 1, Some(parent), deleted)),
                None => forest.push((1, None, deleted)),
            }
        }
        let to_path = |(node, depth): (prop::sample::Index, usize)| {
            let start = node.index(forest.len());
            let line = std::iter::successors(Some(start), |at| forest[*at].1);
            let hashes = line.take(depth).map(|at| RevHash::parse(&format!("n{at}")).unwrap()).collect();
            (RevPath::new(forest[start].0, hashes).unwrap(), forest[start].2)
        };
        pushes.into_iter().map(to_path).collect()
    })
}

/// Paths that contradict each other about parents.
fn contradictions() -> impl Strategy<Value = Vec<(RevPath, bool)>> {
    let hashes = prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..5);
    let push = (hashes, 0..3u64, any::<bool>());
    let to_path =
        |(hashes, below, deleted): (Vec<&str>, u64, bool)| (path(hashes.len() as u64 + below, &hashes), deleted);
    prop::collection::vec(push.prop_map(to_path), 1..60)
}

/// Newest first.
fn revs_of(path: &RevPath) -> Vec<RevId> {
    path.hashes().iter().zip(0..).map(|(hash, step)| RevId::new(path.start() - step, hash.clone())).collect()
}

fn merge_all<'a>(pushes: impl IntoIterator<Item = &'a (RevPath, bool)>) -> RevTree {
    pushes.into_iter().fold(RevTree::default(), |tree, (path, deleted)| merged(&tree, path, *deleted, LIMIT))
}

/// What replication must agree on: the leaves and their lines. (Deletedness of a leaf that was first seen as an
/// ancestor is not known to the one who saw it so; the generator's leaves carry it.)
fn shape(tree: &RevTree) -> BTreeSet<(String, Vec<String>)> {
    tree.leaves().iter().map(|leaf| (leaf.rev.to_string(), line(leaf))).collect()
}

proptest! {
    #[test]
    fn merging_is_commutative(pushes in history(), seed in any::<u64>()) {
        let mut shuffled = pushes.clone();
        let len = shuffled.len();
        for at in 0..len {
            shuffled.swap(at, (seed as usize).wrapping_mul(at + 7) % len);
        }
        prop_assert_eq!(shape(&merge_all(&pushes)), shape(&merge_all(&shuffled)));
        let winner = |tree: &RevTree| tree.winner().map(|leaf| leaf.rev.clone());
        prop_assert_eq!(winner(&merge_all(&pushes)), winner(&merge_all(&shuffled)));
    }

    #[test]
    fn merging_is_idempotent(pushes in history()) {
        let tree = merge_all(&pushes);
        for (path, deleted) in &pushes {
            prop_assert_eq!(tree.merge(path, *deleted, BodyPlace::Empty, LIMIT), Ok(Merge::Known));
        }
    }

    /// Replicating by way of another replica gives what replicating directly gives.
    #[test]
    fn merging_is_associative(left in history(), split in any::<prop::sample::Index>()) {
        let (first, second) = left.split_at(split.index(left.len() + 1));
        let between = merge_all(second);
        let carried: Vec<(RevPath, bool)> = between.leaves().iter().map(|leaf| {
            let mut hashes = vec![leaf.rev.hash.clone()];
            hashes.extend(leaf.ancestors.recent.iter().map(|ancestor| ancestor.hash.clone()));
            (RevPath::new(leaf.rev.generation, hashes).unwrap(), leaf.deleted)
        }).collect();
        prop_assert_eq!(shape(&merge_all(first.iter().chain(&carried))), shape(&merge_all(&left)));
    }

    /// The short ways of `merge` agree with the union of all links.
    #[test]
    fn short_ways_agree_with_the_merge_at_large(
        pushes in prop_oneof![history(), contradictions()],
        limit in prop_oneof![Just(LIMIT), 1u32..7],
    ) {
        let mut tree = RevTree::default();
        for (path, deleted) in &pushes {
            let short = tree.merge(path, *deleted, BodyPlace::Empty, limit).unwrap();
            let large = tree.merge_at_large(path, *deleted, BodyPlace::Empty, limit);
            prop_assert_eq!(&short, &large);
            if let Merge::Changed(next) = short {
                tree = next;
            }
            prop_assert!(tree.leaves().iter().all(|leaf| leaf.body == BodyPlace::Empty), "a leaf that nobody pushed");
        }
    }

    /// A tree that is taken apart for many paths is the one that they make one by one.
    #[test]
    fn a_growing_tree_is_the_tree_of_its_paths(
        pushes in prop_oneof![history_of(1..60), contradictions()],
        limits in prop::collection::vec(prop_oneof![20 => Just(None), 1 => Just(Some(LIMIT)), 1 => (1..7u32).prop_map(Some)], 60),
        looks in prop::collection::vec(prop::bool::weighted(0.1), 60),
    ) {
        let (mut tree, mut growing, mut limit) = (RevTree::default(), Growing::from(RevTree::default()), LIMIT);
        for (((path, deleted), version), (next_limit, look)) in pushes.iter().zip(1..).zip(limits.into_iter().zip(looks)) {
            limit = next_limit.unwrap_or(limit);
            let body = BodyPlace::Stored { key: BodyKey { seq: Sequence::new(0, version), ordinal: 0 }, bytes: 7 };
            let would_grow = growing.would_merge(path, *deleted, body, limit).unwrap();
            let grew = growing.merge(path, *deleted, body, limit).unwrap();
            prop_assert_eq!(would_grow, grew);
            match tree.merge(path, *deleted, body, limit).unwrap() {
                Merge::Known => prop_assert!(!grew),
                Merge::Changed(next) => {
                    prop_assert!(grew);
                    tree = next;
                }
            }
            let leaf = tree.leaf(&path.rev()).map(|leaf| Tip { deleted: leaf.deleted, body: leaf.body });
            prop_assert_eq!(growing.tip(&path.rev()), leaf);
            if look {
                prop_assert_eq!(growing.whole(), &tree);
            }
        }
        prop_assert_eq!(growing.whole(), &tree);
    }

    /// CouchDB's rule, over the revisions that no path names as a parent.
    #[test]
    fn the_winner_is_the_greatest_of_the_live_leaves_or_of_all(pushes in history()) {
        let parents: Vec<RevId> = pushes.iter().flat_map(|(path, _)| revs_of(path).split_off(1)).collect();
        let leaves = pushes.iter().filter(|(path, _)| !parents.contains(&path.rev()));
        let expected = leaves.max_by_key(|(path, deleted)| (!deleted, path.rev())).map(|(path, _)| path.rev());
        prop_assert_eq!(merge_all(&pushes).winner().map(|leaf| leaf.rev.clone()), expected);
    }

    /// What is found is what a walk over all branches finds.
    #[test]
    fn a_revision_is_found_on_every_branch_that_has_it(pushes in history(), limit in 1u32..7, at_hand in 0usize..4) {
        let tree = pushes.iter().fold(RevTree::default(), |tree, (path, deleted)| merged(&tree, path, *deleted, limit));
        let mut stored = tree.clone();
        for leaf in stored.leaves_mut() {
            let known = leaf.ancestors.recent.len();
            leaf.ancestors.recent.truncate(at_hand);
            leaf.ancestors.deeper = (known - leaf.ancestors.recent.len()) as u32;
        }
        let branch = |leaf: &Leaf| {
            let older = leaf.ancestors.recent.iter().map(|older| older.hash);
            let hashes = std::iter::once(leaf.rev.hash.clone()).chain(older);
            (0..=leaf.rev.generation).rev().zip(hashes).map(|(at, hash)| RevId::new(at, hash)).collect::<Vec<_>>()
        };
        for rev in pushes.iter().flat_map(|(path, _)| revs_of(path)) {
            let on = tree.leaves().iter().filter(|leaf| branch(leaf).contains(&rev));
            let on: Vec<String> = on.map(|leaf| leaf.rev.to_string()).collect();
            let (found, under, loads) = looked_up(&tree, &tree, &rev);
            prop_assert_eq!((found == Presence::Absent, loads), (on.is_empty(), 0));
            prop_assert_eq!(&under, &on);
            prop_assert_eq!(found, tree.find(&rev));
            let (found_there, under_there, _) = looked_up(&stored, &tree, &rev);
            prop_assert_eq!((found_there, under_there), (found, on));
            prop_assert!([found, Presence::HistoryNeeded].contains(&stored.find(&rev)));
        }
    }

    /// A cut branch is the newest part of the whole one: nothing is skipped, nothing is beyond the limit.
    #[test]
    fn stemming_cuts_the_oldest_revisions_only(pushes in history(), limit in 1u32..7) {
        let links: HashMap<RevId, RevId> =
            pushes.iter().flat_map(|(path, _)| revs_of(path).into_iter().zip(revs_of(path).split_off(1))).collect();
        let mut tree = RevTree::default();
        for (path, deleted) in &pushes {
            tree = merged(&tree, path, *deleted, limit);
            prop_assert_ne!(tree.find(&path.rev()), Presence::Absent);
            for leaf in tree.leaves() {
                prop_assert!(leaf.branch_len() <= limit as usize);
                let older = std::iter::successors(links.get(&leaf.rev), |rev| links.get(rev));
                let whole: Vec<String> = older.map(|rev| rev.hash.to_string()).collect();
                prop_assert!(whole.starts_with(&line(leaf)), "{leaf:?} of {whole:?}");
            }
        }
    }

    #[test]
    fn leaves_stand_in_winning_order_and_are_nobodys_ancestors(pushes in history()) {
        let tree = merge_all(&pushes);
        let order: Vec<_> = tree.leaves().iter().map(|l| (!l.deleted, l.rev.generation, l.rev.hash.clone())).collect();
        prop_assert!(order.is_sorted_by(|a, b| a > b));
        for leaf in tree.leaves() {
            prop_assert_eq!(looked_up(&tree, &tree, &leaf.rev).1, [leaf.rev.to_string()]);
        }
    }
}
