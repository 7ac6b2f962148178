//! Revision trees, as replication grows them.

use std::collections::{BTreeMap, BTreeSet};

use arbitrary::{Result, Unstructured};
use seqtide_storage::model::body_place::BodyPlace;
use seqtide_storage::model::rev::{RevHash, RevId};
use seqtide_storage::model::rev_path::RevPath;
use seqtide_storage::model::rev_tree::{Ancestors, Leaf, Line, Merge, RevTree};

const NO_LIMIT: u32 = 1000;

/// A leaf from elsewhere, with some of its ancestors.
#[derive(Debug, Clone)]
struct Push {
    path: RevPath,
    deleted: bool,
}

/// Random leaves of a random history: merged in any order they make the tree that follows from all of them, whether
/// or not its older ancestors are at hand; stemmed branches keep their length and their order.
///
/// # Panics
/// When that does not hold.
pub fn check(input: &[u8]) {
    let mut choices = Unstructured::new(input);
    // An input that ends makes zeros, not errors.
    let Ok((pushes, shuffled, at_hand, limit)) = read(&mut choices) else {
        return;
    };
    let tree = merge_all(&pushes, NO_LIMIT);
    assert_eq!(shape(&tree), expected_shape(&pushes), "of {pushes:?}");
    assert_eq!(shape(&merge_all(&shuffled, NO_LIMIT)), shape(&tree), "{pushes:?} and {shuffled:?}");
    assert_eq!(tree.winner().map(|leaf| leaf.rev.clone()), expected_winner(&pushes), "of {pushes:?}");
    check_with_history_apart(&pushes, at_hand);
    check_stemmed(&pushes, limit);
}

type Input = (Vec<Push>, Vec<Push>, usize, u32);

fn read(choices: &mut Unstructured<'_>) -> Result<Input> {
    let pushes = pushes(choices)?;
    let mut shuffled = pushes.clone();
    for at in (1..shuffled.len()).rev() {
        shuffled.swap(at, choices.int_in_range(0..=at)?);
    }
    Ok((pushes, shuffled, choices.int_in_range(0..=4)?, choices.int_in_range(1..=6)?))
}

/// Each revision has one parent for good: 0, or one before it.
fn pushes(choices: &mut Unstructured<'_>) -> Result<Vec<Push>> {
    let mut history: Vec<(u64, Option<usize>, bool)> = Vec::new();
    for _ in 0..choices.int_in_range(1..=24)? {
        let parent = choices.int_in_range(0..=history.len())?.checked_sub(1);
        let generation = 1 + parent.map_or(0, |parent| history[parent].0);
        history.push((generation, parent, choices.arbitrary()?));
    }
    let mut pushes = Vec::new();
    for _ in 0..choices.int_in_range(1..=12)? {
        let newest = choices.int_in_range(0..=history.len() - 1)?;
        let line = std::iter::successors(Some(newest), |at| history[*at].1);
        let len = choices.int_in_range(1..=9)?;
        let hashes = line.take(len).map(|at| RevHash::parse(&format!("n{at}")).expect("a text")).collect();
        let (generation, _, deleted) = history[newest];
        pushes.extend(RevPath::new(generation, hashes).map(|path| Push { path, deleted }));
    }
    Ok(pushes)
}

/// Merges into a tree that has all history at hand.
fn merge(tree: &RevTree, push: &Push, limit: u32) -> RevTree {
    match tree.merge(&push.path, push.deleted, BodyPlace::Empty, limit).expect("all history is at hand") {
        Merge::Known => tree.clone(),
        Merge::Changed(tree) => tree,
    }
}

fn merge_all(pushes: &[Push], limit: u32) -> RevTree {
    pushes.iter().fold(RevTree::default(), |tree, push| merge(&tree, push, limit))
}

/// What replicas agree on: each leaf, whether it is a tombstone, and its line.
type Shape = BTreeSet<(RevId, bool, Vec<RevHash>)>;

fn shape(tree: &RevTree) -> Shape {
    let line = |leaf: &Leaf| leaf.ancestors.recent.iter().map(|ancestor| ancestor.hash.clone()).collect();
    tree.leaves().iter().map(|leaf| (leaf.rev.clone(), leaf.deleted, line(leaf))).collect()
}

