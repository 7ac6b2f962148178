//! No room: a full disk, a disk that fails, a database as large as it may be. What is refused is refused clearly and is
//! not there, what was acknowledged is, reading and feeds go on, and so does writing when there is room again.

#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod addresses;
mod catalogue;
mod disk;
mod faults;
mod load;
mod map;
mod opening;
mod syncs;
