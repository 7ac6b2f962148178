//! How much writes weigh.

use seqtide_storage::{LocalEdit, Write};

/// How much waits to be written, or is written at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub edits: usize,
    /// Bytes of bodies, and of revisions to purge.
    pub bytes: usize,
}

impl Load {
    /// Of a request, which counts as one edit though it has none.
    pub fn of(writes: &[Write]) -> Load {
        Load { edits: writes.len().max(1), bytes: writes.iter().map(bytes).sum() }
    }

    pub fn add(&mut self, more: Load) {
        self.edits += more.edits;
        self.bytes += more.bytes;
    }

    pub fn take_off(&mut self, less: Load) {
        self.edits -= less.edits;
        self.bytes -= less.bytes;
    }

    /// Whether more can be added without going beyond `max`. One request fits into nothing, however large it is.
    pub fn has_room_for(self, more: Load, max: Load) -> bool {
        let fits = self.edits + more.edits <= max.edits && self.bytes + more.bytes <= max.bytes;
        fits || self == Load::default()
    }
}

fn bytes(write: &Write) -> usize {
    match write {
        Write::Edit(edit) => edit.body().as_bytes().len(),
        Write::Local(LocalEdit { body, .. }) => body.as_ref().map_or(0, |body| body.as_bytes().len()),
        Write::Purge { revs, .. } => size_of_val(&revs[..]),
        Write::RevsLimit(_) => 0,
    }
}
