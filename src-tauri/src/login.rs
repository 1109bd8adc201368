//! Whether the app starts when its owner logs in. On Linux that is an entry in the folder that desktops look into; elsewhere
//! it is the system's own way.

#[cfg(target_os = "linux")]
mod entry;

#[cfg(target_os = "linux")]
use std::path::PathBuf;

/// What the system starts the app with: nobody asked for a window.
pub(crate) const QUIETLY: &str = "--background";

#[cfg(not(target_os = "linux"))]
pub(crate) fn set(wanted: bool) -> Result<(), String> {
    use auto_launch::{AutoLaunchBuilder, WindowsEnableMode};
    let program = std::env::current_exe().map_err(|failure| failure.to_string())?;
    // Windows reads a command there, in which a space ends the program.
    let quote = if cfg!(windows) { "\"" } else { "" };
    let mut login = AutoLaunchBuilder::new();
    login.set_app_name("Sandtray").set_app_path(&format!("{quote}{}{quote}", program.display())).set_args(&[QUIETLY]);
    // Nobody else's login, even where the owner's rights reach further.
    login.set_windows_enable_mode(WindowsEnableMode::CurrentUser);
    let done = login.build().and_then(|login| if wanted { login.enable() } else { login.disable() });
    done.map_err(|failure| failure.to_string())
}

#[cfg(target_os = "linux")]
pub(crate) fn set(wanted: bool) -> Result<(), String> {
    let home = directories::BaseDirs::new().ok_or("there is no home folder")?;
    // An AppImage runs from a folder that is gone when it ends; the file that was started stays.
    let program = std::env::var_os("APPIMAGE").map_or_else(std::env::current_exe, |image| Ok(image.into()));
    let done = program.and_then(|program| entry::set(home.config_dir(), &in_its_place(program), wanted));
    done.map_err(|failure| failure.to_string())
}

/// An update has put another file in its place, which the kernel marks.
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
