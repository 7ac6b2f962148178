//! With relaxed durability: which commits a power cut may fall back to.
//!
//! A commit n syncs its pages, which makes safe the meta page of commit n - 1 too, and leaves its own in the system's
//! cache. While n is made, the disk has the meta pages of n - 1 and n - 2, or those of n - 2 and n - 3. LMDB takes
//! n - 1 for the oldest commit that anybody may ask for, and spares that and the one before. So it would write over
//! pages of n - 3: what the older meta page leads to, its commit's number among it, would be of no commit at all.

use std::collections::VecDeque;

use heed::{Env, RoTxn, WithoutTls};

/// Commits.
const KEPT: usize = 2;

/// Keeps the pages of the last three commits from being used again, by reading the last two: LMDB spares the commit
/// before one that is read, too.
#[derive(Default)]
pub(crate) struct LastCommits {
    /// The older first. Empty until the last commit is known to be safe.
    read: VecDeque<RoTxn<'static, WithoutTls>>,
}

impl LastCommits {
    /// How many of LMDB's places for readers this may take.
    pub const READERS: u32 = KEPT as u32 + 1;

    /// To be called before a commit is made. Where the last commits are not kept, as when nobody may read any more,
    /// they are synced.
    ///
    /// # Errors
    /// When that fails. The meta pages are to be written once more then, before anything else is.
    pub fn keep(&mut self, env: &Env<WithoutTls>) -> heed::Result<()> {
        if self.read.is_empty() {
            env.force_sync()?;
            self.read.extend(env.clone().static_read_txn().ok());
        }
        Ok(())
    }

    /// To be called after it was made, before another is.
    pub fn follow(&mut self, env: &Env<WithoutTls>) {
        let Some(last) = self.read.back().map(|last| last.id()) else { return };
        match env.clone().static_read_txn() {
            // Nothing was written.
            Ok(newest) if newest.id() == last => {}
            Ok(newest) => {
                self.read.push_back(newest);
                if self.read.len() > KEPT {
                    self.read.pop_front();
                }
            }
            Err(_) => self.let_go(),
        }
    }

    /// To be called before the map changes or the environment is closed.
    pub fn let_go(&mut self) {
        self.read.clear();
    }

    /// Lets go of what keeps pages from being used by the next commit, which is synced for instead. `false` where
    /// nothing did.
    pub fn make_room(&mut self) -> bool {
        let keeps_pages = self.read.len() == KEPT;
        self.let_go();
        keeps_pages
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::ops::Range;
    use std::path::Path;

    use crate::env::{DATA_FILE, Durability, Env, EnvOptions};
    use crate::error::StorageError;
    use crate::pages::tests::damages_of_both_commits;
    use crate::room::Room;
    use crate::rows::Rows;
    use crate::tables::Table;
    use crate::view::View;

    const META_PAGES: Range<usize> = 0..2 * 4096;
    const COMMITS: u32 = 200;

    fn open(folder: &Path, map_bytes: usize, map_bytes_max: usize) -> Env {
        let durability = Durability::Relaxed;
        Env::open(folder, EnvOptions { map_bytes, map_bytes_max, readers_max: 8, durability, tell: |_, _| {} }).unwrap()
    }

    fn write(env: &Env, room: Room, rows: &Rows) {
        env.write(room, |_: View<'_>| Ok::<_, StorageError>((rows.clone(), ())), |()| {}).unwrap();
    }

    /// Writes one row over again, and now and then many, so that pages come free and are used again.
    fn commit(env: &Env, number: u32) {
        let mut rows = Rows::default();
        for row in 0..if number.is_multiple_of(7) { 300 } else { 1 } {
            rows.put(Table::Bodies, (row * 13 % 300_u32).to_be_bytes(), [number as u8; 100]);
        }
        write(env, Room::Ordinary, &rows);
    }

    /// What the disk may have when the power is cut while commit n is synced: the meta pages of n - 1 and n - 2 or, as
    /// here, of n - 2 and n - 3, and already all the pages of n.
    fn assert_cut_is_survived(env: &Env, folder: &Path, number: u32) {
        let data = folder.join(DATA_FILE);
        let (meta_pages, map_bytes) = (fs::read(&data).unwrap()[META_PAGES].to_vec(), env.gauge().map_bytes);
        [number - 1, number].into_iter().for_each(|number| commit(env, number));
        if env.gauge().map_bytes > map_bytes {
            // Growing has synced what is newer than that.
            return;
        }
        let mut image = fs::read(&data).unwrap();
        image[META_PAGES].copy_from_slice(&meta_pages);
        let cut = tempfile::tempdir().unwrap();
        fs::write(cut.path().join(DATA_FILE), image).unwrap();
        assert_eq!(damages_of_both_commits(cut.path()), Vec::<String>::new(), "commit {number}");
    }

    #[test]
    fn a_cut_in_a_commit_leaves_the_two_that_are_safe_whole() {
        let folder = tempfile::tempdir().unwrap();
        let env = open(folder.path(), 16 << 20, 64 << 20);
        for number in (2..COMMITS).step_by(2) {
            assert_cut_is_survived(&env, folder.path(), number);
        }
    }

    #[test]
    fn so_does_one_soon_after_an_opening() {
        let folder = tempfile::tempdir().unwrap();
        for number in (2..COMMITS).step_by(2) {
            let env = open(folder.path(), 16 << 20, 64 << 20);
            assert_cut_is_survived(&env, folder.path(), number);
            env.close();
        }
    }

    #[test]
    fn so_does_one_soon_after_the_map_has_grown() {
        let folder = tempfile::tempdir().unwrap();
        let env = open(folder.path(), 128 << 10, 64 << 20);
        for number in (2..COMMITS).step_by(2) {
            assert_cut_is_survived(&env, folder.path(), number);
        }
        assert!(env.gauge().map_bytes > 128 << 10, "the map has not grown");
    }

    /// What was freed two commits ago is the last room that there is.
    #[test]
    fn pages_are_not_kept_from_a_commit_that_has_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let env = open(folder.path(), 512 << 10, 512 << 10);
        let set = |count: u32, value: Option<[u8; 1000]>| {
            let mut rows = Rows::default();
            (0..count).for_each(|row| rows.set(Table::Bodies, row.to_be_bytes(), value));
            write(&env, Room::Reserve, &rows);
        };
        for _ in 0..20 {
            set(300, Some([1; 1000]));
            set(300, None);
            set(1, Some([2; 1000]));
        }
    }

    /// The places for readers are all taken: each commit is synced instead.
    #[test]
    fn commits_that_cannot_be_kept_are_made_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let env = open(folder.path(), 16 << 20, 64 << 20);
        let mut readers = Vec::new();
        while let Ok(reader) = env.read() {
            readers.push(reader);
        }
        (1..20).for_each(|number| commit(&env, number));
        drop(readers);
        for number in (22..60).step_by(2) {
            assert_cut_is_survived(&env, folder.path(), number);
        }
    }
}
