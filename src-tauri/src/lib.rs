//! Sandtray on the desktop. The product itself is `sandtray-core`; this crate shows it and passes the owner's wishes on.
//!
//! One [`desk::Desk`] holds the latest picture. [`host`] starts and ends the service, [`picture`] keeps the picture up to date,
//! [`tray`] and the window's subscription read it; nobody else keeps state.

pub mod dto;

mod act;
mod commands;
mod desk;
mod host;
mod login;
mod menu;
mod notify;
mod panel;
mod picture;
#[cfg(target_os = "linux")]
mod remains;
mod signals;
mod speed;
mod text;
mod tray;
mod views;
mod window;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use tauri::{AppHandle, Builder, Manager, RunEvent, Wry, generate_context, generate_handler};
use tauri_plugin_window_state::StateFlags;
use tracing::error;
use tracing_subscriber::EnvFilter;

use commands::{history, live, overview, settings};
use desk::Desk;
use notify::Gatekeeper;

/// The variable that says what is logged to stderr, as `RUST_LOG` does elsewhere.
const LOG: &str = "SANDTRAY_LOG";

/// Returns when the app has ended.
pub fn run() -> ExitCode {
    log();
    match builder().build(generate_context!()) {
        Ok(app) => {
            let code = app.run_return(on_event);
            ExitCode::from(u8::try_from(code).unwrap_or(1))
        }
        Err(failure) => {
            eprintln!("Sandtray cannot start here: {failure}.");
            ExitCode::FAILURE
        }
    }
}

fn builder() -> Builder<Wry> {
    let size = StateFlags::SIZE | StateFlags::POSITION | StateFlags::MAXIMIZED;
    let builder = Builder::default()
        // First: a second start must reach the first before it does anything at all.
        .plugin(tauri_plugin_single_instance::init(|app, _, _| come_forward(app)))
        .plugin(tauri_plugin_clipboard_manager::init())
        .plugin(tauri_plugin_dialog::init())
        .plugin(tauri_plugin_window_state::Builder::new().with_state_flags(size).build());
    #[cfg(not(target_os = "linux"))]
    let builder =
        builder.plugin(tauri_plugin_autostart::init(tauri_plugin_autostart::MacosLauncher::LaunchAgent, None));
    builder
        .invoke_handler(generate_handler![
            overview::subscribe,
            overview::set_enabled,
            overview::retry_engine,
            overview::pull_image,
            overview::cancel_pull,
            overview::remove_image,
            overview::stop_run,
            overview::stop_all,
            live::watch_run,
            live::unwatch_run,
            history::history_page,
            history::history_run,
            history::history_recent,
            history::history_delete,
            history::history_clear,
            history::history_stats,
            history::run_again,
            history::save_file,
            history::copy_text,
            settings::settings,
            settings::apply_settings,
        ])
        .setup(|app| {
            let handle = app.handle();
            app.manage(Desk::new(host::blank(app.package_info().version.to_string())));
            app.manage(Gatekeeper::default());
            if let Err(failure) = tray::install(handle) {
                error!(%failure, "there is no tray here");
            }
            tauri::async_runtime::spawn(signals::watch(handle.clone()));
            tauri::async_runtime::spawn(host::run(handle.clone()));
            Ok(())
        })
}

fn on_event(_: &AppHandle, event: RunEvent) {
    // The last window has closed: the app lives on in the tray. Without a code nobody asked it to end.
    if let RunEvent::ExitRequested { code: None, api, .. } = event {
        api.prevent_exit();
    }
}

fn come_forward(app: &AppHandle) {
    if let Err(failure) = window::open(app, None) {
        error!(%failure, "the window did not open");
    }
}

fn log() {
    let filter = EnvFilter::try_from_env(LOG).unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
}
