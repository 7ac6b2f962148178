//! What the server logs, and counts, of databases' files.

use std::path::Path;

use seqtide_storage::model::db_name::DbName;
use seqtide_storage::{NewIncarnation, Notice, StorageError, Store};

use crate::metrics;

/// Of a database's damages, so many are logged; `seqtide check` lists more.
const DAMAGES_LOGGED: usize = 10;

/// Logs what is wrong with a database that has been opened, or was.
pub(crate) fn report_damages(name: &DbName, store: &Store) {
    if let Some(damage) = store.mended() {
        tracing::warn!(database = %name, %damage, "a damage was put right");
    }
    let damages = store.damages();
    for damage in damages.iter().take(DAMAGES_LOGGED) {
        let all = damages.len();
        tracing::error!(database = %name, %damage, damages = all, "the database is damaged and can only be read");
    }
}

/// Logs and counts what a read of a database came upon: it is told to whoever asked, and to whoever watches over the
/// server.
pub(crate) fn report_damaged_read(name: &DbName, error: &StorageError) {
    metrics::damaged_read();
    tracing::error!(database = %name, %error, "a read came upon damage");
}

/// Logs and counts what a database has to tell though nobody has asked.
pub(crate) fn report_notice(folder: &Path, notice: &Notice<'_>) {
    let folder = folder.display();
    match notice {
        Notice::Stalled { error, first } => {
            metrics::log_failed();
            if *first {
                tracing::error!(%folder, %error, "LMDB does not take what the log has; it is tried again and again");
            }
        }
        Notice::Synced { by, took } => metrics::synced(*by, *took),
        Notice::Resumed => tracing::info!(%folder, "LMDB takes what the log has again"),
        Notice::Raised { to, why } => {
            let why = match why {
                NewIncarnation::Unknown => "it is not known how far it had counted",
                NewIncarnation::Lost => "its folder was lost, and it is empty now",
                NewIncarnation::Unclean => "a power cut may have cost its last commits",
            };
            tracing::warn!(%folder, incarnation = to, why, "the database counts on above all tokens it has given out");
        }
        Notice::LeftOver { error } => tracing::error!(%folder, %error, "what is left of a database cannot be removed"),
        Notice::PassedOver => {
            tracing::warn!(%folder, "passed over: {}", DbName::FOLDERS);
        }
    }
}
