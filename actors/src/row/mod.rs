//! A change on its way to readers: its bytes, encoded once for each form and shared by all who get it, and what filters
//! have said of it.

mod frame;
mod verdicts;

use std::sync::Arc;

use parking_lot::Mutex;
use seqtide_storage::json::write_json_string;
use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::{Change, LeafRev};

pub use self::frame::{FeedRow, Frame, RowShape};
pub(crate) use self::verdicts::NotHere;
use self::verdicts::Verdicts;
use crate::documents::json::{write_document, write_revs};
use crate::selector::{DocView, Fields};

/// Writes a row's document, or `null` when its body is not there.
pub fn write_row_document(out: &mut Vec<u8>, change: &Change, shape: RowShape) {
    let Some(body) = &change.body else {
        out.extend_from_slice(b"null");
        return;
    };
    let winner = change.winner();
    write_document(out, change.id.as_str(), Some(&winner.rev), winner.deleted, body, |out| {
        if shape.conflicts {
            write_conflicts(out, change);
        }
    });
}

/// Writes `,"_conflicts":[…]` if there are any.
fn write_conflicts(out: &mut Vec<u8>, change: &Change) {
    let conflicts = change.leaves.iter().skip(1).filter(|leaf| !leaf.deleted).map(|leaf| &leaf.rev);
    write_revs(out, "_conflicts", conflicts);
}

/// What one feed leaves out of a row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trim {
    /// The leaves that are listed with `all_leaves`; `None` lists all.
    pub leaves: Option<Arc<[LeafRev]>>,
    /// The fields that are shown of the document; `None` shows it whole.
    pub fields: Option<Arc<Fields>>,
    /// The document has left the feed: of it nothing is shown.
    pub left: bool,
}

impl Trim {
    /// Of a document that has left the feed.
    pub fn left() -> Trim {
        Trim { left: true, ..Trim::default() }
    }

    /// Whether nothing is left out.
    pub fn is_none(&self) -> bool {
        self.leaves.is_none() && self.fields.is_none() && !self.left
    }
}

/// A change on its way to readers.
#[derive(Debug)]
pub struct Row {
    change: Change,
    format: SeqFormat,
    trim: Trim,
    frames: Mutex<Kept>,
    verdicts: Verdicts,
}

/// The frames that a row keeps.
#[derive(Debug)]
enum Kept {
    /// One for each shape that was asked for.
    Frames(Vec<(RowShape, Frame)>),
    /// None any more.
    None,
}

impl AsRef<Change> for Row {
    fn as_ref(&self) -> &Change {
        &self.change
    }
}

impl Row {
    pub(crate) fn new(change: Change, format: SeqFormat) -> Row {
        Row::trimmed(change, format, Trim::default())
    }

    /// A row for the feeds that leave this out.
    pub(crate) fn trimmed(change: Change, format: SeqFormat, trim: Trim) -> Row {
        let frames = Mutex::new(Kept::Frames(Vec::new()));
        Row { change, format, trim, frames, verdicts: Verdicts::default() }
    }

    /// The leaves that the row lists: the winner, or all that pass the feed's filter.
    pub fn listed(&self, all_leaves: bool) -> &[LeafRev] {
        match &self.trim.leaves {
            _ if !all_leaves => &self.change.leaves[..1],
            Some(passed) => passed,
            None => &self.change.leaves,
        }
    }

    /// Whether the document has left the feed that the row is for.
    pub fn left(&self) -> bool {
        self.trim.left
    }

    /// The change.
    pub fn change(&self) -> &Change {
        &self.change
    }

    /// How the row's database writes sequences.
    pub fn seq_format(&self) -> SeqFormat {
        self.format
    }

