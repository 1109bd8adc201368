//! The app. All code is in the library, so that tests can reach it.

// Opens no console window on Windows.
#![cfg_attr(all(windows, not(debug_assertions)), windows_subsystem = "windows")]

use std::process::ExitCode;

fn main() -> ExitCode {
    sandtray_app::run()
}
