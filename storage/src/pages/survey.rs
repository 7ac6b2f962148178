//! A file as a walk found it: rows that are sound are read from it, and where others were, an error says so.

use std::fs::OpenOptions;
use std::io;
use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::damage::{At, Damage, Lost};
use super::file::PageFile;
use super::map::{Gap, SoundLeaf, TableMap};
use super::meta::{self, Newest};
use super::page::Nodes;
use super::read::{SoundRows, SurveyRows};
use super::walk::{Walked, walk};
use crate::codec::meta::FORMAT;
use crate::disk::READERS_NAME;
use crate::env::Pin;
use crate::error::StorageError;
use crate::range::{Direction, KeyRange};
use crate::seal::Seals;
use crate::tables::{META_BORN, META_FORMAT, Table};

/// What a look at a folder's file shows.
pub(crate) enum Looked {
    /// LMDB may have it: it is sound as far as was looked, or there is none yet.
    Sound {
        /// How long a page of it is; `None` when there is none yet.
        page_bytes: Option<usize>,
        /// All of it was looked at.
        whole: bool,
        /// What was put right.
        mended: Option<Damage>,
    },
    /// LMDB must not have it.
    Damaged(Box<Survey>),
}

/// Looks at the file in a folder, which nobody else uses, before LMDB does: all of it if it is no longer than
/// `walk_bytes_max`, or shorter than its newest commit says, else what says which commit is the newest.
///
/// # Errors
/// [`StorageError::NewerFormat`]; [`StorageError::DamagedFile`] when nothing can be read.
pub(crate) fn look(folder: &Path, walk_bytes_max: u64) -> Result<Looked, StorageError> {
    let Some(start) = Start::of(folder)? else {
        return Ok(Looked::Sound { page_bytes: None, whole: true, mended: None });
    };
    let page_bytes = Some(start.file.page_bytes());
    let walked_through = start.file.len() <= walk_bytes_max;
    // To read behind the end of a map ends the process.
    if !walked_through && start.newest.meta.is_within(&start.file) && start.newest.damages.is_empty() {
        return Ok(Looked::Sound { page_bytes, whole: false, mended: start.mend()? });
    }
    let survey = start.survey();
    match survey.damages.is_empty() {
        true => Ok(Looked::Sound { page_bytes, whole: true, mended: survey.start.mend()? }),
        false => Ok(Looked::Damaged(Box::new(survey))),
    }
}

/// How often the meta pages of a file that is written to are read before they are taken for damaged.
const ATTEMPTS: usize = 20;

/// A file, and where in it to begin.
struct Start {
    file: PageFile,
    newest: Newest,
    seals: Seals,
}

impl Start {
    /// `None` when there is no file yet.
    fn of(folder: &Path) -> Result<Option<Start>, StorageError> {
        PageFile::open(folder)?.map(|file| Start::in_file(folder, file)).transpose()
    }

    fn in_file(folder: &Path, mut file: PageFile) -> Result<Start, StorageError> {
        let unknown = || file.damaged(&Damage::of_database(0, "it is no meta page, and neither is the next"));
        let page_bytes = meta::page_bytes(&file).ok_or_else(unknown)?;
        file.set_page_bytes(page_bytes);
        let newest = meta::newest(&file).map_err(|damage| file.damaged(&damage))?;
        let number = |name| newest.meta.number(name, &file);
        let format = number(META_FORMAT);
        if let Some(found) = format.filter(|found| *found > FORMAT) {
            return Err(StorageError::NewerFormat { path: folder.to_owned(), found, known: FORMAT });
        }
        let before_seals = format == Some(1) || number(META_BORN) == Some(1);
        let seals = if before_seals { Seals::Optional } else { Seals::Required };
        Ok(Start { file, newest, seals })
    }

