//! The folders in which files were saved, for the owner to open. The page names them by number, so it opens no others.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sandtray_app::dto::error::CommandError;
use tauri::AppHandle;
use tauri::ipc::InvokeResolver;

/// Folders remembered. The page shows three messages at most.
const MOST: usize = 16;

#[derive(Default)]
pub(crate) struct Places(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    last: u32,
    folders: VecDeque<(u32, PathBuf)>,
}

impl Places {
    /// Remembers a folder and returns its number. None if this system cannot show folders.
    pub(crate) fn keep(&self, folder: &Path) -> Option<u32> {
        if !CAN_OPEN {
            return None;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.last += 1;
        let number = kept.last;
        if kept.folders.len() == MOST {
            kept.folders.pop_front();
        }
        kept.folders.push_back((number, folder.to_owned()));
        Some(number)
    }

    fn folder(&self, number: u64) -> Option<PathBuf> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.folders.iter().find(|(other, _)| u64::from(*other) == number).map(|(_, folder)| folder.clone())
    }

    pub(crate) fn open(&self, app: &AppHandle, number: Option<u64>, resolver: InvokeResolver<tauri::Wry>) {
        let Some(folder) = number.and_then(|number| self.folder(number)) else {
            return resolver.reject(not_opened("it is not known any more"));
        };
        // GTK may only be called on the main thread.
        let shown = app.run_on_main_thread(move || match show(&folder) {
            Ok(()) => resolver.resolve(()),
            Err(why) => resolver.reject(not_opened(&why)),
        });
        if let Err(failure) = shown {
            tracing::warn!(%failure, "the window ends");
        }
    }
}

fn not_opened(why: &str) -> CommandError {
    CommandError::new("not_opened", format!("The folder was not opened: {why}."))
}

#[cfg(target_os = "linux")]
const CAN_OPEN: bool = true;

/// Shows a folder in the desktop's file manager.
#[cfg(target_os = "linux")]
fn show(folder: &Path) -> Result<(), String> {
    let no_program = |_| "no program for folders was found".to_owned();
    let address = gtk::glib::filename_to_uri(folder, None).map_err(no_program)?;
    gtk::show_uri_on_window(None::<&gtk::Window>, &address, gtk::gdk::ffi::GDK_CURRENT_TIME as u32).map_err(no_program)
}

#[cfg(not(target_os = "linux"))]
const CAN_OPEN: bool = false;

#[cfg(not(target_os = "linux"))]
fn show(_: &Path) -> Result<(), String> {
    Err("this system has no way for it".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_latest_folders_are_known_by_their_numbers() {
        let places = Places::default();
        let numbers: Vec<u32> = (0..=MOST).map(|n| places.keep(Path::new(&format!("/folder/{n}"))).unwrap()).collect();
        assert_eq!(places.folder(numbers[0].into()), None, "forgotten");
        assert_eq!(places.folder(numbers[1].into()), Some("/folder/1".into()));
        assert_eq!(places.folder(numbers[MOST].into()), Some(format!("/folder/{MOST}").into()));
        assert_eq!(places.folder(0), None);
    }
}
