//! Panics as errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::StorageError;

/// A panic fails the work it happened in, whose transaction is aborted as it unwinds, and nothing else.
///
/// # Errors
/// What the work fails with; [`StorageError::Panicked`] where it panics.
pub fn unwinding<T>(work: impl FnOnce() -> Result<T, StorageError>) -> Result<T, StorageError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(StorageError::Panicked { what: text.unwrap_or_else(|| "a panic without a message".to_owned()) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_fails_its_work_and_says_why() {
        let failed: Result<(), _> = unwinding(|| panic!("page {} is upside down", 7));
        assert_eq!(failed.unwrap_err().to_string(), "writing failed: page 7 is upside down");
        assert_eq!(unwinding(|| Ok(3)).unwrap(), 3);
    }
}
