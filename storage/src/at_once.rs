//! Two things at once.

use std::{panic, thread};

/// Does one thing on a thread of its own, where there is one to be had, and the other meanwhile on this one.
pub(crate) fn at_once<A: Send, B>(one: impl Fn() -> A + Sync, other: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let begun = thread::Builder::new().spawn_scoped(scope, &one);
        let other = other();
        let one = match begun {
            Ok(begun) => begun.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked)),
            Err(_) => one(),
        };
        (one, other)
    })
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn neither_waits_for_the_other_s_end() {
        let [(to_one, of_other), (to_other, of_one)] = [channel(), channel()];
        let of_other = Mutex::new(of_other);
        let one = || {
            to_other.send(1).unwrap();
            of_other.lock().unwrap().recv().unwrap()
        };
        let other = || {
            to_one.send(2).unwrap();
            of_one.recv().unwrap()
        };
        assert_eq!(at_once(one, other), (2, 1));
    }

    #[test]
    fn a_panic_of_one_is_this_thread_s() {
        let panicked = catch_unwind(AssertUnwindSafe(|| at_once(|| panic!("on purpose"), || ())));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"on purpose"));
    }
}
