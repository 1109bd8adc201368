//! Starts the app when its owner logs in: on Linux by an autostart entry, elsewhere by the system's own means.

#[cfg(target_os = "linux")]
mod entry;

#[cfg(target_os = "linux")]
use std::path::PathBuf;

/// The argument with which the system starts the app at login: it opens no window.
pub(crate) const QUIETLY: &str = "--background";

#[cfg(not(target_os = "linux"))]
pub(crate) fn set(wanted: bool) -> Result<(), String> {
    use auto_launch::{AutoLaunchBuilder, WindowsEnableMode};
    let program = std::env::current_exe().map_err(|failure| failure.to_string())?;
    // Windows expects a command line, in which a space would end the program's path.
    let quote = if cfg!(windows) { "\"" } else { "" };
    let mut login = AutoLaunchBuilder::new();
    login.set_app_name("Sandtray").set_app_path(&format!("{quote}{}{quote}", program.display())).set_args(&[QUIETLY]);
    // Only for this user, even if the owner has more rights.
    login.set_windows_enable_mode(WindowsEnableMode::CurrentUser);
    let done = login.build().and_then(|login| if wanted { login.enable() } else { login.disable() });
    done.map_err(|failure| failure.to_string())
}

#[cfg(target_os = "linux")]
pub(crate) fn set(wanted: bool) -> Result<(), String> {
    let home = directories::BaseDirs::new().ok_or("there is no home folder")?;
    // An AppImage runs from a mount that is gone when it ends, so the entry names the AppImage file.
    let program = std::env::var_os("APPIMAGE").map_or_else(std::env::current_exe, |image| Ok(image.into()));
    let done = program.and_then(|program| entry::set(home.config_dir(), &in_its_place(program), wanted));
    done.map_err(|failure| failure.to_string())
}

/// The program's path after an update. The kernel marks the path of a replaced file.
#[cfg(target_os = "linux")]
fn in_its_place(program: PathBuf) -> PathBuf {
    match program.to_str().and_then(|path| path.strip_suffix(" (deleted)")) {
        Some(place) if !program.exists() => place.into(),
        Some(_) | None => program,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_updated_is_found_in_its_place() {
        assert_eq!(in_its_place("/usr/bin/sandtray-app (deleted)".into()), PathBuf::from("/usr/bin/sandtray-app"));
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("app (deleted)");
        std::fs::write(&odd, "").unwrap();
        assert_eq!(in_its_place(odd.clone()), odd);
    }
}
