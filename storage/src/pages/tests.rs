use std::path::Path;

use proptest::prelude::*;

use super::fields::u64_at;
use super::file::PageFile;
use super::meta::numbered;
use super::page::{Content, Nodes, read_run_header};
use super::walk::walk;
use crate::seal::Seals;

const PAGE_BYTES: usize = 4096;

/// What is wrong with the two commits that the meta pages of a folder's file lead to, of which an opening looks at one.
pub(crate) fn damages_of_both_commits(folder: &Path) -> Vec<String> {
    let mut file = PageFile::open(folder).unwrap().unwrap();
    file.set_page_bytes(PAGE_BYTES);
    let metas = [0, 1].map(|page| numbered(&file, page).unwrap().1);
    let of = |meta| walk(&file, meta, Seals::Required).damages;
    let walked = metas.iter().flat_map(|meta| of(meta).into_iter().map(|damage| damage.to_string()));
    metas.iter().flat_map(|meta| meta.problems.clone()).chain(walked).collect()
}

/// A page of noise with a header that may make sense.
fn any_page() -> impl Strategy<Value = Vec<u8>> {
    let header = (0u16..6, 0u16..200, any::<u16>());
    (prop::collection::vec(any::<u8>(), PAGE_BYTES), header).prop_map(|(mut page, (kind, lower, upper))| {
        page[..8].copy_from_slice(&7u64.to_ne_bytes());
        for (at, number) in [(10, kind), (12, 16 + 2 * lower), (14, upper % 4200)] {
            page[at..at + 2].copy_from_slice(&number.to_ne_bytes());
        }
        page
    })
}

/// A leaf of these rows, as LMDB lays it out.
fn leaf(rows: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut page = vec![0; PAGE_BYTES];
    let mut upper = PAGE_BYTES;
    for (number, (key, value)) in rows.iter().enumerate() {
        upper -= (8 + key.len() + value.len()).next_multiple_of(2);
        page[16 + 2 * number..][..2].copy_from_slice(&(upper as u16).to_ne_bytes());
        let header = [&(value.len() as u32).to_ne_bytes()[..], &[0, 0], &(key.len() as u16).to_ne_bytes()].concat();
        page[upper..][..8 + key.len() + value.len()].copy_from_slice(&[&header[..], key, value].concat());
    }
    page[..8].copy_from_slice(&7u64.to_ne_bytes());
    for (at, number) in [(10, 2), (12, 16 + 2 * rows.len()), (14, upper)] {
        page[at..at + 2].copy_from_slice(&(number as u16).to_ne_bytes());
    }
    page
}

proptest! {
    #[test]
    fn noise_is_refused_or_read_and_never_a_panic(page in any_page()) {
        let _ = read_run_header(&page, 7);
        if let Ok(nodes) = Nodes::read(&page, 7) {
            for node in 0..nodes.len {
                let _ = (nodes.key(node), nodes.child(node), nodes.content(node));
            }
        }
    }

    #[test]
    fn a_leaf_is_read_as_it_was_laid_out_and_a_flip_in_its_shape_is_seen(
        rows in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..30), prop::collection::vec(any::<u8>(), 0..60)), 1..30),
        at in 0usize..PAGE_BYTES, bit in 0u32..8,
    ) {
        let mut page = leaf(&rows);
        let nodes = Nodes::read(&page, 7).unwrap();
        for (node, (key, value)) in rows.iter().enumerate() {
            prop_assert_eq!(nodes.key(node), &key[..]);
            prop_assert_eq!(nodes.content(node), Content::Inline(value));
        }
        let offsets_end = 16 + 2 * rows.len();
        let is_shape = at < offsets_end && at != 8 && at != 9;
        page[at] ^= 1 << bit;
        prop_assert!(!is_shape || Nodes::read(&page, 7).is_err(), "byte {} of {} offsets", at, rows.len());
    }
}

#[test]
fn numbers_beyond_the_end_are_nothing() {
    assert_eq!(u64_at(&[1; 10], 4), 0);
    assert_eq!(u64_at(&[1; 10], usize::MAX), 0);
}
