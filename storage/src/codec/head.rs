//! Value of `docs`: the head of a document's revision tree.

use super::{Malformed, Reader, put_varint, revision};
use crate::model::body_place::BodyPlace;
use crate::model::rev::RevId;
use crate::model::rev_tree::{Ancestors, Leaf, Line, RevTree};
use crate::model::sequence::Sequence;

const TAG: u8 = 1;

/// What `docs` keeps of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocHead {
    /// The latest sequence: the key of its row in `by_seq`.
    pub seq: Sequence,
    /// The tree, with the newest ancestors of each leaf at hand.
    pub tree: RevTree,
    /// The number the next history chunk gets.
    pub next_chunk: u32,
}

/// What a listing needs of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocSummary {
    /// The latest sequence.
    pub seq: Sequence,
    /// The winner's revision.
    pub rev: RevId,
    /// Whether the winner is a tombstone.
    pub deleted: bool,
    /// Where the winner's body lies.
    pub body: BodyPlace,
    /// How many leaves there are.
    pub branches: u32,
}

/// Encodes a head.
pub fn encode(head: &DocHead) -> Vec<u8> {
    let leaf_bytes = |leaf: &Leaf| 64 + leaf.ancestors.recent.as_bytes().len() + 5 * leaf.ancestors.chunks.len();
    let mut out = Vec::with_capacity(32 + head.tree.leaves().iter().map(leaf_bytes).sum::<usize>());
    put(&mut out, head);
    out
}

/// Appends a head.
pub(crate) fn put(out: &mut Vec<u8>, head: &DocHead) {
    out.push(TAG);
    out.extend_from_slice(&head.seq.to_bytes());
    put_varint(out, head.tree.leaves().len() as u64);
    for leaf in head.tree.leaves() {
        put_varint(out, leaf.rev.generation);
        revision::put(out, &leaf.rev.hash, leaf.deleted, leaf.body);
        put_ancestors(out, &leaf.ancestors);
    }
    put_varint(out, u64::from(head.next_chunk));
}

fn put_ancestors(out: &mut Vec<u8>, ancestors: &Ancestors) {
    put_varint(out, ancestors.recent.len() as u64);
    out.extend_from_slice(ancestors.recent.as_bytes());
    put_varint(out, u64::from(ancestors.deeper));
    put_varint(out, ancestors.chunks.len() as u64);
    for chunk in &ancestors.chunks {
        put_varint(out, u64::from(*chunk));
    }
}

/// Decodes a head.
///
/// # Errors
/// [`Malformed`].
pub fn decode(value: &[u8]) -> Result<DocHead, Malformed> {
    let (seq, branches, mut reader) = open(value)?;
    let leaves = reader.times(branches as usize, |reader| {
        let generation = reader.varint()?;
        let revision = revision::read(reader)?;
        let ancestors = read_ancestors(reader, generation)?;
        let rev = RevId::new(generation, revision.hash);
        Ok(Leaf { rev, deleted: revision.deleted, body: revision.body, ancestors })
    })?;
    let next_chunk = reader.number()?;
    reader.end()?;
    // Who reads no further than the first leaf takes it for the winner.
    let tree = RevTree::from_stored(leaves).ok_or(Malformed("leaves out of order"))?;
    Ok(DocHead { seq, tree, next_chunk })
}

fn open(value: &[u8]) -> Result<(Sequence, u32, Reader<'_>), Malformed> {
    let mut reader = Reader::tagged(value, TAG)?;
    let seq = Sequence::from_bytes(&reader.array()?);
    let branches = reader.number()?;
    if branches == 0 { Err(Malformed("a document without leaves")) } else { Ok((seq, branches, reader)) }
}

fn read_ancestors(reader: &mut Reader<'_>, generation: u64) -> Result<Ancestors, Malformed> {
    let count = reader.number()?;
    let recent = Line::read(reader, count)?;
    let deeper = reader.number()?;
    let chunks = reader.list(Reader::number)?;
    let ancestors = Ancestors { recent, chunks, deeper };
    if ancestors.len() as u64 > generation {
        return Err(Malformed("more ancestors than generations"));
    }
    Ok(ancestors)
}

