//! Where a store's rows are read from: LMDB with the log in front of it, or, where its file is damaged, what a survey
//! found of them.

use crate::error::StorageError;
use crate::gauge::StoreGauge;
use crate::log::logged::{self, Logged};
use crate::log::memtable::Overlay;
use crate::pages::{Damage, Survey};
use crate::room::Room;
use crate::rows::Rows;
use crate::view::View;

pub(crate) enum Base {
    Sound(Box<Logged>),
    /// LMDB trusts its pages, so it is never given a damaged file. What the log has lies over it.
    Damaged(Box<Survey>, Box<Overlay>),
}

impl Base {
    /// Opens one state for reading; see [`Logged::read`].
    pub fn read(&self) -> Result<Reading<'_>, StorageError> {
        match self {
            Base::Sound(logged) => logged.read().map(|reading| Reading::Logged(Box::new(reading))),
            Base::Damaged(survey, over) => Ok(Reading::Survey(survey, over)),
        }
    }

    /// Plans and writes; see [`Logged::write`]. A damaged file is not written to.
    pub fn write<T>(
        &self,
        room: Room,
        plan: impl FnMut(View<'_>) -> Result<(Rows, T), StorageError>,
        committed: impl FnOnce(&T),
    ) -> Result<T, StorageError> {
        match self {
            Base::Sound(logged) => logged.write(room, plan, committed),
            Base::Damaged(survey, _) => Err(survey.read_only()),
        }
    }

    /// Refuses what would write to a damaged file.
    pub fn check_writable(&self) -> Result<(), StorageError> {
        match self {
            Base::Sound(_) => Ok(()),
            Base::Damaged(survey, _) => Err(survey.read_only()),
        }
    }

    /// What is wrong with the file; nothing when it is sound.
    pub fn damages(&self) -> &[Damage] {
        match self {
            Base::Sound(_) => &[],
            Base::Damaged(survey, _) => survey.damages(),
        }
    }

    /// What it measures of itself; nothing where it is not written to.
    pub fn gauge(&self) -> StoreGauge {
        match self {
            Base::Sound(logged) => logged.gauge(),
            Base::Damaged(..) => StoreGauge::default(),
        }
    }

    /// The length of the file.
    pub fn file_bytes(&self) -> Result<u64, StorageError> {
        match self {
            Base::Sound(logged) => logged.file_bytes(),
            Base::Damaged(survey, _) => Ok(survey.file_bytes()),
        }
    }

    /// Lets go of the file, waiting until no transaction uses it; see [`Logged::close`].
    pub fn close(self) -> Result<(), StorageError> {
        match self {
            Base::Sound(logged) => logged.close(),
            Base::Damaged(..) => Ok(()),
        }
    }
}

/// One state, open for reading.
pub(crate) enum Reading<'base> {
    Logged(Box<logged::Reading<'base>>),
    Survey(&'base Survey, &'base Overlay),
}

impl Reading<'_> {
    pub fn view(&self) -> View<'_> {
        match self {
            Reading::Logged(reading) => reading.view(),
            Reading::Survey(survey, over) => View::of_survey(survey).under(over),
        }
    }
}
