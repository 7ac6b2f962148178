//! How feeds look on the wire: CouchDB's shapes, and the forms of the native door; what they have in common is
//! [`Wire`].

pub mod changes_body;
pub mod draining;
pub mod form;
pub mod framing;
pub mod heard;
pub mod native;
pub mod pieces;

use bytes::Bytes;
use seqtide::storage::model::sequence::SeqFormat;
use seqtide::{FeedEvent, FeedRow, FrameForm, Frames, RowShape};

use self::framing::Framing;
use crate::error::ApiError;

/// How a feed looks on the wire.
pub trait Wire: Clone + Send + 'static {
    /// Whether a row is the same bytes whichever came before it, so that feeds can share them.
    fn is_alike_for_all(&self) -> bool {
        true
    }

    /// How its bytes are put on a connection that the framework does not write to.
    fn framing(&self) -> Framing {
        Framing::Chunks
    }

    /// Adds the bytes of a row, in parts.
    fn add_row<R: FeedRow>(&mut self, row: &R, shape: RowShape, out: &mut impl Extend<Bytes>);

    /// The form in which rows of the disk are taken that nobody else sends; `None` where each has to be looked at.
    fn frames(&self) -> Option<FrameForm> {
        None
    }

    /// Adds rows in that form.
    fn add_frames(&mut self, frames: &Frames, out: &mut impl Extend<Bytes>) {
        out.extend([frames.bytes()]);
    }

    /// The bytes of what else happens; empty where nothing is said of it.
    fn notice<R>(&self, format: SeqFormat, event: &FeedEvent<R>) -> Bytes;

    /// The last words of a feed that cannot go on, before its connection is cut; empty where that alone is to say it.
    fn failure(&self, error: &ApiError) -> String;
}
