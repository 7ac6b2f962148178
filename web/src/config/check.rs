//! Checks of single values; a refusal names the key.

use std::fmt::Display;
use std::time::Duration;

use super::error::ConfigError;

/// Refuses a value below `min`.
pub fn at_least<N: PartialOrd + Display>(key: &'static str, value: N, min: N) -> Result<(), ConfigError> {
    refuse_if(value < min, key, || format!("must be at least {min}, is {value}"))
}

/// Refuses a value above `max`.
pub fn at_most<N: PartialOrd + Display>(key: &'static str, value: N, max: N) -> Result<(), ConfigError> {
    refuse_if(value > max, key, || format!("must be at most {max}, is {value}"))
}

/// Refuses a duration of less than a millisecond.
pub fn some_time(key: &'static str, value: Duration) -> Result<(), ConfigError> {
    at_least(key, value.as_millis(), 1)
}

/// Refuses the value of `key` for `reason` when it is `wrong`.
pub fn refuse_if(wrong: bool, key: &'static str, reason: impl FnOnce() -> String) -> Result<(), ConfigError> {
    if wrong { Err(ConfigError::Invalid { key, reason: reason() }) } else { Ok(()) }
}
