//! How full a database may get: an ordinary write leaves a reserve, for a deletion must fit where nothing else does.

use std::ops::RangeInclusive;

use crate::error::StorageError;

/// How much of the largest map a write may fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// All but a reserve.
    Ordinary,
    /// The reserve too: this write makes room, now or later, and needs a few pages for it.
    Reserve,
}

/// This part of the largest map is the reserve, within these bounds.
const RESERVED_PART: usize = 16;
const RESERVED_BYTES: RangeInclusive<usize> = 1 << 20..=64 << 20;

impl Room {
    /// Refuses a write that leaves more bytes in use than there is room for.
    pub fn check(self, used_bytes: usize, map_bytes_max: usize) -> Result<(), StorageError> {
        let (least, most) = RESERVED_BYTES.into_inner();
        let reserved = match self {
            Room::Ordinary => (map_bytes_max / RESERVED_PART).clamp(least, most),
            Room::Reserve => 0,
        };
        if used_bytes + reserved > map_bytes_max { Err(StorageError::MapFull { map_bytes_max }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_for_what_makes_room() {
        let fits = |room: Room, used, max| room.check(used, max).is_ok();
        for (max, reserved) in [(4 << 20, 1 << 20), (32 << 20, 2 << 20), (1 << 40, 64 << 20)] {
            assert!(fits(Room::Ordinary, max - reserved, max) && !fits(Room::Ordinary, max - reserved + 1, max));
            assert!(fits(Room::Reserve, max, max) && !fits(Room::Reserve, max + 1, max));
        }
    }
}
