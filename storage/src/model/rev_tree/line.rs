//! Ancestors, one behind the other.

use std::iter::from_fn;

use super::Ancestor;
use crate::codec::{Malformed, Reader, revision};

/// Ancestors, newest first, as the bytes that rows have of them: most edits put one in front of the others and look at
/// none of these.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// Nothing but what [`revision::put`] makes.
    bytes: Vec<u8>,
    len: usize,
}

impl Line {
    /// Reads so many ancestors.
    pub(crate) fn read(reader: &mut Reader<'_>, len: usize) -> Result<Line, Malformed> {
        let from = reader.clone().rest();
        for _ in 0..len {
            revision::read(reader)?;
        }
        Ok(Line { bytes: from[..from.len() - reader.left()].to_vec(), len })
    }

    /// Reads all ancestors that there are.
    pub(crate) fn read_all(reader: Reader<'_>) -> Result<Line, Malformed> {
        let mut len = 0;
        let mut rest = reader.clone();
        while !rest.is_empty() {
            revision::read(&mut rest)?;
            len += 1;
        }
        Ok(Line { bytes: reader.rest().to_vec(), len })
    }

    /// These ancestors, and behind them others.
    pub(super) fn before(newer: impl IntoIterator<Item = Ancestor>, older: &Line) -> Line {
        /// What most ancestors take.
        const ANCESTOR_BYTES: usize = 32;
        let mut line = Line { bytes: Vec::with_capacity(older.bytes.len() + ANCESTOR_BYTES), len: 0 };
        line.extend(newer);
        line.append(older);
        line
    }

    /// As rows have them.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of them, newest first.
    pub fn iter(&self) -> impl Iterator<Item = Ancestor> + '_ {
        let mut reader = Reader::new(&self.bytes);
        (0..self.len).map_while(move |_| {
            // Each was made here, or has been read before.
            let revision::Revision { hash, deleted, body } = revision::read(&mut reader).ok()?;
            Some(Ancestor { hash, deleted, body })
        })
    }

    /// The one with so many before it.
    pub fn get(&self, at: usize) -> Option<Ancestor> {
        self.iter().nth(at)
    }

    /// Lines of so many of them each, one behind the other; the last may have fewer.
    pub(crate) fn chunks(&self, len: usize) -> impl Iterator<Item = Line> + '_ {
        let mut ancestors = self.iter();
        from_fn(move || Some(ancestors.by_ref().take(len).collect()).filter(|chunk: &Line| !chunk.is_empty()))
    }

    /// Puts older ones behind these.
    pub fn append(&mut self, older: &Line) {
        self.bytes.extend_from_slice(&older.bytes);
        self.len += older.len;
    }

    /// Keeps no more than so many, the newest.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len {
            *self = self.iter().take(len).collect();
        }
    }

    /// Takes away all but so many, the newest, and gives what it took.
    pub fn split_off(&mut self, at: usize) -> Line {
        let mut ancestors = self.iter();
        let kept: Line = ancestors.by_ref().take(at).collect();
        let older = ancestors.collect();
        *self = kept;
        older
    }
}

impl Extend<Ancestor> for Line {
    fn extend<T: IntoIterator<Item = Ancestor>>(&mut self, older: T) {
        for Ancestor { hash, deleted, body } in older {
            revision::put(&mut self.bytes, &hash, deleted, body);
            self.len += 1;
        }
    }
}

impl FromIterator<Ancestor> for Line {
    fn from_iter<T: IntoIterator<Item = Ancestor>>(ancestors: T) -> Line {
        let mut line = Line::default();
        line.extend(ancestors);
        line
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::tests::{any_hash, any_place};

    fn any_ancestors() -> impl Strategy<Value = Vec<Ancestor>> {
        let ancestor =
            (any_hash(), any::<bool>(), any_place()).prop_map(|(hash, deleted, body)| Ancestor { hash, deleted, body });
        prop::collection::vec(ancestor, 0..8)
    }

    fn line(ancestors: &[Ancestor]) -> Line {
        ancestors.iter().cloned().collect()
    }

    proptest! {
        #[test]
        fn a_line_is_a_list_of_ancestors(newer in any_ancestors(), older in any_ancestors(), at in 0..20usize) {
            let all = [&newer[..], &older[..]].concat();
            let whole = Line::before(newer.clone(), &line(&older));
            prop_assert_eq!(&whole, &line(&all));
            prop_assert_eq!((whole.len(), whole.is_empty()), (all.len(), all.is_empty()));
            prop_assert!(whole.iter().eq(all.iter().cloned()));
            prop_assert_eq!(whole.get(at), all.get(at).cloned());
            let (mut short, mut split) = (whole.clone(), whole.clone());
            short.truncate(at);
            let split_off = split.split_off(at);
            let at = at.min(all.len());
            prop_assert_eq!((&short, &split), (&line(&all[..at]), &line(&all[..at])));
            prop_assert_eq!(split_off, line(&all[at..]));
            let chunks: Vec<Line> = whole.chunks(at.max(1)).collect();
            prop_assert_eq!(chunks, all.chunks(at.max(1)).map(line).collect::<Vec<_>>());
        }

        #[test]
        fn a_line_is_read_as_it_was_written(ancestors in any_ancestors(), behind: Vec<u8>) {
            let line = line(&ancestors);
            let bytes = [line.as_bytes(), &behind].concat();
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(Line::read(&mut reader, ancestors.len()), Ok(line.clone()));
            prop_assert_eq!(reader.rest(), &behind[..]);
            prop_assert_eq!(Line::read_all(Reader::new(line.as_bytes())), Ok(line));
        }
    }
}
