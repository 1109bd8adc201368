//! Whether the app starts when its owner logs in. On Linux that is an entry in the folder that desktops look into; elsewhere
//! it is the system's own way.

#[cfg(target_os = "linux")]
mod entry;

use tauri::AppHandle;

#[cfg(not(target_os = "linux"))]
pub(crate) fn set(app: &AppHandle, wanted: bool) -> Result<(), String> {
    use tauri_plugin_autostart::ManagerExt;
    let login = app.autolaunch();
    let done = if wanted { login.enable() } else { login.disable() };
    done.map_err(|failure| failure.to_string())
}

#[cfg(target_os = "linux")]
pub(crate) fn set(app: &AppHandle, wanted: bool) -> Result<(), String> {
    use tauri::Manager;
    let settings = app.path().config_dir().map_err(|failure| failure.to_string())?;
    // An AppImage runs from a folder that is gone when it ends; the file that was started stays.
    let program = app.env().appimage.map_or_else(std::env::current_exe, |image| Ok(image.into()));
    let done = program.and_then(|program| entry::set(&settings, &program, wanted));
    done.map_err(|failure| failure.to_string())
}
