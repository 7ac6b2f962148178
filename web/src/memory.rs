//! Memory that goes back to the system.
#![allow(unsafe_code)]

/// Has the allocator give back what this thread has allocated and others have freed. Takes milliseconds where it is
/// much.
pub(crate) fn give_back() {
    // SAFETY: any thread may call it at any time; it takes nothing that it could misuse.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
