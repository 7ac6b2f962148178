//! Names of files outlive a power cut when their folder is synced.

use std::fs::File;
use std::io;
use std::path::Path;

/// Makes the names of a folder's files outlive a power cut.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(test)]
    fault::happens()?;
    File::open(folder)?.sync_all()
}

/// What a test has the disk say.
#[cfg(test)]
pub(crate) mod fault {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static FAILS: Cell<bool> = const { Cell::new(false) };
    }

    /// Has folders that this thread syncs fail, or not any more.
    pub fn set(fails: bool) {
        FAILS.set(fails);
    }

    pub fn happens() -> io::Result<()> {
        if FAILS.get() { Err(io::Error::other("the disk does not answer")) } else { Ok(()) }
    }
}
