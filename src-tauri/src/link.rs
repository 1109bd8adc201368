//! The messages between the app and its window, a separate program: one JSON value a line, over the window's standard
//! input and output. No other program has an end of these pipes. The window ends at end-of-file, so it does not outlive
//! the app.

use sandtray_core::settings::Theme;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The window's program, in the same folder as the app's.
pub const PROGRAM: &str = "sandtray-window";
/// Most bytes of a line in either direction. The largest is a run's page: three texts of 1 MiB, which may take six
/// times as much in JSON, and previews of 16 MiB.
pub const MAX_LINE: usize = 40 << 20;
/// Most bytes of a request. The rest of its line takes less than the difference.
pub const MAX_REQUEST: usize = MAX_LINE - 256;
/// Most requests of the page that wait for answers at a time.
pub const MAX_ASKED: usize = 256;

/// The version that both check. An app that runs keeps its version when a newer one is installed with its window.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The window's exit code if the app is of another version.
pub const OTHER_VERSION: u8 = 3;

/// The number of a request, given by the window.
pub type AskId = u32;
/// The id of a page's channel, as tauri puts it into a command's arguments. Opaque here.
pub type ChannelId = String;

/// The page called a command. `request` is `{"command": name, "args": {...}}`: see `commands::Request`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWindow {
    Ask {
        id: AskId,
        request: Box<RawValue>,
    },
    Focus(bool),
    /// The owner wants to close the window, and the app asked to be told. The window waits a bounded time for `Close`,
    /// `Stay` or `Leaving`.
    Closing,
    /// The answer to `Front`. A closing window does not send it.
    InFront,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWindow {
    /// The first message: show yourself. A window of another version exits with [`OTHER_VERSION`].
    Show {
        theme: Theme,
        version: String,
        /// Whether to send `Closing` before the window closes.
        asks: bool,
    },
    Close,
    /// Do not close: the window was asked to the front meanwhile.
    Stay,
    /// Do not close yet: the page must first explain what closing means.
    Leaving,
    /// The answer to a request: a value, or a `CommandError`.
    Answer {
        id: AskId,
        answer: Result<Box<RawValue>, Box<RawValue>>,
    },
    /// A message for a channel of the page.
    Tell {
        channel: ChannelId,
        message: Box<RawValue>,
    },
    /// The end of a channel.
    End {
        channel: ChannelId,
    },
    /// Come to the front. `leave` is an activation token of Wayland, or a startup id of X11.
    Front {
        leave: Option<String>,
    },
    /// A `Navigate` for the page.
    Go(Box<RawValue>),
    Theme(Theme),
}

/// The answer to a request of the window itself, never of the page: a file of a run, for the owner to save.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReturnedFile {
    pub base64: String,
}

/// The answer for all files that a run returned: their names, and their bytes in base64.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReturnedFiles {
    pub files: Vec<(String, String)>,
}

/// The request that [`ReturnedFile`] answers, and then the page's command that leads to it.
pub const RETURNED_FILE: &str = "returned_file";
pub const SAVE_FILE: &str = "save_file";
/// The same for [`ReturnedFiles`].
pub const RETURNED_FILES: &str = "returned_files";
pub const SAVE_ALL: &str = "save_all";
/// A command of the page that the window handles itself: it shows a folder in which it saved files.
pub const OPEN_SAVED: &str = "open_saved";

/// The window's name (`argv[0]`), by which a desktop assigns it to the app.
pub const NAME: &str = "sandtray-app";