    /// The row as bytes, encoded at the first call for a shape; with each call once it is none of the newest rows.
    pub fn frame(&self, shape: RowShape) -> Frame {
        let shape = shape.seen_in(&self.change);
        let mut kept = self.frames.lock();
        let Kept::Frames(frames) = &mut *kept else {
            drop(kept);
            return self.encode(shape);
        };
        if let Some((_, frame)) = frames.iter().find(|(known, _)| *known == shape) {
            return frame.clone();
        }
        let frame = self.encode(shape);
        frames.push((shape, frame.clone()));
        frame
    }

    fn encode(&self, shape: RowShape) -> Frame {
        let seq = self.format.plain(self.change.seq);
        Frame::of(seq, self.about_bytes(shape), |out| self.write_json(out, shape))
    }

    /// Keeps no frames from now on: nearly all who wanted them have them.
    pub(crate) fn forget_frames(&self) {
        *self.frames.lock() = Kept::None;
    }

    /// About how long its frame is, with some room for long numbers.
    pub(crate) fn about_bytes(&self, shape: RowShape) -> usize {
        56 + self.change.bytes(shape.detail())
    }

    /// Appends its frame.
    pub(crate) fn write_frame(&self, out: &mut Vec<u8>, shape: RowShape) {
        Frame::write(out, self.format.plain(self.change.seq), |out| self.write_json(out, shape));
    }

    /// Appends its JSON.
    pub(crate) fn write_json(&self, out: &mut Vec<u8>, shape: RowShape) {
        self.write(out, shape, Some(self.format));
    }

    /// Writes the row's JSON. Without a format its `seq` is `null`, as `seq_interval` asks for.
    ///
    /// Source: CouchDB `fabric_view_changes:changes_row`, members in this order.
    fn write(&self, out: &mut Vec<u8>, shape: RowShape, format: Option<SeqFormat>) {
        let change = &self.change;
        out.extend_from_slice(b"{\"seq\":");
        match format {
            Some(format) => format.json(change.seq).write(out),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"id\":");
        write_json_string(out, change.id.as_str());
        out.extend_from_slice(b",\"changes\":[");
        for (at, leaf) in self.listed(shape.all_leaves).iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"{\"rev\":" } else { b",{\"rev\":" });
            leaf.rev.write_json(out);
            out.push(b'}');
        }
        out.push(b']');
        if change.deleted() {
            out.extend_from_slice(b",\"deleted\":true");
        }
        if self.trim.left {
            out.extend_from_slice(b",\"left\":true");
        } else if shape.doc {
            out.extend_from_slice(b",\"doc\":");
            self.write_document(out, shape);
        }
        out.push(b'}');
    }

    fn write_document(&self, out: &mut Vec<u8>, shape: RowShape) {
        let change = &self.change;
        match (&self.trim.fields, DocView::of_winner(change)) {
            (Some(fields), Some(winner)) => out.extend_from_slice(&fields.project(&winner)),
            _ => write_row_document(out, change, shape),
        }
    }

    /// About how much memory the row takes, in bytes, its verdicts included and its frames not.
    pub(crate) fn weight(&self) -> usize {
        400 + self.change.id.as_str().len() + self.body_bytes() + verdicts::weigh_at_most(self.change.leaves.len())
    }

    /// About how much memory all frames take that it may keep, in bytes.
    pub(crate) fn frames_weigh_at_most(&self) -> usize {
        // One leaf has a frame without and one with the body. Several have six frames, four of them with the body, and
        // among these six five lists of the other leaves.
        let (frames, bodies) = if self.change.leaves.len() > 1 { (6, 4) } else { (2, 1) };
        let hash = |leaf: &LeafRev| leaf.rev.hash.as_bytes().len().max(32);
        let others: usize = self.change.leaves.iter().skip(1).map(|leaf| 64 + 6 * (hash(leaf) + 20)).sum();
        (300 + 2 * self.change.id.as_str().len()) * frames + others + bodies * self.body_bytes()
    }

    fn body_bytes(&self) -> usize {
        self.change.body.as_ref().map_or(0, |body| body.as_bytes().len())
    }
}

