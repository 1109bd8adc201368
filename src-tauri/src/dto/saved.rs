//! The window's report of the files that it saved.

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Saved {
    /// Where, as the owner chose it.
    pub folder: String,
    /// The only file's name, or the first one's.
    pub name: String,
    pub count: usize,
    /// For `open_saved`. Absent where no program can be asked to show a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub place: Option<u32>,
}
