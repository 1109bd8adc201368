//! Sandtray's window: a separate program, which the app starts to open the window and which ends when it is closed.
//!
//! It shows the page, forwards the page's requests to the app, and returns the answers. Its only state is the requests
//! and channels of the page. It does nothing when started by hand. See `sandtray_app::link` for the messages between
//! the two.

// Opens no console window on Windows.
#![cfg_attr(all(windows, not(debug_assertions)), windows_subsystem = "windows")]

mod closing;
mod guard;
mod line;
mod pace;
mod page;
mod places;
mod save;
mod save_all;
mod stdio;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use sandtray_core::settings::Theme;
use tauri::webview::PageLoadEvent;
use tauri::{
    App, AppHandle, Builder, Manager, WebviewWindow, WebviewWindowBuilder, WindowEvent, Wry, generate_context,
};
use tauri_plugin_window_state::StateFlags;
use tracing::{error, warn};

use closing::Closing;
use guard::guarded;
use line::Incoming;
use pace::Pace;
use page::Page;
use sandtray_app::link::{FromWindow, OTHER_VERSION, ToWindow, VERSION};

const LABEL: &str = "main";
/// The event that sends the page where the tray wants it.
const NAVIGATE: &str = "navigate";
/// The event that tells the page to explain what closing means.
const LEAVING: &str = "leaving";
const AT_LATEST: Duration = Duration::from_secs(3);
const ENDING: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    sandtray_app::log();
    let here = match begin() {
        Ok(Begun::Here(here)) => here,
        Ok(Begun::OtherVersion(version)) => {
            eprintln!(
                "This is the window of Sandtray {VERSION}, and Sandtray {version} runs: end that and start it again."
            );
            return ExitCode::from(OTHER_VERSION);
        }
        Err(failure) => {
            eprintln!("This is Sandtray's window, which `sandtray-app` opens: start that instead. ({failure})");
            return ExitCode::from(2);
        }
    };
    match builder(*here).build(generate_context!()) {
        Ok(app) => ExitCode::from(u8::try_from(app.run_return(|_, _| ())).unwrap_or(1)),
        Err(failure) => {
            eprintln!("Sandtray's window cannot open here: {failure}.");
            ExitCode::FAILURE
        }
    }
}

enum Begun {
    /// The app has sent `Show`.
    Here(Box<Here>),
    OtherVersion(String),
}

struct Here {
    incoming: Incoming,
    page: Arc<Page>,
    theme: Theme,
    closing: Arc<Closing>,
}

fn begin() -> io::Result<Begun> {
    if io::stdin().is_terminal() {
        return Err(io::Error::other("nobody has asked for it"));
    }
    let (input, output) = stdio::take()?;
    let mut incoming = Incoming::new(input);
    match incoming.next()? {
        Some(ToWindow::Show { version, .. }) if version != VERSION => Ok(Begun::OtherVersion(version)),
        Some(ToWindow::Show { theme, asks, .. }) => {
            let (page, closing) = (Arc::new(Page::new(line::outgoing(output)?)), Closing::new(asks));
            Ok(Begun::Here(Box::new(Here { incoming, page, theme, closing })))
        }
        Some(_) | None => Err(io::Error::other("nobody has asked for it")),
    }
}

fn builder(Here { incoming, page, theme, closing }: Here) -> Builder<Wry> {
    let remembered = StateFlags::SIZE | StateFlags::POSITION | StateFlags::MAXIMIZED;
    let asking = Arc::clone(&page);
    Builder::default()
        .plugin(tauri_plugin_dialog::init())
        .plugin(tauri_plugin_window_state::Builder::new().with_state_flags(remembered).build())
        .invoke_handler(move |invoke| asking.ask(invoke))
        .setup(move |app| {
            make(app, theme, &page, &closing)?;
            let app = app.handle().clone();
            thread::Builder::new().name("line".into()).spawn(move || listen(&app, incoming, &page, &closing))?;
            Ok(())
        })
}

fn make(app: &App, theme: Theme, page: &Arc<Page>, closing: &Arc<Closing>) -> tauri::Result<()> {
    let Some(config) = app.config().app.windows.iter().find(|window| window.label == LABEL) else {
        return Err(tauri::Error::WindowNotFound);
    };
    let dev_server = app.config().build.dev_url.clone().filter(|_| tauri::is_dev());
    let window = guarded(WebviewWindowBuilder::from_config(app, config)?, dev_server)
        .visible(false)
        .on_page_load(|window, load| {
            if let PageLoadEvent::Finished = load.event() {
                show(&window);
            }
        })
        .build()?;
    set_theme(&window, theme)?;
    show_at_latest(&window)?;
    let (page, closing, app) = (Arc::clone(page), Arc::clone(closing), app.handle().clone());
    window.on_window_event(move |event| {
        if let WindowEvent::Focused(focused) = event {
            page.say(FromWindow::Focus(*focused));
        }
        if let WindowEvent::CloseRequested { api, .. } = event {
            closing.requested(&app, &page, api);
        }
    });
    Ok(())
}

