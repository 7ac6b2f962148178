//! Rows as bytes and nothing else, as they go over the wire: what a feed gives of rows that it read from the disk for
//! itself, which nobody else will ask for.

use bytes::Bytes;

use crate::feed::large_page::{LARGE_PAGE_BYTES, LargePage};
use crate::row::{Row, RowShape};

/// How rows stand one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameForm {
    /// `data: {…}\nid: N\n\n`, each.
    Sse,
    /// `{…}\n`, each.
    Lines,
    /// `{…}`, and this between two of them.
    List {
        /// What stands between them.
        between: &'static str,
    },
}

/// Rows as bytes alone, in order.
#[derive(Debug, Clone, Default)]
pub struct Frames {
    bytes: Bytes,
    count: usize,
    /// Whether it is a large page, which has room of its own.
    large: bool,
}

impl Frames {
    /// Encodes rows.
    pub(crate) fn of(rows: Vec<Row>, shape: RowShape, form: FrameForm) -> Frames {
        let mut bytes = Vec::with_capacity(rows.iter().map(|row| row.about_bytes(shape)).sum());
        let count = rows.len();
        for (at, row) in rows.into_iter().enumerate() {
            match form {
                FrameForm::Sse => row.write_frame(&mut bytes, shape),
                FrameForm::Lines => {
                    row.write_json(&mut bytes, shape);
                    bytes.push(b'\n');
                }
                FrameForm::List { between } => {
                    bytes.extend_from_slice(if at == 0 { b"" } else { between.as_bytes() });
                    row.write_json(&mut bytes, shape);
                }
            }
        }
        // Without spare room: it is kept for as long as a reader takes.
        Frames { bytes: bytes.into_boxed_slice().into(), count, large: false }
    }

    /// Keeps this room for as long as any of the bytes are there.
    pub(crate) fn keep_in(&mut self, room: Option<LargePage>) {
        if let Some(room) = room.filter(|_| !self.is_empty()) {
            self.bytes = room.keep(std::mem::take(&mut self.bytes));
            self.large = true;
        }
    }

    /// How many of its bytes have room of their own.
    pub(crate) fn room(&self) -> usize {
        if self.large { LARGE_PAGE_BYTES } else { 0 }
    }

    /// All of it.
    pub fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}
