//! Saves all files of a run in a folder that the owner chooses. Asks before it replaces anything there.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sandtray_app::dto::error::CommandError;
use sandtray_app::dto::saved::Saved;
use sandtray_app::link::ReturnedFiles;
use serde_json::value::RawValue;
use tauri::ipc::InvokeResolver;
use tauri::{AppHandle, Manager, Wry};
use tauri_plugin_dialog::{DialogExt, MessageDialogButtons, MessageDialogKind};

use crate::LABEL;
use crate::places::Places;
use crate::save::{answer, beside, plainly, saved, suggestion};

/// Most names that the question lists.
const LISTED: usize = 5;

/// A file and its path within the chosen folder. Each part of the path is a name that `save` would suggest.
#[derive(Debug, PartialEq, Eq)]
struct Draft {
    path: PathBuf,
    bytes: Vec<u8>,
}

/// The kind of a path in the drafts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    File,
}

/// Asks for the folder, asks again if files exist there, and writes.
pub(crate) fn ask(app: &AppHandle, files: &RawValue, places: Arc<Places>, resolver: InvokeResolver<Wry>) {
    let drafts = match drafts(files) {
        Ok(drafts) if drafts.is_empty() => return answer(Ok(None), resolver),
        Ok(drafts) => drafts,
        Err(failure) => return resolver.reject(failure),
    };
    let dialog = app.dialog().file().set_title("Save all files to a folder");
    let dialog = match app.get_webview_window(LABEL) {
        Some(window) => dialog.set_parent(&window),
        None => dialog,
    };
    let app = app.clone();
    dialog.pick_folder(move |chosen| match chosen.map(|path| path.into_path()) {
        None => answer(Ok(None), resolver),
        Some(Err(failure)) => resolver.reject(not_saved(&failure.to_string())),
        Some(Ok(folder)) => settle(&app, folder, drafts, places, resolver),
    });
}

fn settle(app: &AppHandle, folder: PathBuf, drafts: Vec<Draft>, places: Arc<Places>, resolver: InvokeResolver<Wry>) {
    let there: Vec<&Path> =
        drafts.iter().map(|draft| draft.path.as_path()).filter(|path| is_there(&folder.join(path))).collect();
    if there.is_empty() {
        return answer(write(&folder, &drafts, false, &places).map(Some), resolver);
    }
    let buttons = MessageDialogButtons::OkCancelCustom("Replace".into(), "Cancel".into());
    let dialog = app.dialog().message(question(&there)).title("Replace files?").kind(MessageDialogKind::Warning);
    let dialog = match app.get_webview_window(LABEL) {
        Some(window) => dialog.parent(&window),
        None => dialog,
    };
    dialog.buttons(buttons).show(move |replace| {
        answer(if replace { write(&folder, &drafts, true, &places).map(Some) } else { Ok(None) }, resolver);
    });
}

fn question(there: &[&Path]) -> String {
    let mut lines: Vec<String> = there.iter().take(LISTED).map(|path| path.display().to_string()).collect();
    if there.len() > LISTED {
        lines.push(format!("and {} more", there.len() - LISTED));
    }
    let what = if there.len() == 1 { "This file is" } else { "These files are" };
    format!("{what} in the folder already:\n\n{}", lines.join("\n"))
}

fn drafts(files: &RawValue) -> Result<Vec<Draft>, CommandError> {
    let broken = || not_saved("the files did not come whole");
    let ReturnedFiles { files } = serde_json::from_str(files.get()).map_err(|_| broken())?;
    let mut taken = HashMap::new();
    let draft = |(name, base64): (String, String)| {
        let bytes = STANDARD.decode(base64).map_err(|_| broken())?;
        Ok(Draft { path: path(&name, &mut taken), bytes })
    };
    files.into_iter().map(draft).collect()
}

/// The path of a file, in the same folders. Two names of a program may become the same safe name, or differ only in
/// case, which some disks ignore: then the second gets a number. So does a file with the name of a folder, and a folder
/// with the name of a file.
fn path(name: &str, taken: &mut HashMap<String, Kind>) -> PathBuf {
    let mut parts: Vec<String> = name.split('/').map(suggestion).collect();
    let last = parts.pop().unwrap_or_default();
    let mut folder = PathBuf::new();
    let mut may_use = |key: String, kind: Kind| match taken.entry(key) {
        Entry::Occupied(held) => kind == Kind::Folder && *held.get() == Kind::Folder,
        Entry::Vacant(free) => {
            free.insert(kind);
            true
        }
    };
    for part in parts {
        folder = numbered(&folder, &part, |key| may_use(key, Kind::Folder));
    }
    numbered(&folder, &last, |key| may_use(key, Kind::File))
}

/// The first of `name`, `name (2)`, `name (3)` and so on that may be used.
fn numbered(folder: &Path, name: &str, mut may_use: impl FnMut(String) -> bool) -> PathBuf {
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => (stem, format!(".{ending}")),
        Some(_) | None => (name, String::new()),
    };
    let mut chosen = folder.join(name);
    let mut number = 2;
    while !may_use(chosen.to_string_lossy().to_lowercase()) {
        chosen = folder.join(format!("{stem} ({number}){ending}"));
        number += 1;
    }
    chosen
}

