//! Saving a file that came back from a run: where to, the owner says in the system's own dialog.

use std::fmt::Display;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sandtray_app::dto::error::CommandError;
use sandtray_app::link::ReturnedFile;
use serde_json::value::RawValue;
use tauri::ipc::InvokeResolver;
use tauri::{AppHandle, Manager, Wry};
use tauri_plugin_dialog::DialogExt;

use crate::LABEL;

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

/// The last part of the name: a dialog takes the rest for folders.
fn suggestion(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    fs::write(path, bytes).map_err(not_saved)
}

fn not_saved(why: impl Display) -> CommandError {
    CommandError::new("not_saved", format!("The file was not saved: {why}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_saved_byte_for_byte_where_the_owner_says() {
        let file = RawValue::from_string(r#"{"base64":"iVBORwD/"}"#.into()).unwrap();
        let bytes = bytes(&file).unwrap();
        assert_eq!(suggestion("plots/chart one.png"), "chart one.png");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.png");
        fs::write(&path, "what was there before, and longer").unwrap();
        write(&path, &bytes).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"\x89PNG\0\xff");
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
