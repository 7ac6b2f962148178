//! The two segments of a log: one takes records, the other holds those that LMDB does not have yet.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::applier::LONGEST_WAIT;
use super::segment::{BYTES_MAX, BYTES_MIN, Segment};

/// The files of the log, in a database's folder.
pub const NAMES: [&str; 2] = ["log-0", "log-1"];

/// A segment that is full sooner was too small: the other one has to last while LMDB gets what this one has, which may
/// have waited.
const FILLS_IN: Duration = LONGEST_WAIT.saturating_mul(2);

/// Where the disk has refused a segment it is not asked again for so long: asking means writing all of it.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The first one is begun for a commit that follows another within so long: making one costs more than a few commits to
/// LMDB do, and many databases are opened, written to once, and closed. Tests say themselves when one was made.
const SOON: Duration = Duration::from_secs(if cfg!(test) { 3600 } else { 1 });

/// The segments, as whoever writes needs them.
pub struct Segments {
    folder: PathBuf,
    slots: [Option<Segment>; 2],
    /// The one that takes records, and since when. After a crash none does before one is begun.
    current: Option<(usize, Instant)>,
    /// How large the last one was made.
    bytes: u64,
    /// How large the next one is made, as was found when the last one had no room for a record.
    bytes_of_next: u64,
    /// When a commit last went to LMDB by itself.
    committed: Option<Instant>,
    /// When the disk refused one.
    refused: Option<Instant>,
    /// Control for tests: segments are written over before LMDB has what they hold.
    #[cfg(test)]
    pub recycles_early: bool,
}

impl Segments {
    /// Those that were found in a folder.
    pub fn new(folder: &Path, slots: [Option<Segment>; 2]) -> Segments {
        let largest = slots.iter().flatten().map(Segment::bytes).max().unwrap_or(0);
        let bytes = largest.next_power_of_two().clamp(BYTES_MIN, BYTES_MAX);
        Segments {
            folder: folder.to_owned(),
            slots,
            current: None,
            bytes,
            bytes_of_next: bytes,
            committed: None,
            refused: None,
            #[cfg(test)]
            recycles_early: false,
        }
    }

    /// Whether the next commit is to go to a segment.
    pub fn are_wanted(&self) -> bool {
        self.current.is_some() || self.committed.is_some_and(|committed| committed.elapsed() < SOON)
    }

    /// A commit went to LMDB by itself.
    pub fn note_commit(&mut self) {
        self.committed = Some(Instant::now());
    }

    /// The one that takes records, if one of so many bytes fits into it.
    pub fn current(&mut self, bytes: usize) -> Option<&mut Segment> {
        let (current, _) = self.current?;
        self.slots[current].as_mut().filter(|segment| segment.fits(bytes))
    }

    /// The record up to which LMDB must have come before the next segment can be begun, as that one is written over.
    pub fn needed_before_next(&self) -> u64 {
        #[cfg(test)]
        if self.recycles_early {
            return 0;
        }
        match self.current {
            // What was found may never have been synced: LMDB must have all of it before anything is built on it.
            None => self.last_of(0).max(self.last_of(1)),
            Some(_) => self.last_of(self.next()),
        }
    }

    /// The one that does not take records now; of two, the one with the older ones.
    fn next(&self) -> usize {
        match self.current {
            Some((current, _)) => 1 - current,
            None => usize::from(self.last_of(1) < self.last_of(0)),
        }
    }

    fn last_of(&self, slot: usize) -> u64 {
        self.slots[slot].as_ref().map_or(0, Segment::last)
    }

    /// How large one would have to be that is begun now, where no record needs more.
    fn bytes_needed(&self) -> u64 {
        let was_too_small = self.current.is_some_and(|(_, since)| since.elapsed() < FILLS_IN);
        if was_too_small { (2 * self.bytes).min(BYTES_MAX) } else { self.bytes }
    }

    /// By how many bytes the files grow, at most, for a record of so many bytes to have a segment.
    pub fn grow_by(&mut self, bytes: usize) -> usize {
        if self.current(bytes).is_some() {
            return 0;
        }
        self.bytes_of_next = self.bytes_needed();
        let next = with_room_for(bytes, self.bytes_of_next);
        let is_there = self.slots[self.next()].as_ref().is_some_and(|segment| segment.bytes() >= next);
        if is_there { 0 } else { usize::try_from(next).unwrap_or(usize::MAX) }
    }

    /// Begins the next segment, as large as was said last, for a record of so many bytes and more; `false` where the
    /// disk does not allow it.
    pub fn begin(&mut self, bytes: usize) -> bool {
        if self.refused.is_some_and(|refused| refused.elapsed() < ASK_AGAIN) {
            return false;
        }
        let next = self.next();
        let begun = self.begin_in(next, with_room_for(bytes, self.bytes_of_next));
        self.refused = begun.is_err().then(Instant::now);
        if begun.is_ok() {
            (self.bytes, self.current) = (self.bytes_of_next, Some((next, Instant::now())));
        }
        begun.is_ok()
    }

    fn begin_in(&mut self, slot: usize, bytes: u64) -> io::Result<()> {
        match &mut self.slots[slot] {
            Some(segment) if segment.bytes() >= bytes => segment.restart()?,
            too_small => *too_small = Some(Segment::make(&self.folder.join(NAMES[slot]), bytes)?),
        }
        Ok(())
    }

    /// From now on the last commit was made so long ago.
    #[cfg(test)]
    pub fn had_commit(&mut self, ago: Duration) {
        self.committed = Instant::now().checked_sub(ago);
    }

    /// From now on those that are begun are as large as they may be, however slowly they fill.
    #[cfg(test)]
    pub fn are_large(&mut self) {
        (self.bytes, self.bytes_of_next) = (BYTES_MAX, BYTES_MAX);
    }

    /// From now on records cannot be written.
    #[cfg(test)]
    pub fn break_current(&mut self) {
        if let Some(segment) = self.current.and_then(|(current, _)| self.slots[current].as_mut()) {
            segment.break_file();
        }
    }

    /// Whether there are files.
    pub fn any(&self) -> bool {
        self.slots.iter().any(Option::is_some)
    }

    /// Removes the files, when LMDB has everything of them. One that stays does no harm, nor does one that is back
    /// after a power cut, as the folder is not synced: no number of its records is used again in the life of the
    /// database, and to another database of its name, which has another uuid, they are no records.
    pub fn remove(&mut self) {
        for segment in self.slots.iter_mut().filter_map(Option::take) {
            let _ = segment.remove();
        }
        self.current = None;
    }
}

/// The length of a segment whose first record has so many bytes.
fn with_room_for(record: usize, bytes: u64) -> u64 {
    bytes.max((2 * record as u64).next_power_of_two())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_how_much_the_files_grow_is_known_before_they_do() {
        let folder = tempfile::tempdir().unwrap();
        let mut segments = Segments::new(folder.path(), [None, None]);
        let length = |name| folder.path().join(name).metadata().map_or(0, |file| file.len() as usize);
        let length = || NAMES.iter().map(length).sum::<usize>();
        for record in [100, 5000, 100_000, 300_000] {
            let (before, most) = (length(), segments.grow_by(record));
            assert!(segments.begin(record));
            // A file that was there and too small is part of the new one.
            let grown = length() - before;
            assert!(grown > most / 2 && grown <= most, "{grown} of {most}");
            assert_eq!(segments.grow_by(record), 0, "it has one now");
        }
    }
}