fn write(folder: &Path, drafts: &[Draft], replace: bool, places: &Places) -> Result<Saved, CommandError> {
    for (at, Draft { path, bytes }) in drafts.iter().enumerate() {
        place(folder, path, bytes, replace).map_err(|failure| {
            let before =
                if at == 0 { String::new() } else { format!(" {at} of {} files were saved before it.", drafts.len()) };
            let name = path.display();
            CommandError::new("not_saved", format!("“{name}” was not saved: {}.{before}", plainly(&failure)))
        })?;
    }
    let first = drafts.first().map(|draft| draft.path.display().to_string()).unwrap_or_default();
    Ok(saved(folder, first, drafts.len(), places))
}

/// Writes a file and the folders above it. A folder that is a link is not followed, because it leads out of the chosen
/// folder.
fn place(folder: &Path, path: &Path, bytes: &[u8], replace: bool) -> io::Result<()> {
    let mut at = folder.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        at.push(part);
        match fs::symlink_metadata(&at) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(ErrorKind::NotADirectory.into()),
            Err(failure) if failure.kind() == ErrorKind::NotFound => fs::create_dir(&at)?,
            Err(failure) => return Err(failure),
        }
    }
    beside(&folder.join(path), bytes, replace)
}

/// Whether the path exists. A link counts, whatever its target.
fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn not_saved(why: &str) -> CommandError {
    CommandError::new("not_saved", format!("The files were not saved: {why}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drafts_of(files: &[(&str, &[u8])]) -> Vec<Draft> {
        let files = files.iter().map(|(name, bytes)| ((*name).to_owned(), STANDARD.encode(bytes))).collect();
        let line = serde_json::to_string(&ReturnedFiles { files }).unwrap();
        drafts(&RawValue::from_string(line).unwrap()).unwrap()
    }

    #[test]
    fn all_files_are_written_within_the_folder_whatever_a_program_called_them() {
        let folder = tempfile::tempdir().unwrap();
        let names =
            ["plots/a.png", "../../up.txt", ".ssh/config", "a.txt", "A.txt", "x/../y.txt", "CON", "\u{202e}gnp.exe"];
        let all: Vec<(&str, &[u8])> = names.iter().map(|name| (*name, name.as_bytes())).collect();
        let drafts = drafts_of(&all);
        let saved = write(folder.path(), &drafts, false, &Places::default()).unwrap();
        assert_eq!(
            (saved.folder, saved.name, saved.count),
            (folder.path().display().to_string(), "plots/a.png".into(), 8)
        );
        let read = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap_or_else(|_| panic!("{path}"));
        for (path, name) in [
            ("plots/a.png", "plots/a.png"),
            ("file/file/up.txt", "../../up.txt"),
            ("ssh/config", ".ssh/config"),
            ("a.txt", "a.txt"),
            ("A (2).txt", "A.txt"),
            ("x/file/y.txt", "x/../y.txt"),
            ("_CON", "CON"),
            ("gnp.exe", "\u{202e}gnp.exe"),
        ] {
            assert_eq!(read(path), name);
        }
    }

    #[test]
    fn a_file_and_a_folder_of_one_harmless_name_are_both_saved() {
        let folder = tempfile::tempdir().unwrap();
        let drafts = drafts_of(&[(".a", b"1"), ("a/b", b"2"), ("A/c", b"3"), ("d/e", b"4"), ("d", b"5")]);
        write(folder.path(), &drafts, false, &Places::default()).unwrap();
        let paths: Vec<String> = drafts.iter().map(|draft| draft.path.display().to_string()).collect();
        assert_eq!(paths, ["a", "a (2)/b", "A (2)/c", "d/e", "d (2)"]);
        assert_eq!(fs::read_to_string(folder.path().join("d (2)")).unwrap(), "5");
    }

    #[test]
    fn nothing_is_replaced_unasked() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b.txt"), "mine").unwrap();
        let drafts = drafts_of(&[("a.txt", b"1"), ("b.txt", b"2")]);
        let refused = write(folder.path(), &drafts, false, &Places::default()).unwrap_err();
        assert_eq!(
            refused.message,
            "“b.txt” was not saved: a file of that name is there already. 1 of 2 files were saved before it."
        );
        assert_eq!(fs::read_to_string(folder.path().join("b.txt")).unwrap(), "mine");
        write(folder.path(), &drafts, true, &Places::default()).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("b.txt")).unwrap(), "2");
        assert_eq!(question(&[Path::new("b.txt")]), "This file is in the folder already:\n\nb.txt");
        let many: Vec<PathBuf> = (0..7).map(|n| format!("{n}").into()).collect();
        let many: Vec<&Path> = many.iter().map(PathBuf::as_path).collect();
        assert!(question(&many).ends_with("\n4\nand 2 more"));
    }

    #[test]
    #[cfg(unix)]
    fn no_link_leads_out_of_the_folder() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("plots")).unwrap();
        let refused = write(folder.path(), &drafts_of(&[("plots/a.png", b"x")]), true, &Places::default()).unwrap_err();
        assert_eq!(refused.message, "“plots/a.png” was not saved: a file is in the place of its folder.");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }
}