    /// The same where a server may be writing: a commit while the file is opened and its meta pages are read looks like
    /// damage, but not again and again.
    fn beside_a_server(folder: &Path) -> Result<Start, StorageError> {
        for _ in 1..ATTEMPTS {
            if let Ok(Some(start)) = Start::of(folder)
                && start.is_of_one_moment()
            {
                return Ok(start);
            }
        }
        Start::of(folder)?.ok_or_else(|| StorageError::io(folder)(io::ErrorKind::NotFound.into()))
    }

    /// Whether its newest commit is whole, and was so when the file was opened, as far as can be seen.
    fn is_of_one_moment(&self) -> bool {
        let (file, meta) = (&self.file, &self.newest.meta);
        self.metas_are_sound() && meta.is_still_there(file) && (meta.is_within(file) || !file.has_grown())
    }

    fn metas_are_sound(&self) -> bool {
        self.newest.damages.is_empty() && self.newest.older.is_none()
    }

    /// Walks through all of it.
    fn survey(mut self) -> Survey {
        self.file.touch_all();
        let Walked { tables, mut damages } = walk(&self.file, &self.newest.meta, self.seals);
        // Gaps know damages by their place: those of the meta page go behind.
        damages.extend(self.newest.damages.iter().cloned());
        Survey { start: self, tables, damages }
    }

    /// Puts the older meta page right, if it is damaged: LMDB refuses a file, or takes an old commit for the newest,
    /// because of a page that it only keeps to write the next commit to.
    fn mend(self) -> Result<Option<Damage>, StorageError> {
        let Some(older) = self.newest.older else { return Ok(None) };
        let newest = self.file.page(self.newest.meta.page).unwrap_or_default();
        let page = meta::stand_in(newest, &older);
        let path = self.file.path();
        let write = || {
            let file = OpenOptions::new().write(true).open(path)?;
            file.write_all_at(&page, older.page * self.file.page_bytes() as u64)?;
            file.sync_all()
        };
        write().map_err(StorageError::io(path))?;
        Ok(Some(older.damage))
    }
}

/// A file that was walked through.
pub(crate) struct Survey {
    start: Start,
    /// By [`Table`].
    tables: Vec<TableMap>,
    damages: Vec<Damage>,
}

impl Survey {
    /// Walks through the file in a folder, even while a server writes to it, and hands on what it finds; nothing is
    /// changed.
    ///
    /// # Errors
    /// As [`look`]; [`StorageError`] when there is no file.
    pub fn of_folder<T>(folder: &Path, found: impl FnOnce(&Survey) -> T) -> Result<T, StorageError> {
        let before = Start::beside_a_server(folder)?;
        // LMDB reads the meta pages to begin a transaction: damaged ones could end the process.
        let map_bytes = before.file.pages() as usize * before.file.page_bytes() * 2;
        let sound = before.metas_are_sound();
        let pin = if sound { Pin::set(folder, map_bytes)? } else { None };
        let survey = Start::beside_a_server(folder)?.survey();
        let found = found(&survey);
        let Start { file, newest, .. } = &survey.start;
        // Pages of a commit are used again by the second one behind it, which writes over its meta page.
        if sound && pin.is_none() && !newest.meta.is_still_there(file) {
            let why = io::Error::other("no place can be taken in it, and the database is being written to");
            return Err(StorageError::io(&folder.join(READERS_NAME))(why));
        }
        Ok(found)
    }

    /// Walks through the file in a folder, which nobody else uses, because of a damage that lies outside of it.
    ///
    /// # Errors
    /// As [`look`].
    pub fn because_of(folder: &Path, damage: Damage) -> Result<Survey, StorageError> {
        let start = Start::of(folder)?.ok_or_else(|| StorageError::io(folder)(io::ErrorKind::NotFound.into()))?;
        let mut survey = start.survey();
        survey.damages.push(damage);
        Ok(survey)
    }

    /// Notes a damage that lies outside of the file.
    pub fn add(&mut self, damage: Damage) {
        self.damages.push(damage);
    }

