//! A [`Duration`] written as a number of milliseconds, for `#[serde(with = "millis")]`.

use std::time::Duration;

use serde::ser::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Writes whole milliseconds.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_millis()).map_err(S::Error::custom)?)
}

/// Reads whole milliseconds.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}
