//! A row as bytes: what is shown of it, and the frame that holds every form.
//!
//! One encoding serves every door: the SSE frame `data: {…}\nid: N\n\n` holds the row's JSON, and the row's JSON with
//! its line end, at a fixed place.

use bytes::Bytes;
use seqtide_storage::model::sequence::{SeqText, Sequence};
use seqtide_storage::{Change, Detail};

/// What a row shows of its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RowShape {
    /// All leaves instead of the winner (`style=all_docs`).
    pub all_leaves: bool,
    /// The winner's body (`include_docs`).
    pub doc: bool,
    /// With the body, the live leaves that lost (`conflicts`).
    pub conflicts: bool,
}

impl RowShape {
    /// What a row must carry of its document.
    pub(crate) fn detail(self) -> Detail {
        let RowShape { all_leaves, doc, conflicts } = self;
        Detail { leaves: all_leaves || doc && conflicts, bodies: doc }
    }

    /// The plainest shape in which a change looks the same.
    pub(super) fn seen_in(self, change: &Change) -> RowShape {
        let RowShape { all_leaves, doc, conflicts } = self;
        let several = change.leaves.len() > 1;
        RowShape { all_leaves: all_leaves && several, doc, conflicts: conflicts && doc && several }
    }
}

const DATA: &[u8] = b"data: ";

/// A row as an SSE frame, which holds the other forms. They share its bytes.
#[derive(Debug, Clone)]
pub struct Frame {
    sse: Bytes,
    json_bytes: usize,
}

impl Frame {
    /// `data: {…}\nid: N\n\n`
    pub fn sse(&self) -> Bytes {
        self.sse.clone()
    }

    /// `{…}`
    pub fn json(&self) -> Bytes {
        self.sse.slice(DATA.len()..DATA.len() + self.json_bytes)
    }

    /// `{…}\n`
    pub fn line(&self) -> Bytes {
        self.sse.slice(DATA.len()..=DATA.len() + self.json_bytes)
    }

    /// The frame of a row of about so many bytes.
    pub(crate) fn of(seq: SeqText, about_bytes: usize, write_json: impl FnOnce(&mut Vec<u8>)) -> Frame {
        let mut out = Vec::with_capacity(about_bytes);
        let json_bytes = Frame::write(&mut out, seq, write_json);
        Frame { sse: out.into(), json_bytes }
    }

    /// Appends a frame; gives how long the JSON in it is.
    pub(super) fn write(out: &mut Vec<u8>, seq: SeqText, write_json: impl FnOnce(&mut Vec<u8>)) -> usize {
        out.extend_from_slice(DATA);
        let start = out.len();
        write_json(out);
        let json_bytes = out.len() - start;
        out.extend_from_slice(b"\nid: ");
        seq.write(out);
        out.extend_from_slice(b"\n\n");
        json_bytes
    }
}

/// What a feed gives, as bytes.
pub trait FeedRow: Send + Sync + 'static {
    /// Its place in the feed.
    fn seq(&self) -> Sequence;

    /// The row in every form.
    fn frame(&self, shape: RowShape) -> Frame;

    /// Writes the row's JSON with `null` as its `seq`, as `seq_interval` asks for.
    fn write_without_seq(&self, out: &mut Vec<u8>, shape: RowShape);
}
