//! A program's picture, as the window may show it.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PictureView {
    /// `width` and `height` are of the file; what is shown may be smaller.
    Fits {
        width: u32,
        height: u32,
        /// It has more frames; the first is shown.
        moves: bool,
        /// A PNG that the app wrote itself, as base64. Absent where only the size was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        png: Option<String>,
    },
    /// Of more pixels than are decoded.
    TooLarge { width: u32, height: u32 },
    /// Damaged, or of a kind that is not read.
    Unreadable,
}