/// The parent of each revision, where a path tells it.
fn parents(pushes: &[Push]) -> BTreeMap<RevId, Option<RevId>> {
    let mut parents = BTreeMap::new();
    for Push { path, .. } in pushes {
        let revs = path.hashes().iter().zip(0..).map(|(hash, step)| RevId::new(path.start() - step, hash.clone()));
        let revs: Vec<RevId> = revs.collect();
        for (at, rev) in revs.iter().enumerate() {
            let known: &mut Option<RevId> = parents.entry(rev.clone()).or_default();
            *known = known.take().or_else(|| revs.get(at + 1).cloned());
        }
    }
    parents
}

fn expected_shape(pushes: &[Push]) -> Shape {
    let parents = parents(pushes);
    let inner: BTreeSet<&RevId> = parents.values().flatten().collect();
    let deleted = |rev: &RevId| pushes.iter().any(|push| push.path.rev() == *rev && push.deleted);
    let line = |rev: &RevId| {
        let older = std::iter::successors(parents[rev].clone(), |rev| parents[rev].clone());
        older.map(|rev| rev.hash).collect()
    };
    let leaves = parents.keys().filter(|rev| !inner.contains(rev));
    leaves.map(|rev| (rev.clone(), deleted(rev), line(rev))).collect()
}

/// CouchDB's rule: live before deleted, then the longer, then the greater hash.
fn expected_winner(pushes: &[Push]) -> Option<RevId> {
    let leaves = expected_shape(pushes).into_iter();
    leaves.max_by_key(|(rev, deleted, _)| (!deleted, rev.clone())).map(|(rev, ..)| rev)
}

/// A tree whose older ancestors lie apart takes each push as the whole tree does.
fn check_with_history_apart(pushes: &[Push], at_hand: usize) {
    let mut tree = RevTree::default();
    for push in pushes {
        let (apart, chunks) = with_history_apart(&tree, at_hand);
        let load = |leaf: &Leaf| Ok::<_, ()>(ancestors(leaf, &chunks));
        let Push { path, deleted } = push;
        let next = merge(&tree, push, NO_LIMIT);
        let merged = apart.merge(path, *deleted, BodyPlace::Empty, NO_LIMIT);
        let next_apart = match merged {
            Ok(Merge::Known) => apart,
            Ok(Merge::Changed(next)) => next,
            Err(_history_needed) => {
                let whole = apart.with_history(load).expect("it never fails");
                merge(&whole, push, NO_LIMIT)
            }
        };
        let next_whole = next_apart.with_history(load).expect("it never fails");
        assert_eq!(next_whole, next, "{push:?} on {tree:?} with {at_hand} ancestors at hand");
        tree = next;
    }
}

/// Leaves each branch only its newest ancestors; the others are its chunk.
fn with_history_apart(tree: &RevTree, at_hand: usize) -> (RevTree, Vec<Line>) {
    let (mut leaves, mut chunks) = (tree.leaves().to_vec(), Vec::new());
    for leaf in &mut leaves {
        let line = &mut leaf.ancestors.recent;
        let older = line.split_off(at_hand.min(line.len()));
        if !older.is_empty() {
            leaf.ancestors.deeper = older.len() as u32;
            leaf.ancestors.chunks = vec![chunks.len() as u32];
            chunks.push(older);
        }
    }
    (RevTree::from_leaves(leaves), chunks)
}

fn ancestors(leaf: &Leaf, chunks: &[Line]) -> Line {
    let Ancestors { recent, chunks: numbers, .. } = &leaf.ancestors;
    let mut line = recent.clone();
    numbers.iter().for_each(|number| line.append(&chunks[*number as usize]));
    line.truncate(leaf.ancestors.len());
    line
}

/// Where branches are cut, what was merged is known from then on, and no branch is too long.
fn check_stemmed(pushes: &[Push], limit: u32) {
    let mut tree = RevTree::default();
    for push in pushes {
        tree = merge(&tree, push, limit);
        assert_eq!(merge(&tree, push, limit), tree, "{push:?} again, with limit {limit}, of {pushes:?}");
        assert!(tree.leaves().iter().all(|leaf| leaf.branch_len() <= limit as usize), "{tree:?} with limit {limit}");
        let order = |leaf: &Leaf| (!leaf.deleted, leaf.rev.clone());
        assert!(tree.leaves().is_sorted_by(|a, b| order(a) > order(b)), "{tree:?}");
    }
}