impl FeedRow for Row {
    fn seq(&self) -> Sequence {
        self.change.seq
    }

    fn frame(&self, shape: RowShape) -> Frame {
        Row::frame(self, shape)
    }

    fn write_without_seq(&self, out: &mut Vec<u8>, shape: RowShape) {
        self.write(out, shape, None);
    }
}

#[cfg(test)]
mod tests {
    use seqtide_storage::Previous;
    use seqtide_storage::json::{ScanLimits, scan_document};
    use seqtide_storage::model::doc_id::DocId;
    use seqtide_storage::model::rev::RevId;

    use super::*;

    fn row(revs: &[&str], json: &str) -> Row {
        let leaf = |rev: &&str| LeafRev { rev: RevId::parse(rev).unwrap(), deleted: false };
        let body = scan_document(json.as_bytes(), &ScanLimits::default()).unwrap().body;
        let (seq, id) = (Sequence::new(0, 7), DocId::parse("a").unwrap());
        let change =
            Change { seq, id, leaves: revs.iter().map(leaf).collect(), body: Some(body), previous: Previous::Nothing };
        Row::new(change, SeqFormat::Integer)
    }

    fn shapes() -> impl Iterator<Item = RowShape> {
        let bit = |number: u8, bit: u8| number & bit != 0;
        (0..8).map(move |n| RowShape { all_leaves: bit(n, 1), doc: bit(n, 2), conflicts: bit(n, 4) })
    }

    #[test]
    fn one_frame_holds_every_form_of_a_row() {
        let frame = row(&["2-b", "1-a"], "{}").frame(RowShape { all_leaves: true, ..RowShape::default() });
        let json = r#"{"seq":7,"id":"a","changes":[{"rev":"2-b"},{"rev":"1-a"}]}"#;
        assert_eq!(frame.json(), json.as_bytes());
        assert_eq!(frame.line(), format!("{json}\n").as_bytes());
        assert_eq!(frame.sse(), format!("data: {json}\nid: 7\n\n").as_bytes());
    }

    #[test]
    fn a_row_weighs_no_less_than_all_its_frames_together() {
        let pad = format!(r#"{{"pad":"{}"}}"#, "x".repeat(100_000));
        let long: Vec<String> = (1..=100).map(|generation| format!("{generation}-{}", "y".repeat(128))).collect();
        let long: Vec<&str> = long.iter().map(String::as_str).collect();
        for (revs, json, frames) in [(&["1-a"][..], &pad[..], 2), (&["2-b", "1-a"], &pad, 6), (&long, "{}", 6)] {
            let row = row(revs, json);
            let shown: Vec<Frame> = shapes().map(|shape| row.frame(shape)).collect();
            for (shape, frame) in shapes().zip(shown) {
                let mut fresh = Vec::new();
                row.write(&mut fresh, shape, Some(SeqFormat::Integer));
                assert_eq!(frame.json(), fresh, "{shape:?}");
            }
            let kept = row.frames.lock();
            let Kept::Frames(kept) = &*kept else { panic!("none") };
            let bytes: usize = kept.iter().map(|(_, frame)| frame.sse().len()).sum();
            assert_eq!(kept.len(), frames);
            let weight = row.weight() + row.frames_weigh_at_most();
            assert!(weight >= bytes + json.len(), "{weight} for {bytes}");
        }
    }

    #[test]
    fn a_row_that_has_forgotten_its_frames_gives_the_same_ones_and_keeps_none() {
        let row = row(&["2-b", "1-a"], r#"{"n":1}"#);
        let before: Vec<Frame> = shapes().map(|shape| row.frame(shape)).collect();
        row.forget_frames();
        for (shape, before) in shapes().zip(before) {
            assert_eq!(row.frame(shape).sse(), before.sse(), "{shape:?}");
        }
        assert!(matches!(&*row.frames.lock(), Kept::None));
    }
}
