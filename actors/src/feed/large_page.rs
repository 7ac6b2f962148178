//! Large pages: a feed that reads a long stretch of the disk and takes what it is given gets more at once, as long as
//! there is room for it. Who stalls may keep one: so there are few, and they are counted.

use bytes::Bytes;
use tokio::sync::{Semaphore, SemaphorePermit};

/// A large page ends with the row that fills this many bytes as they are sent.
pub const LARGE_PAGE_BYTES: usize = 256 << 10;
/// Most rows of one.
pub const LARGE_PAGE_ROWS: usize = 8_000;
/// Most of them at once, in the whole process.
const LARGE_PAGES_MAX: usize = 8;

/// A feed that has taken so many pages without a pause gets a large one next.
pub const PAGES_BEFORE: usize = 2;

static FREE: Semaphore = Semaphore::const_new(LARGE_PAGES_MAX);

/// Room for a large page, for as long as this lives.
pub struct LargePage(SemaphorePermit<'static>);

impl LargePage {
    /// Takes room for one, if there is some.
    pub fn take() -> Option<LargePage> {
        FREE.try_acquire().ok().map(LargePage)
    }

    /// The same bytes, which keep this room until the last share of them is gone.
    pub fn keep(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Kept { bytes, _room: self.0 })
    }
}

struct Kept {
    bytes: Bytes,
    _room: SemaphorePermit<'static>,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_back_with_the_last_share_of_what_it_was_for() {
        let taken: Vec<LargePage> = std::iter::from_fn(LargePage::take).collect();
        assert_eq!(taken.len(), LARGE_PAGES_MAX);
        let mut kept: Vec<Bytes> = taken.into_iter().map(|room| room.keep(Bytes::from_static(b"rows"))).collect();
        let last = kept.swap_remove(0).split_off(2);
        assert_eq!(last, "ws");
        kept.truncate(1);
        let free: Vec<LargePage> = std::iter::from_fn(LargePage::take).collect();
        assert_eq!(free.len(), LARGE_PAGES_MAX - 2);
        drop(last);
        assert!(LargePage::take().is_some());
    }
}
