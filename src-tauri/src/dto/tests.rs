//! Writes anew what the window has of this side, and fails where that changed anything, so a forgotten change is committed with
//! its cause: the types, and for the window's own tests and pictures, what the app really says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sandtray_core::disk::SetAside;
use sandtray_core::engine::{Endpoint, EngineTrouble, PullError, Unfit};
use sandtray_core::error::RunError;
use sandtray_core::event::{ImageState, ImageStatus};
use sandtray_core::history::{Stats, Trouble, Why};
use sandtray_core::instance::InstanceError;
use sandtray_core::language::Language;
use sandtray_core::service::StartError;
use sandtray_core::settings::Settings;
use serde_json::{Value, json};
use ts_rs::{Config, TS};

use super::agents::{AgentView, TryEvent};
use super::error::CommandError;
use super::history::{FileSide, HistoryFilter, HistoryPage, RecentRun, RunRecord};
use super::live::{LiveEvent, LiveRequest};
use super::picture::PictureView;
use super::present;
use super::saved::Saved;
use super::snapshot::{EngineView, HistoryTroubleView, ImageView, Navigate, WindowEvent};
use super::trouble::Link;
use crate::host;
use crate::notify::notice::NoticeKind;
use crate::remedy::{
    self,
    system::{Family, System},
};

#[test]
fn the_windows_types_are_those_of_the_app() {
    let fresh = tempfile::tempdir().unwrap();
    let config = Config::new().with_large_int("number").with_out_dir(fresh.path());
    AgentView::export_all(&config).unwrap();
    CommandError::export_all(&config).unwrap();
    FileSide::export_all(&config).unwrap();
    HistoryFilter::export_all(&config).unwrap();
    HistoryPage::export_all(&config).unwrap();
    Stats::export_all(&config).unwrap();
    LiveEvent::export_all(&config).unwrap();
    LiveRequest::export_all(&config).unwrap();
    Link::export_all(&config).unwrap();
    Navigate::export_all(&config).unwrap();
    NoticeKind::export_all(&config).unwrap();
    PictureView::export_all(&config).unwrap();
    RecentRun::export_all(&config).unwrap();
    RunRecord::export_all(&config).unwrap();
    Saved::export_all(&config).unwrap();
    Settings::export_all(&config).unwrap();
    TryEvent::export_all(&config).unwrap();
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

/// What each setting is until the owner changes it.
#[test]
fn the_window_knows_the_defaults() {
    let committed: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../ui/src/lib/ipc/generated/defaults.json"].iter().collect();
    let images: BTreeMap<Language, &str> =
        Language::ALL.iter().map(|language| (*language, language.recipe().default_image)).collect();
    let new = format!("{:#}\n", json!({ "settings": Settings::default(), "images": images }));
    if fs::read_to_string(&committed).unwrap_or_default() != new {
        fs::write(&committed, new).unwrap();
        panic!("{} was out of date; it is written anew: commit it", committed.display());
    }
}

#[test]
fn the_windows_pictures_say_what_the_app_says() {
    let committed: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../ui/screenshots/said.json"].iter().collect();
    let new = format!("{:#}\n", said());
    if fs::read_to_string(&committed).unwrap_or_default() != new {
        fs::write(&committed, new).unwrap();
        panic!("{} was out of date; it is written anew: commit it", committed.display());
    }
}

fn said() -> Value {
    let endpoint = Endpoint { url: "unix:///var/run/docker.sock".into(), found: "the default socket".into() };
    let looked_at = ["unix:///var/run/docker.sock", "unix:///run/user/1000/docker.sock"].map(str::to_owned).to_vec();
    // Not of the system that the test runs on.
    let system = System { family: Family::Debian, systemd: true };
    let trouble = |trouble| EngineView::Trouble(remedy::view(&trouble, system));
    let named = |url: &str, found: &str| Endpoint { url: url.into(), found: found.into() };
    let running = StartError::Instance(InstanceError::AlreadyRunning { holder: Some(4711) });
    let aside = SetAside {
        what: "history",
        kept_as: "/home/ada/.local/share/sandtray/history.sqlite.damaged-20260312T150000Z".into(),
        reason: "it is not a database".into(),
    };
    json!({
        "settings": Settings::default(),
        "images": Language::ALL.map(|language| image(language, ImageState::NotPulled)),
        "pull_failed": image(Language::Javascript, ImageState::Failed { error: PullError::NoNetwork }),
        "absent": trouble(EngineTrouble::Absent { looked_at }),
        "not_running": trouble(EngineTrouble::NotRunning { endpoint: endpoint.clone() }),
        "permission_denied": trouble(EngineTrouble::PermissionDenied { endpoint: endpoint.clone() }),
        "not_answering": trouble(EngineTrouble::NotAnswering { endpoint: endpoint.clone() }),
        "wrong_address": trouble(EngineTrouble::NotRunning {
            endpoint: named("unix:///run/docker/old.sock", "Sandtray's settings"),
        }),
        "over_ssh": trouble(EngineTrouble::Unusable {
            endpoint: named("ssh://ada@lab", "DOCKER_HOST"),
            unfit: Unfit::Ssh,
            reason: "Sandtray doesn't connect over SSH by itself".into(),
        }),
        "too_old": trouble(EngineTrouble::Unusable {
            endpoint: endpoint.clone(),
            unfit: Unfit::TooOld,
            reason: "it is too old: it speaks version 1.38 of Docker's API, and 1.40 is needed".into(),
        }),
        "wall_missing": trouble(EngineTrouble::WallMissing {
            endpoint,
            image: "python:3.12-slim".into(),
            wall: "the limit on processes is not kept".into(),
        }),
        "switched_off": CommandError::from(RunError::Off),
        "elsewhere": host::state_of(&running),
        "set_aside": aside.to_string(),
        "disk_full": history_trouble(12, 40, false),
        "given_up": history_trouble(0, 40, true),
        "not_again": crate::commands::history::GIVEN_UP,
    })
}

fn history_trouble(unrecorded: u64, given_up: u64, records: bool) -> HistoryTroubleView {
    let since = SystemTime::UNIX_EPOCH;
    present::history_trouble(&Trouble { why: Why::DiskFull, since, unrecorded, given_up, records })
}

fn image(language: Language, state: ImageState) -> ImageView {
    let image = language.recipe().default_image.to_owned();
    present::image(&ImageStatus { language, image, state, wall_missing: None, launcher: None }, 0.0)
}
