//! What a worker takes from itself before it runs anything.

use std::io;

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};

/// Address space beside the functions' memory: the program, its stack, and requests on their way.
const OWN_BYTES: u64 = 1 << 30;

/// Bounds the process's memory, lets it make no file, no process and no connection, and ends it with its parent.
pub fn confine(memory_bytes_max: usize) -> io::Result<()> {
    let memory = OWN_BYTES.saturating_add(memory_bytes_max as u64 * 2);
    for (resource, most) in [
        (Resource::As, memory),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        // Those open stay open; no number is left for another, not even that of one that is closed.
        (Resource::Nofile, 0),
        (Resource::Nproc, 0),
    ] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    #[cfg(target_os = "linux")]
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}
