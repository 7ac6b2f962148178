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

    type Fault = fn() -> io::Result<()>;

    thread_local! {
        static FAULT: Cell<Fault> = const { Cell::new(none) };
    }

    /// What happens from now on when this thread syncs a folder.
    pub fn set(fault: Fault) {
        FAULT.set(fault);
    }

    /// The disk does as it should.
    pub fn none() -> io::Result<()> {
        Ok(())
    }

    /// It fails.
    pub fn no_answer() -> io::Result<()> {
        Err(io::Error::other("the disk does not answer"))
    }

    pub fn happens() -> io::Result<()> {
        FAULT.get()()
    }
}
