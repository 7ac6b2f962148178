//! Names of files outlive a power cut when their folder is synced.

use std::fs::File;
use std::io;
use std::path::Path;

/// Makes the names of a folder's files outlive a power cut.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
