//! Saves a file that came back from a run, at the place that the owner chooses in the system's dialog.

use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sandtray_app::dto::error::CommandError;
use sandtray_app::dto::saved::Saved;
use sandtray_app::link::ReturnedFile;
use sandtray_app::text::plain;
use serde_json::value::RawValue;
use tauri::ipc::InvokeResolver;
use tauri::{AppHandle, Manager, Wry};
use tauri_plugin_dialog::DialogExt;

use crate::LABEL;
use crate::places::Places;

/// Most characters of a suggested name. File systems allow 255 bytes, and a character takes up to four.
const NAME_CHARS: usize = 60;
/// The suggestion if no character of the name is left.
const NAMELESS: &str = "file";
/// Files with these names are devices on Windows, whatever their extension.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];

/// Asks for a place and writes the file there. The page is told if the owner cancels.
pub(crate) fn ask(app: &AppHandle, file: &RawValue, name: &str, places: Arc<Places>, resolver: InvokeResolver<Wry>) {
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
        let saved = chosen.map(|path| {
            let path = path.into_path().map_err(|failure| not_saved(&failure.to_string()))?;
            write(&path, &bytes)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok(saved(path.parent().unwrap_or(Path::new("/")), name, 1, &places))
        });
        answer(saved.transpose(), resolver);
    });
}

/// Tells the page what was saved, or nothing if the owner cancelled.
pub(crate) fn answer(saved: Result<Option<Saved>, CommandError>, resolver: InvokeResolver<Wry>) {
    match saved {
        Ok(saved) => resolver.resolve(saved),
        Err(failure) => resolver.reject(failure),
    }
}

pub(crate) fn saved(folder: &Path, name: String, count: usize, places: &Places) -> Saved {
    Saved { folder: folder.display().to_string(), name, count, place: places.keep(folder) }
}

fn bytes(file: &RawValue) -> Result<Vec<u8>, CommandError> {
    let broken = || not_saved("it did not come whole");
    let ReturnedFile { base64 } = serde_json::from_str(file.get()).map_err(|_| broken())?;
    STANDARD.decode(base64).map_err(|_| broken())
}

/// A safe name for the dialog, made from the one that a program chose: its last part, limited to visible characters,
/// and without anything that hides a file, looks like an option to other programs, or has a meaning on another system.
pub(crate) fn suggestion(name: &str) -> String {
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

/// Writes the file whole or not at all: to a temporary file, then by a rename. A link is replaced, not followed.
fn write(path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    beside(path, bytes, true).map_err(|failure| not_saved(&plainly(&failure)))
}

/// Writes a temporary file and renames it to `path`. With `replace` an existing file is replaced, otherwise it stays
/// and this fails.
///
/// # Errors
///
/// Those of the system, and `AlreadyExists`.
pub(crate) fn beside(path: &Path, bytes: &[u8], replace: bool) -> io::Result<()> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut draft = tempfile::Builder::new();
    // The mode of any new file of the owner's, subject to the umask. Temporary files are private by default.
    #[cfg(unix)]
    let file_mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    #[cfg(unix)]
    draft.permissions(file_mode);
    let mut draft = draft.prefix(".saving-").tempfile_in(folder)?;
    draft.write_all(bytes)?;
    draft.as_file().sync_all()?;
    let kept = if replace { draft.persist(path) } else { draft.persist_noclobber(path) };
    kept.map(drop).map_err(|failure| failure.error)
}

fn not_saved(why: &str) -> CommandError {
    CommandError::new("not_saved", format!("The file was not saved: {why}."))
}

/// An error of the file system in plain words.
#[expect(clippy::wildcard_enum_match_arm, reason = "systems have some 40 kinds of failure; few of them come up here")]
pub(crate) fn plainly(failure: &io::Error) -> String {
    match failure.kind() {
        ErrorKind::NotFound => "the folder is not there".into(),
        ErrorKind::PermissionDenied => "you may not write in that folder".into(),
        ErrorKind::ReadOnlyFilesystem => "that disk can only be read".into(),
        ErrorKind::StorageFull => "the disk is full".into(),
        ErrorKind::QuotaExceeded => "your share of the disk is used up".into(),
        ErrorKind::FileTooLarge => "that disk takes no file so large".into(),
        ErrorKind::AlreadyExists => "a file of that name is there already".into(),
        ErrorKind::IsADirectory => "a folder of that name is there already".into(),
        ErrorKind::NotADirectory => "a file is in the place of its folder".into(),
        ErrorKind::InvalidFilename => "that folder takes no such name".into(),
        _ => {
            // The system's sentence without its error number.
            let said = failure.to_string();
            said.split(" (os error").next().unwrap_or_default().to_owned()
        }
    }
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
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("not_saved", "The file was not saved: the folder is not there.")
        );
        fs::create_dir(folder.path().join("taken")).unwrap();
        let error = write(&folder.path().join("taken"), b"x").unwrap_err();
        assert_eq!(error.message, "The file was not saved: a folder of that name is there already.");
        let other = plainly(&io::Error::from_raw_os_error(5));
        assert!(!other.is_empty() && !other.contains("os error"), "{other}");
        let broken = RawValue::from_string(r#"{"base64":"?"}"#.into()).unwrap();
        assert_eq!(super::bytes(&broken).unwrap_err().code, "not_saved");
    }
}
