//! What crosses between the app and its window, a program of its own: one JSON value a line, over the window's standard input and
//! output. No other program has an end of it, and it ends with the app: no window outlives that.

use sandtray_core::settings::Theme;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The window's program; it lies beside the app's.
pub const PROGRAM: &str = "sandtray-window";
/// A line at most, either way. A run's page is the greatest: three texts of 1 MiB, which may take six times as much in JSON, and
/// previews of 16 MiB.
pub const MAX_LINE: usize = 40 << 20;
/// What a question is at most: the rest of its line is less than the difference.
pub const MAX_REQUEST: usize = MAX_LINE - 256;
/// Questions of the page that wait for their answers at the same time.
pub const MAX_ASKED: usize = 256;

/// Both are installed at once, but an app that runs keeps its version when a newer one takes its place on the disk.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The window's exit code where the app is of another version.
pub const OTHER_VERSION: u8 = 3;

/// A question's number, given by the window.
pub type AskId = u32;
/// A channel of the page's own, as tauri names it in the arguments of a command. What it means is tauri's to know.
pub type ChannelId = String;

/// The page has called a command. `request` is `{"command": name, "args": {...}}`: see `commands::Request`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWindow {
    Ask {
        id: AskId,
        request: Box<RawValue>,
    },
    Focus(bool),
    /// Its owner wants to close it, and it was told to ask. It waits for `Close`, `Stay` or `Leaving`, though not for long.
    Closing,
    /// The answer to `Front`. A window that is closing gives none.
    InFront,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWindow {
    /// The first of all: show yourself. A window of another version ends with [`OTHER_VERSION`].
    Show {
        theme: Theme,
        version: String,
        /// Before it closes it asks, with `Closing`.
        asks: bool,
    },
    Close,
    /// It is wanted at the front meanwhile, and does not close.
    Stay,
    /// Not yet: the page says first what closing means.
    Leaving,
    /// The value, or a `CommandError`.
    Answer {
        id: AskId,
        answer: Result<Box<RawValue>, Box<RawValue>>,
    },
    /// For a channel of the page.
    Tell {
        channel: ChannelId,
        message: Box<RawValue>,
    },
    /// The last for that channel.
    End {
        channel: ChannelId,
    },
    /// To the front. `leave` is the desktop's to come there: an activation token of Wayland's, or a startup id of X11's.
    Front {
        leave: Option<String>,
    },
    /// A `Navigate`, for the page.
    Go(Box<RawValue>),
    Theme(Theme),
}

/// The window's own question, never the page's: a file that came back from a run, for the owner to save.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReturnedFile {
    pub base64: String,
}

/// The same of all files of a run: their names, and their bytes in base64.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReturnedFiles {
    pub files: Vec<(String, String)>,
}

/// The name of [`ReturnedFile`]'s question, and of the page's command that leads to it.
pub const RETURNED_FILE: &str = "returned_file";
pub const SAVE_FILE: &str = "save_file";
/// The same for [`ReturnedFiles`].
pub const RETURNED_FILES: &str = "returned_files";
pub const SAVE_ALL: &str = "save_all";
/// The page's command that the window does by itself: to show a folder in which it has saved something.
pub const OPEN_SAVED: &str = "open_saved";

/// What the window is started as: a desktop knows by this name whose window it is.
pub const NAME: &str = "sandtray-app";