    /// What is wrong with the file, as far as it costs something now or would cost something to write on.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// The damage of the older meta page, which the next opening puts right.
    pub fn to_mend(&self) -> Option<&Damage> {
        self.start.newest.older.as_ref().map(|older| &older.damage)
    }

    /// The length of the file.
    pub fn file_bytes(&self) -> u64 {
        self.start.file.len()
    }

    /// Why it is not written to.
    pub fn read_only(&self) -> StorageError {
        let file = self.start.file.path().to_owned();
        let first = self.damages.first().map(ToString::to_string).unwrap_or_default();
        StorageError::ReadOnly { file, first, damages: self.damages.len() }
    }

    /// Reads a row.
    pub fn get(&self, table: Table, key: &[u8]) -> Result<Option<&[u8]>, StorageError> {
        let map = &self.tables[table as usize];
        let found = match map.leaf_of(key) {
            Some(leaf) => self.sound_rows(table, &map.leaves[leaf])?.find(key)?,
            None => None,
        };
        match (found, map.gap_of(key)) {
            (None, Some(gap)) => Err(self.lost(gap)),
            (found, _) => Ok(found),
        }
    }

    /// Reads the rows of a range, and an error in the place of each gap.
    pub fn range(&self, table: Table, range: KeyRange<'_>, direction: Direction) -> SurveyRows<'_> {
        SurveyRows::new(self, table, range, direction)
    }

    pub(super) fn map(&self, table: Table) -> &TableMap {
        &self.tables[table as usize]
    }

    /// The rows of a leaf that the walk found sound.
    pub(super) fn sound_rows<'s>(&'s self, table: Table, leaf: &'s SoundLeaf) -> Result<SoundRows<'s>, StorageError> {
        let Start { file, seals, .. } = &self.start;
        let nodes = file.page(leaf.page).and_then(|bytes| Nodes::read(bytes, leaf.page));
        // It was sound when the file was opened.
        let nodes = nodes.map_err(|what| {
            let (after, before) = (Bound::Included(leaf.first.to_vec()), Bound::Unbounded);
            file.damaged(&Damage { at: At::Page(leaf.page), what, lost: Lost::Keys { table, after, before } })
        })?;
        Ok(SoundRows { file, table, seals: *seals, nodes, sound: leaf.nodes.as_deref() })
    }

    pub(super) fn lost(&self, gap: &Gap) -> StorageError {
        match self.damages.get(gap.damage) {
            Some(damage) => self.start.file.damaged(damage),
            None => self.read_only(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{Durability, Env, EnvOptions};
    use crate::room::Room;
    use crate::rows::Rows;
    use crate::view::View;

    /// A check beside a server that made databases reported them damaged, now and then.
    #[test]
    fn a_file_that_grew_before_its_newest_commit_was_looked_for_is_not_of_one_moment() {
        let folder = tempfile::tempdir().unwrap();
        let (map_bytes, durability) = (16 << 20, Durability::Relaxed);
        let options = EnvOptions { map_bytes, map_bytes_max: map_bytes, readers_max: 8, durability, tell: |_, _| {} };
        let env = Env::open(folder.path(), options).unwrap();
        let before = PageFile::open(folder.path()).unwrap().unwrap();
        let mut rows = Rows::default();
        for row in 0..300_u32 {
            rows.put(Table::Bodies, row.to_be_bytes(), [0; 100]);
        }
        env.write(Room::Ordinary, |_: View<'_>| Ok::<_, StorageError>((rows.clone(), ())), |()| {}).unwrap();

        let torn = Start::in_file(folder.path(), before).unwrap();
        assert!(torn.metas_are_sound() && !torn.is_of_one_moment());
        assert_ne!(torn.survey().damages(), [], "its newest commit lies behind its end");
        let whole = Start::beside_a_server(folder.path()).unwrap();
        assert!(whole.is_of_one_moment());
        assert_eq!(whole.survey().damages(), []);
    }
}
