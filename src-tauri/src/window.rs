//! The one window: made when it is opened and gone when it is closed, for a hidden one would keep 100 MB.

use sandtray_core::settings::Theme;
use tauri::{AppHandle, Emitter, Manager, WebviewWindow, WebviewWindowBuilder, WindowEvent};

use crate::desk::Desk;
use crate::dto::snapshot::Navigate;

const LABEL: &str = "main";
/// The event by which the tray sends an open window somewhere.
const NAVIGATE: &str = "navigate";

/// Brings it to the front where it is open already.
pub(crate) fn open(app: &AppHandle, to: Option<Navigate>) -> tauri::Result<()> {
    if let Some(window) = app.get_webview_window(LABEL) {
        window.unminimize()?;
        window.show()?;
        window.set_focus()?;
        if let Some(to) = to {
            window.emit(NAVIGATE, to)?;
        }
        return Ok(());
    }
    let desk = app.state::<Desk>();
    desk.go_next(to);
    let app = app.clone();
    // From the main thread: elsewhere making a window waits for that thread, which may be waiting for us.
    app.clone().run_on_main_thread(move || {
        if let Err(failure) = make(&app) {
            tracing::error!(%failure, "the window could not be made");
        }
    })
}

fn make(app: &AppHandle) -> tauri::Result<()> {
    if app.get_webview_window(LABEL).is_some() {
        return Ok(());
    }
    let Some(config) = app.config().app.windows.iter().find(|window| window.label == LABEL) else {
        return Err(tauri::Error::WindowNotFound);
    };
    let window = WebviewWindowBuilder::from_config(app, config)?.build()?;
    let desk = app.state::<Desk>();
    if let Ok(here) = desk.here() {
        set_theme(&window, here.owner.settings().theme)?;
    }
    let app = app.clone();
    window.on_window_event(move |event| {
        if let WindowEvent::Destroyed = event {
            app.state::<Desk>().views.end();
            #[cfg(target_os = "linux")]
            crate::remains::end_later(&app);
        }
    });
    Ok(())
}

/// The page is there and listens: it may be sent where the tray wanted it.
pub(crate) fn ready(app: &AppHandle) -> tauri::Result<()> {
    match app.state::<Desk>().take_next() {
        Some(to) => app.emit_to(LABEL, NAVIGATE, to),
        None => Ok(()),
    }
}

pub(crate) fn apply_theme(app: &AppHandle, theme: Theme) -> tauri::Result<()> {
    app.get_webview_window(LABEL).map_or(Ok(()), |window| set_theme(&window, theme))
}

fn set_theme(window: &WebviewWindow, theme: Theme) -> tauri::Result<()> {
    window.set_theme(match theme {
        Theme::System => None,
        Theme::Light => Some(tauri::Theme::Light),
        Theme::Dark => Some(tauri::Theme::Dark),
    })
}

#[cfg(target_os = "linux")]
pub(crate) fn is_open(app: &AppHandle) -> bool {
    app.get_webview_window(LABEL).is_some()
}

pub(crate) fn is_in_front(app: &AppHandle) -> bool {
    app.get_webview_window(LABEL).is_some_and(|window| window.is_focused().unwrap_or(false))
}
