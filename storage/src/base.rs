//! Where a store's rows are read from: LMDB, or, where its file is damaged, what a survey found of them.

use crate::env::{self, Env};
use crate::error::StorageError;
use crate::pages::{Damage, Survey};
use crate::room::Room;
use crate::tables::Rows;
use crate::view::View;

pub(crate) enum Base {
    Sound(Box<Env>),
    /// LMDB trusts its pages, so it is never given a damaged file.
    Damaged(Box<Survey>),
}

impl Base {
    /// Opens one state for reading; see [`Env::read`].
    pub fn read(&self) -> Result<Reading<'_>, StorageError> {
        match self {
            Base::Sound(env) => env.read().map(Reading::Lmdb),
            Base::Damaged(survey) => Ok(Reading::Survey(survey)),
        }
    }

    /// Plans and writes; see [`Env::write`]. A damaged file is not written to.
    pub fn write<T>(
        &self,
        room: Room,
        plan: impl FnMut(View<'_>) -> Result<(Rows, T), StorageError>,
        committed: impl FnOnce(&T),
    ) -> Result<T, StorageError> {
        match self {
            Base::Sound(env) => env.write(room, plan, committed),
            Base::Damaged(survey) => Err(survey.read_only()),
        }
    }

    /// What is wrong with the file; nothing when it is sound.
    pub fn damages(&self) -> &[Damage] {
        match self {
            Base::Sound(_) => &[],
            Base::Damaged(survey) => survey.damages(),
        }
    }

    /// The address space reserved.
    pub fn map_bytes(&self) -> usize {
        match self {
            Base::Sound(env) => env.map_bytes(),
            Base::Damaged(_) => 0,
        }
    }

    /// The length of the file.
    pub fn file_bytes(&self) -> Result<u64, StorageError> {
        match self {
            Base::Sound(env) => env.file_bytes(),
            Base::Damaged(survey) => Ok(survey.file_bytes()),
        }
    }

    /// Lets go of the file, waiting until no transaction uses it.
    pub fn close(self) {
        if let Base::Sound(env) = self {
            env.close();
        }
    }
}

/// One state, open for reading.
pub(crate) enum Reading<'base> {
    Lmdb(env::Reading<'base>),
    Survey(&'base Survey),
}

impl Reading<'_> {
    pub fn view(&self) -> View<'_> {
        match self {
            Reading::Lmdb(reading) => reading.view(),
            Reading::Survey(survey) => View::of_survey(survey),
        }
    }
}
