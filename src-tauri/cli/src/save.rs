//! Saves the files that a program returned under a folder of the owner's choice. Names and contents are untrusted.
//! Nothing is written outside the folder, no symbolic link below it is followed, no existing file is replaced without
//! `--force`, and no hidden name is made, since tools obey such files (`.git/config`, `.envrc`, `.vscode/tasks.json`).

use std::fmt;
use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sandtray_core::name::FileName;
use sandtray_core::text::is_hidden;
use serde_json::Value;
use uuid::Uuid;

use crate::failure::Failure;
use crate::format::count;

#[cfg_attr(unix, path = "save/unix.rs")]
#[cfg_attr(not(unix), path = "save/windows.rs")]
mod place;

/// How to treat a file that already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    Keep,
    /// The name gets a new file in one step; the old file or link target is not written to.
    Replace,
}

#[derive(Debug, Default)]
pub(crate) struct Saved {
    pub(crate) number: usize,
    pub(crate) refused: Vec<Refused>,
}

/// A file that was not saved.
#[derive(Debug)]
pub(crate) struct Refused {
    name: String,
    why: Why,
}

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error("its name is hidden, or in a hidden folder")]
    Hidden,
    #[error("its name {0}")]
    Name(#[from] sandtray_core::name::NameFault),
    #[error("its content can't be read")]
    Content,
    #[error("there is a file of that name")]
    Exists,
    #[error("{0}")]
    Disk(io::Error),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was not saved: {}.", self.name, self.why)
    }
}

impl Saved {
    /// None if all were saved.
    pub(crate) fn failure(&self, folder: &Path) -> Option<Failure> {
        if self.refused.is_empty() {
            return None;
        }
        let (refused, all) = (self.refused.len(), count(self.number + self.refused.len(), "file"));
        let message = format!("{refused} of {all} could not be saved under {}.", folder.display());
        let has = |why: fn(&Why) -> bool| self.refused.iter().any(|refused| why(&refused.why));
        Some(if has(|why| matches!(why, Why::Exists)) {
            Failure::with_hint(message, "`--force` replaces files that are there; another folder keeps both.")
        } else if has(|why| matches!(why, Why::Hidden)) {
            Failure::with_hint(message, "`--json` prints what every file holds, whatever its name.")
        } else {
            Failure::new(message)
        })
    }
}

/// Saves the files of a reply, each whole or not at all. Fails if the folder cannot be made.
pub(crate) fn save(files: &Value, folder: &Path, existing: Existing) -> Result<Saved, Failure> {
    let mut saved = Saved::default();
    let Some(files) = files.as_object().filter(|files| !files.is_empty()) else { return Ok(saved) };
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::new(format!("The folder {} can't be made: {error}.", folder.display())))?;
    for (name, content) in files {
        match save_one(name, content, folder, existing) {
            Ok(()) => saved.number += 1,
            Err(why) => saved.refused.push(Refused { name: name.clone(), why }),
        }
    }
    Ok(saved)
}

fn save_one(name: &str, content: &Value, folder: &Path, existing: Existing) -> Result<(), Why> {
    let parsed = FileName::parse(name)?;
    if name.split('/').any(is_hidden_component) {
        return Err(Why::Hidden);
    }
    let bytes = bytes(content).ok_or(Why::Content)?;
    place::write(folder, &parsed, &bytes, existing).map_err(|error| {
        let exists = error.kind() == io::ErrorKind::AlreadyExists;
        if exists { Why::Exists } else { Why::Disk(error) }
    })
}

/// Whether a name is hidden, which a leading dot does. Some file systems ignore invisible characters, and so would
/// treat a name with them as `.git`.
fn is_hidden_component(component: &str) -> bool {
    component.chars().find(|c| !is_hidden(*c)) == Some('.')
}

fn bytes(content: &Value) -> Option<Vec<u8>> {
    match content.as_str() {
        Some(text) => Some(text.as_bytes().to_vec()),
        None => STANDARD.decode(content["base64"].as_str()?).ok(),
    }
}

/// The file's own name, without its folders.
fn last(name: &FileName) -> &str {
    name.as_str().rsplit('/').next().unwrap_or(name.as_str())
}

/// A temporary name for a file before its rename. A program cannot guess it, and no returned file is hidden.
fn draft() -> String {
    format!(".sandtray-{}.part", Uuid::new_v4().simple())
}

#[cfg(all(test, unix))]
mod tests;
