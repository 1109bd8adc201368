//! Points in time in the form used outside this process: whole milliseconds since 1970, UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serializer;

/// Times before 1970 become 0.
pub fn to_millis(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

pub fn from_millis(millis: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis)
}

pub fn serialize_millis<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(to_millis(*time))
}
