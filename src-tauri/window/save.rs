//! Saving a file that came back from a run: where to, the owner says in the system's own dialog.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sandtray_app::dto::error::CommandError;
use sandtray_app::link::ReturnedFile;
use sandtray_app::text::plain;
use serde_json::value::RawValue;
use tauri::ipc::InvokeResolver;
use tauri::{AppHandle, Manager, Wry};
use tauri_plugin_dialog::DialogExt;

use crate::LABEL;

/// Most bytes of a suggested name. No folder takes more than 255, and a letter is up to four.
const NAME_CHARS: usize = 60;
/// The name if nothing of it is left.
const NAMELESS: &str = "file";
/// Files with these names are devices on Windows, whatever their extension.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];

/// Asks where, and writes it there; the page hears whether the owner thought better of it.
pub(crate) fn ask(app: &AppHandle, file: &RawValue, name: &str, resolver: InvokeResolver<Wry>) {
    let bytes = match bytes(file) {
        Ok(bytes) => bytes,
        Err(failure) => return resolver.reject(failure),
    };
    let dialog = app.dialog().file().set_file_name(suggestion(name));
    let dialog = match app.get_webview_window(LABEL) {
        Some(window) => dialog.set_parent(&window),
        None => dialog,
    };
    dialog.save_file(move |chosen| {
        let saved = chosen.map(|path| path.into_path().map_err(not_saved).and_then(|path| write(&path, &bytes)));
        match saved {
            None => resolver.resolve(false),
            Some(Ok(())) => resolver.resolve(true),
            Some(Err(failure)) => resolver.reject(failure),
        }
    });
}

fn bytes(file: &RawValue) -> Result<Vec<u8>, CommandError> {
    let ReturnedFile { base64 } = serde_json::from_str(file.get()).map_err(not_saved)?;
    STANDARD.decode(base64).map_err(not_saved)
}

/// A name for the dialog, made from the one that a program chose. It is its last part, limited to visible characters,
/// without anything that hides a file, is an option to other programs, or has a meaning on another system.
fn suggestion(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let (stem, ending) = match last.rsplit_once('.') {
        Some((stem, ending)) if ending.chars().count() < NAME_CHARS / 4 => (stem, format!(".{ending}")),
        Some(_) | None => (last, String::new()),
    };
    let ending = plain(&ending, NAME_CHARS);
    let shown = plain(stem, NAME_CHARS - ending.chars().count()) + &ending;
    let safe = shown.replace(|c| "<>:\"|?*".contains(c), "_");
    let safe = safe.trim_start_matches(['.', ' ', '-', '~']).trim_end_matches(['.', ' ']);
    match safe {
        "" => NAMELESS.into(),
        safe if is_device(safe) => format!("_{safe}"),
        safe => safe.into(),
    }
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_uppercase();
    let port = |kind| stem.strip_prefix(kind).is_some_and(|number: &str| number.chars().count() == 1);
    DEVICES.contains(&stem.as_str()) || port("COM") || port("LPT")
}

/// Writes the file whole or not at all: first beside its place, then into it. An existing link is replaced, and not
/// followed.
fn write(path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    beside(path, bytes).map_err(not_saved)
}

fn beside(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut draft = tempfile::Builder::new();
    // With the rights of any file that the owner makes: the owner's umask decides what others may do.
    #[cfg(unix)]
    let file_mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    #[cfg(unix)]
    draft.permissions(file_mode);
    let mut draft = draft.prefix(".saving-").tempfile_in(folder)?;
    draft.write_all(bytes)?;
    draft.as_file().sync_all()?;
    draft.persist(path).map_err(|failure| failure.error)?;
    Ok(())
}

fn not_saved(why: impl Display) -> CommandError {
    CommandError::new("not_saved", format!("The file was not saved: {why}."))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_saved_byte_for_byte_where_the_owner_says() {
        let file = RawValue::from_string(r#"{"base64":"iVBORwD/"}"#.into()).unwrap();
        let bytes = bytes(&file).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.png");
        fs::write(&path, "what was there before, and longer").unwrap();
        write(&path, &bytes).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"\x89PNG\0\xff");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn a_suggested_name_is_harmless_whatever_a_program_called_it() {
        for (name, suggested) in [
            ("plots/chart one.png", "chart one.png"),
            ("r\u{e9}sum\u{e9} \u{5e9}\u{5dc}\u{5d5}\u{5dd}.txt", "r\u{e9}sum\u{e9} \u{5e9}\u{5dc}\u{5d5}\u{5dd}.txt"),
            (".bashrc", "bashrc"),
            ("a/...hidden", "hidden"),
            ("..\\..\\evil.bat", "evil.bat"),
            ("photo\u{202e}gnp.exe", "photognp.exe"),
            ("a\u{1b}[31m\nb\u{9b}c.txt", "a[31m bc.txt"),
            ("\u{200b}.\u{2066}profile", "profile"),
            ("CON", "_CON"),
            ("nul.txt", "_nul.txt"),
            ("com1 .tar.gz", "_com1 .tar.gz"),
            ("LPT\u{b9}", "_LPT\u{b9}"),
            ("company.txt", "company.txt"),
            ("a:stream.txt", "a_stream.txt"),
            ("what?*<>|\".txt", "what______.txt"),
            ("-rf", "rf"),
            ("~", "file"),
            ("trailing. . ", "trailing"),
            ("out/", "file"),
            ("...", "file"),
        ] {
            assert_eq!(suggestion(name), suggested, "{name:?}");
        }
        let long = suggestion(&format!("{}.png", "\u{1d54f}".repeat(300)));
        assert!(long.ends_with("\u{2026}.png") && long.len() <= 255, "{long}");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_in_its_place_is_replaced_and_not_followed() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (victim, path) = (folder.path().join("victim"), folder.path().join("chosen"));
        fs::write(&victim, "untouched").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        write(&path, b"saved").unwrap();
        assert_eq!((fs::read(&victim).unwrap(), fs::read(&path).unwrap()), (b"untouched".to_vec(), b"saved".to_vec()));
        let plain = folder.path().join("plain");
        fs::write(&plain, "").unwrap();
        let mode = |path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&plain), "as any other file of the owner's");
    }

    #[test]
    fn what_cannot_be_saved_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let error = write(&folder.path().join("no such folder/a.txt"), b"x").unwrap_err();
        assert_eq!(error.code, "not_saved");
        assert!(error.message.starts_with("The file was not saved: "), "{}", error.message);
        let broken = RawValue::from_string(r#"{"base64":"?"}"#.into()).unwrap();
        assert_eq!(super::bytes(&broken).unwrap_err().code, "not_saved");
    }
}
