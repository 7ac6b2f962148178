use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::model::body_place::BodyPlace;
use crate::model::rev::{RevHash, RevId};
use crate::model::rev_path::RevPath;
use crate::model::rev_tree::Merge;

/// One document as tables keep it, beside the same tree with all its history at hand.
#[derive(Default)]
struct Disk {
    head: Option<DocHead>,
    chunks: BTreeMap<Vec<u8>, Vec<u8>>,
    whole: RevTree,
    revisions: u64,
}

#[derive(Debug, Clone)]
enum Step {
    /// So many edits on a leaf, planned one after the other and applied at once.
    Extend { leaf: Index, edits: usize },
    /// A branch of so many revisions off a revision of a leaf's line, or a root where the line ends.
    Branch { leaf: Index, depth: Index, revs: usize },
    /// The revisions a branch keeps from now on.
    Limit(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let limit = prop_oneof![Just(1), Just(2), Just(9), Just(32), Just(33), Just(57), Just(1000)];
    prop_oneof![
        6 => (any::<Index>(), prop_oneof![3 => 1usize..4, 2 => 1usize..90])
            .prop_map(|(leaf, edits)| Step::Extend { leaf, edits }),
        3 => (any::<Index>(), any::<Index>(), prop_oneof![Just(1usize), 1usize..70])
            .prop_map(|(leaf, depth, revs)| Step::Branch { leaf, depth, revs }),
        1 => limit.prop_map(Step::Limit),
    ]
}

impl Disk {
    fn id() -> DocId {
        DocId::stored("a")
    }

    /// A hash that was never there.
    fn new_hash(&mut self) -> RevHash {
        self.revisions += 1;
        RevHash::Md5(u128::from(self.revisions).to_be_bytes())
    }

    fn tree(&self) -> RevTree {
        self.head.as_ref().map(|head| head.tree.clone()).unwrap_or_default()
    }

    /// A leaf's ancestors as they are stored.
    fn ancestors(&self, leaf: &Leaf) -> Line {
        let mut line = leaf.ancestors.recent.clone();
        for chunk in &leaf.ancestors.chunks {
            line.append(&history::decode(&self.chunks[&keys::history(&Disk::id(), *chunk)]).unwrap());
        }
        line.truncate(leaf.ancestors.len());
        line
    }

    fn extend(&mut self, leaf: Index, edits: usize, limit: u32) {
        let tree = self.tree();
        let parent = (!tree.leaves().is_empty()).then(|| leaf.get(tree.leaves()).rev.clone());
        self.edit(parent, edits, limit);
    }

    /// Makes the document, or edits it on a leaf.
    fn edit(&mut self, mut parent: Option<RevId>, edits: usize, limit: u32) {
        let mut tree = self.tree();
        for _ in 0..edits {
            let rev = RevId::new(parent.as_ref().map_or(0, |rev| rev.generation) + 1, self.new_hash());
            for tree in [&mut tree, &mut self.whole] {
                assert!(tree.extend(parent.as_ref(), rev.clone(), false, BodyPlace::Empty, limit));
            }
            parent = Some(rev);
        }
        self.apply(tree);
    }

    fn branch(&mut self, leaf: Index, depth: Index, revs: usize, limit: u32) {
        if self.whole.leaves().is_empty() {
            return;
        }
        let leaf = leaf.get(self.whole.leaves()).clone();
        let line: Vec<_> = leaf.ancestors.recent.iter().map(|ancestor| ancestor.hash.clone()).collect();
        let depth = depth.index(line.len() + 1);
        let fork = leaf.rev.generation - 1 - depth as u64;
        let mut hashes: Vec<_> = (0..revs).map(|_| self.new_hash()).collect();
        hashes.extend(line.get(depth).cloned());
        let path = RevPath::new(fork + revs as u64, hashes).unwrap();
        let tree = merged(&self.tree(), |leaf| self.ancestors(leaf), &path, limit);
        self.whole = merged(&self.whole, |_| unreachable!("all is at hand"), &path, limit);
        self.apply(tree);
    }

    fn apply(&mut self, tree: RevTree) {
        let seq = self.head.as_ref().map_or(Sequence::ZERO, |head| head.seq).next();
        let mut rows = Rows::default();
        let whole = Some(self.tree().with_history(|leaf| Ok::<_, ()>(self.ancestors(leaf))).unwrap());
        let (before, bodies, erased) = (self.head.take(), Vec::new(), Vec::new());
        let doc = PlannedDoc { id: Disk::id(), before, whole, tree, seq, bodies, erased };
        doc.write(&mut rows);
        for row in rows.iter() {
            let key = row.key.to_vec();
            match (row.table, row.value) {
                (Table::History, Some(chunk)) => assert_eq!(self.chunks.insert(key, chunk.to_vec()), None),
                (Table::History, None) => assert!(self.chunks.remove(&key).is_some()),
                (Table::Docs, Some(value)) => self.head = Some(head::decode(value).unwrap()),
                _ => {}
            }
        }
    }

    fn check(&self) {
        let tree = self.tree();
        let whole = tree.with_history(|leaf| Ok::<_, ()>(self.ancestors(leaf))).unwrap();
        assert_eq!(whole, self.whole);
        let mut needed = BTreeSet::new();
        for leaf in tree.leaves() {
            assert!(leaf.ancestors.recent.len() <= RECENT_MAX);
            assert_eq!(leaf.ancestors.chunks.len(), (leaf.ancestors.deeper as usize).div_ceil(CHUNK_LEN));
            needed.extend(leaf.ancestors.chunks.iter().map(|chunk| keys::history(&Disk::id(), *chunk)));
        }
        assert!(needed.iter().eq(self.chunks.keys()), "each chunk is some leaf's");
    }
}

fn merged(tree: &RevTree, load: impl Fn(&Leaf) -> Line, path: &RevPath, limit: u32) -> RevTree {
    let merge = |tree: &RevTree| tree.merge(path, false, BodyPlace::Empty, limit);
    let merge = merge(tree).or_else(|_| merge(&tree.with_history(|leaf| Ok::<_, ()>(load(leaf))).unwrap()));
    match merge.unwrap() {
        Merge::Known => panic!("new revisions are not known"),
        Merge::Changed(tree) => tree,
    }
}

proptest! {
    #[test]
    fn history_on_disk_is_the_history_and_has_no_orphans(steps in prop::collection::vec(step(), 1..40)) {
        let (mut disk, mut limit) = (Disk::default(), 1000);
        for step in steps {
            match step {
                Step::Extend { leaf, edits } => disk.extend(leaf, edits, limit),
                Step::Branch { leaf, depth, revs } => disk.branch(leaf, depth, revs, limit),
                Step::Limit(new) => limit = new,
            }
            disk.check();
        }
    }
}

#[test]
fn an_edit_touches_history_only_when_a_chunk_fills() {
    let mut disk = Disk::default();
    let mut filled = 0;
    for _ in 0..240 {
        let before = disk.chunks.clone();
        disk.edit(disk.tree().winner().map(|winner| winner.rev.clone()), 1, 1000);
        let new = disk.chunks.iter().filter(|(key, _)| !before.contains_key(*key)).count();
        assert!(new <= 1 && before.iter().all(|(key, chunk)| disk.chunks.get(key) == Some(chunk)));
        filled += new;
    }
    assert_eq!(filled, (240 - RECENT_KEPT) / CHUNK_LEN);
}
