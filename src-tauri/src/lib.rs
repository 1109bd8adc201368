//! Sandtray on the desktop. The product itself is `sandtray-core`. This crate shows its state and forwards commands.
//!
//! [`app::App`] holds the shared state. [`host`] starts and ends the service, [`picture`] keeps its latest snapshot,
//! and [`tray`] and the window's subscription read it; they keep no state. The window is a separate program: [`window`]
//! starts it, and [`link`] defines the messages between the two. Pictures of programs are decoded in a separate
//! process: [`thumbnail`].

pub mod dto;
pub mod link;
pub mod text;

mod act;
mod app;
mod bell;
mod clipboard;
mod closing;
mod commands;
mod desk;
mod fetched;
mod host;
mod login;
mod menu;
mod notify;
mod panel;
mod picture;
mod remedy;
#[cfg(target_os = "linux")]
mod screen;
mod signals;
mod speed;
mod thumbnail;
mod tray;
mod views;
mod window;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use sandtray_core::ipc::Listener;
use sandtray_core::paths::Paths;
use tokio::runtime::Runtime;
use tracing::warn;
use tracing_subscriber::EnvFilter;

use app::App;
use bell::Claim;

/// The environment variable with the log filter for stderr, like `RUST_LOG` elsewhere.
const LOG: &str = "SANDTRAY_LOG";
/// The default filter. zbus warns about each connection that is closed.
const LOGGED: &str = "warn,zbus=error";
/// Timeout at the end for notifications and the clipboard.
const LEFT: Duration = Duration::from_secs(1);
const USAGE: &str = "Usage: sandtray-app [--background]\n\n\
    Sandtray on the desktop: the tray, the window, notifications. Started a second time, it opens the window of the first.\n\n  \
      --background  open no window, as when the owner logs in\n  \
      --version     say which version this is";

/// Runs the app until it ends.
pub fn run() -> ExitCode {
    if let Some(want) = thumbnail::asked(std::env::args_os().nth(1).as_deref()) {
        return thumbnail::work(want);
    }
    let quiet = match quietly() {
        Ok(quiet) => quiet,
        Err(said) => return said,
    };
    log();
    match start(quiet) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("Sandtray cannot start here: {failure}");
            notify::tell_of_no_start(&failure);
            ExitCode::FAILURE
        }
    }
}

fn quietly() -> Result<bool, ExitCode> {
    let mut quiet = false;
    for argument in std::env::args_os().skip(1) {
        match argument.to_str() {
            Some(login::QUIETLY) => quiet = true,
            Some("--version" | "-V") => {
                println!("sandtray-app {}", link::VERSION);
                return Err(ExitCode::SUCCESS);
            }
            Some("--help" | "-h") => {
                println!("{USAGE}");
                return Err(ExitCode::SUCCESS);
            }
            Some(_) | None => {
                eprintln!("`{}` is not known here.\n\n{USAGE}", argument.display());
                return Err(ExitCode::from(2));
            }
        }
    }
    Ok(quiet)
}

fn start(quiet: bool) -> Result<(), String> {
    let runtime = Runtime::new().map_err(|failure| format!("{failure}."))?;
    #[cfg(target_os = "linux")]
    let screen = runtime.block_on(screen::Screen::connect(screen::Named::by_environment()))?;
    let Some(bell) = first(&runtime, quiet)? else { return Ok(()) };
    let app = App::new(quiet);
    #[cfg(target_os = "linux")]
    runtime.spawn(screen::watch(Arc::clone(&app), screen));
    runtime.spawn(signals::watch(Arc::clone(&app)));
    let bell = bell.map(|bell| runtime.spawn(bell::answer(Arc::clone(&app), bell)));
    tray::hold(&runtime, &app);
    // Held until here, so that no other app starts before.
    drop(bell.map(|bell| runtime.block_on(bell)));
    // Bounded, because a task may wait for another program that hangs.
    runtime.shutdown_timeout(LEFT);
    Ok(())
}

/// Claims the data folder. `None` if another app has answered instead.
fn first(runtime: &Runtime, quiet: bool) -> Result<Option<Option<Listener>>, String> {
    let place = Paths::of_user().and_then(|paths| paths.ensure().and_then(|()| paths.app_socket_file()));
    // Without a place for this socket there is none for the service's either, and the window reports that.
    let claimed = place
        .map_err(|failure| failure.to_string())
        .and_then(|place| runtime.block_on(bell::claim(&place, quiet)).map_err(|failure| failure.to_string()));
    match claimed {
        Ok(Claim::First(bell)) => Ok(Some(Some(bell))),
        Ok(Claim::Second) => Ok(None),
        Ok(Claim::Deaf) => Err("it runs already, and does not answer. End `sandtray-app` and start it again.".into()),
        Err(failure) => {
            warn!(%failure, "a second start will not find this one");
            Ok(Some(None))
        }
    }
}

/// Starts logging to stderr, for the app and for its window.
pub fn log() {
    let filter = EnvFilter::try_from_env(LOG).unwrap_or_else(|_| EnvFilter::new(LOGGED));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
}