/// Decodes only what a listing needs: the winner stands first.
///
/// # Errors
/// [`Malformed`].
pub fn decode_summary(value: &[u8]) -> Result<DocSummary, Malformed> {
    let (seq, branches, mut reader) = open(value)?;
    let generation = reader.varint()?;
    let winner = revision::read(&mut reader)?;
    let rev = RevId::new(generation, winner.hash);
    Ok(DocSummary { seq, rev, deleted: winner.deleted, body: winner.body, branches })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::tests::{any_hash, any_place, any_seq};
    use crate::model::rev::RevHash;
    use crate::model::rev_tree::Ancestor;

    fn any_leaf() -> impl Strategy<Value = Leaf> {
        let ancestor =
            (any_hash(), any::<bool>(), any_place()).prop_map(|(hash, deleted, body)| Ancestor { hash, deleted, body });
        let ancestors = (prop::collection::vec(ancestor, 0..6), prop::collection::vec(any::<u32>(), 0..4), 0u32..100)
            .prop_map(|(recent, chunks, deeper)| Ancestors { recent: recent.into_iter().collect(), chunks, deeper });
        (200u64.., any_hash(), any::<bool>(), any_place(), ancestors).prop_map(
            |(generation, hash, deleted, body, ancestors)| Leaf {
                rev: RevId::new(generation, hash),
                deleted,
                body,
                ancestors,
            },
        )
    }

    /// What [`put_ancestors`] makes, one ancestor after the other.
    fn ancestors_one_by_one(ancestors: &Ancestors) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, ancestors.recent.iter().count() as u64);
        for ancestor in ancestors.recent.iter() {
            revision::put(&mut out, &ancestor.hash, ancestor.deleted, ancestor.body);
        }
        put_varint(&mut out, u64::from(ancestors.deeper));
        put_varint(&mut out, ancestors.chunks.len() as u64);
        ancestors.chunks.iter().for_each(|chunk| put_varint(&mut out, u64::from(*chunk)));
        out
    }

    #[test]
    fn leaves_out_of_order_are_malformed() {
        let leaf = |generation| Leaf {
            rev: RevId::new(generation, RevHash::Md5([0; 16])),
            deleted: false,
            body: BodyPlace::Empty,
            ancestors: Ancestors::default(),
        };
        let head = |generations: [u64; 2]| {
            let [first, second] = generations.map(|generation| {
                let tree = RevTree::from_leaves(vec![leaf(generation)]);
                encode(&DocHead { seq: Sequence::ZERO, tree, next_chunk: 0 })
            });
            let (start, first, end) = (&first[..1 + Sequence::BYTES], &first[..first.len() - 1], [0]);
            [start, &[2], &first[start.len() + 1..], &second[start.len() + 1..second.len() - 1], &end].concat()
        };
        assert!(decode(&head([2, 1])).is_ok());
        for generations in [[1, 2], [1, 1]] {
            assert_eq!(decode(&head(generations)), Err(Malformed("leaves out of order")), "{generations:?}");
        }
    }

    proptest! {
        /// A leaf that is built on takes its line over as it is stored.
        #[test]
        fn the_ancestors_of_a_head_are_the_same_bytes_whoever_put_them_together(
            leaf in any_leaf(),
            revs in prop::collection::vec((any_hash(), any::<bool>(), any_place()), 1..8),
            limit in 1u32..12,
        ) {
            let mut parent = leaf.rev.clone();
            let mut tree = RevTree::from_leaves(vec![Leaf { rev: RevId::new(1000, leaf.rev.hash.clone()), ..leaf }]);
            parent.generation = 1000;
            for (hash, deleted, body) in revs {
                let before = tree.leaves()[0].clone();
                let rev = RevId::new(parent.generation + 1, hash);
                prop_assert!(tree.extend(Some(&parent), rev.clone(), deleted, body, limit));
                let Leaf { ancestors, .. } = &tree.leaves()[0];
                let mut line = vec![Ancestor { hash: before.rev.hash, deleted: before.deleted, body: before.body }];
                line.extend(before.ancestors.recent.iter());
                line.truncate(limit as usize - 1);
                prop_assert!(ancestors.recent.iter().eq(line));
                let mut out = Vec::new();
                put_ancestors(&mut out, ancestors);
                prop_assert_eq!(&out, &ancestors_one_by_one(ancestors));
                let head = DocHead { seq: Sequence::ZERO, tree: tree.clone(), next_chunk: 0 };
                tree = decode(&encode(&head)).unwrap().tree;
                prop_assert_eq!(&tree, &head.tree);
                parent = rev;
            }
        }

        #[test]
        fn heads_round_trip(seq in any_seq(), leaves in prop::collection::vec(any_leaf(), 1..4), next_chunk: u32) {
            let head = DocHead { seq, tree: RevTree::from_leaves(leaves), next_chunk };
            let value = encode(&head);
            prop_assert_eq!(decode(&value), Ok(head.clone()));
            let summary = decode_summary(&value).unwrap();
            let winner = head.tree.winner().unwrap();
            prop_assert_eq!((summary.seq, &summary.rev, summary.deleted), (seq, &winner.rev, winner.deleted));
            for len in 0..value.len() {
                prop_assert!(decode(&value[..len]).is_err());
            }
        }
    }
}