/// Shows the window once its page has loaded. If shown earlier it has a blank page, which WebKit may take half a second
/// to draw.
fn show(window: &WebviewWindow) {
    if let Err(failure) = window.show() {
        error!(%failure, "the window could not be shown");
    }
}

/// Shows the window after a timeout, even if the page has not loaded.
fn show_at_latest(window: &WebviewWindow) -> io::Result<()> {
    let window = window.clone();
    thread::Builder::new().name("at-latest".into()).spawn(move || {
        thread::sleep(AT_LATEST);
        if let Ok(false) = window.is_visible() {
            warn!("the page has not come");
            show(&window);
        }
    })?;
    Ok(())
}

/// Handles the app's messages until end-of-file or an error, and then ends the process.
fn listen(app: &AppHandle, mut incoming: Incoming, page: &Arc<Page>, closing: &Closing) {
    let code = match hear_all(app, &mut incoming, page, closing) {
        Ok(()) => 0,
        Err(failure) => {
            error!(%failure, "the window ends");
            1
        }
    };
    app.exit(code);
    // Ends the process anyway if the main thread hangs.
    thread::sleep(ENDING);
    std::process::exit(code);
}

fn hear_all(app: &AppHandle, incoming: &mut Incoming, page: &Arc<Page>, closing: &Closing) -> io::Result<()> {
    let mut pace = Pace::default();
    while let Some(message) = incoming.next()? {
        let told = if let ToWindow::Tell { message, .. } = &message { message.get().len() } else { 0 };
        if let Err(failure) = hear(app, message, page, closing) {
            warn!(%failure, "what the app wanted could not be done");
        }
        pace.told(app, told)?;
    }
    Ok(())
}

fn hear(app: &AppHandle, message: ToWindow, page: &Arc<Page>, closing: &Closing) -> tauri::Result<()> {
    match message {
        ToWindow::Answer { id, answer } => page.answered(app, id, answer),
        ToWindow::Tell { channel, message } => page.tell(&channel, message)?,
        ToWindow::End { channel } => page.end(&channel),
        ToWindow::Go(to) => tauri::Emitter::emit_to(app, LABEL, NAVIGATE, to)?,
        ToWindow::Close => closing.close(app),
        ToWindow::Stay => closing.answered(),
        ToWindow::Leaving => {
            closing.answered();
            tauri::Emitter::emit_to(app, LABEL, LEAVING, ())?;
        }
        // Only the first message may be `Show`, so another has no effect.
        ToWindow::Show { .. } => {}
        ToWindow::Front { leave } => come_forward(app, page, leave)?,
        ToWindow::Theme(theme) => {
            if let Some(window) = app.get_webview_window(LABEL) {
                set_theme(&window, theme)?;
            }
        }
    }
    Ok(())
}

/// Brings the window to the front, on the main thread, where windows close. A window that has just closed is gone by
/// then and sends no `InFront`.
fn come_forward(app: &AppHandle, page: &Arc<Page>, leave: Option<String>) -> tauri::Result<()> {
    let (here, page) = (app.clone(), Arc::clone(page));
    app.run_on_main_thread(move || {
        let Some(window) = here.get_webview_window(LABEL) else { return };
        let shown = window.unminimize().and_then(|()| window.show()).and_then(|()| present(&window, leave.as_deref()));
        match shown {
            Ok(()) => page.say(FromWindow::InFront),
            Err(failure) => warn!(%failure, "the window did not come to the front"),
        }
    })
}

/// Presents the window with its activation token. Without one, desktops may keep it behind others.
#[cfg(target_os = "linux")]
fn present(window: &WebviewWindow, leave: Option<&str>) -> tauri::Result<()> {
    use gtk::prelude::GtkWindowExt;
    match leave {
        Some(leave) => {
            let window = window.gtk_window()?;
            window.set_startup_id(leave);
            window.present();
            Ok(())
        }
        None => window.set_focus(),
    }
}

#[cfg(not(target_os = "linux"))]
fn present(window: &WebviewWindow, _: Option<&str>) -> tauri::Result<()> {
    window.set_focus()
}

fn set_theme(window: &WebviewWindow, theme: Theme) -> tauri::Result<()> {
    window.set_theme(match theme {
        Theme::System => None,
        Theme::Light => Some(tauri::Theme::Light),
        Theme::Dark => Some(tauri::Theme::Dark),
    })
}
