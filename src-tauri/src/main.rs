//! The app. Everything is in the library, where tests reach it.

// No console window beside the app on Windows.
#![cfg_attr(all(windows, not(debug_assertions)), windows_subsystem = "windows")]

use std::process::ExitCode;

fn main() -> ExitCode {
    sandtray_app::run()
}
