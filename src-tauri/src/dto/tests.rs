//! Writes the declarations anew and fails where that changed anything, so a forgotten change is committed with its cause.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sandtray_core::settings::Settings;
use ts_rs::{Config, TS};

use super::error::CommandError;
use super::history::{HistoryFilter, HistoryPage, HistoryStats, RecentRun, RunRecord};
use super::live::LiveEvent;
use super::snapshot::{Navigate, WindowEvent};

#[test]
fn the_windows_types_are_those_of_the_app() {
    let fresh = tempfile::tempdir().unwrap();
    let config = Config::new().with_large_int("number").with_out_dir(fresh.path());
    CommandError::export_all(&config).unwrap();
    HistoryFilter::export_all(&config).unwrap();
    HistoryPage::export_all(&config).unwrap();
    HistoryStats::export_all(&config).unwrap();
    LiveEvent::export_all(&config).unwrap();
    Navigate::export_all(&config).unwrap();
    RecentRun::export_all(&config).unwrap();
    RunRecord::export_all(&config).unwrap();
    Settings::export_all(&config).unwrap();
    WindowEvent::export_all(&config).unwrap();

    let committed: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../ui/src/lib/ipc/generated"].iter().collect();
    let (new, old) = (declarations(fresh.path()), declarations(&committed));
    if new != old {
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            fs::remove_file(committed.join(name)).unwrap();
        }
        for (name, text) in &new {
            fs::write(committed.join(name), text).unwrap();
        }
        panic!("the types in {} were out of date; they are written anew: commit them", committed.display());
    }
}

fn declarations(folder: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "ts"))
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap()))
        .collect()
}
