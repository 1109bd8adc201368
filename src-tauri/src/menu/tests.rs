//! Whole menus, as a person reads them.

use super::*;
use crate::dto::present;
use crate::dto::snapshot::{EndpointView, EngineFacts, ImageView};
use crate::host::blank;
use sandtray_core::engine::{Endpoint, EngineState, EngineTrouble, Unfit};
use sandtray_core::language::Language;

const NOW: u64 = 1_000_000;

fn endpoint() -> EndpointView {
    EndpointView { url: "unix:///var/run/docker.sock".into(), found: "the default socket".into() }
}

fn here(enabled: bool) -> OwnerSnapshot {
    let engine = EngineView::Ready(EngineFacts {
        name: "Docker".into(),
        version: "27.3".into(),
        api_version: "1.47".into(),
        endpoint: endpoint(),
        os: "linux".into(),
        arch: "amd64".into(),
        cpus: 2,
        memory_bytes: 1,
    });
    OwnerSnapshot { service: ServiceView::Here, enabled, engine, ..blank() }
}

/// The snapshot as the app would show it.
fn trouble(trouble: EngineTrouble) -> OwnerSnapshot {
    OwnerSnapshot { engine: present::engine(&EngineState::Trouble(trouble)), ..here(true) }
}

fn run(id: &str, client: &str, seconds: u64) -> LiveRunView {
    LiveRunView {
        run_id: id.into(),
        language: Language::Python,
        client: client.into(),
        program: Some("node".into()),
        label: None,
        title: None,
        started_ms: NOW - seconds * 1000,
        limit_seconds: 60.0,
        waiting: None,
    }
}

fn waiting(id: &str, waiting: Waiting) -> LiveRunView {
    LiveRunView { waiting: Some(waiting), ..run(id, "claude", 1) }
}

/// A menu as lines: what can be chosen stands in brackets.
fn read(snapshot: &OwnerSnapshot) -> Vec<String> {
    let line = |item| match item {
        Item::Words(text) => text,
        Item::Action { text, .. } => format!("[{text}]"),
        Item::Switch { on, works } => {
            format!("[{}] {SWITCH}{}", if on { "x" } else { " " }, if works { "" } else { " (cannot)" })
        }
        Item::Separator => "---".into(),
    };
    menu(snapshot, NOW).into_iter().map(line).collect()
}

const END: [&str; 4] = ["---", "[Open Sandtray]", "[Settings]", "[Quit]"];

fn assert_menu(snapshot: &OwnerSnapshot, lines: &[&str]) {
    let expected: Vec<&str> = lines.iter().chain(&END).copied().collect();
    assert_eq!(read(snapshot), expected);
}

#[test]
fn off_and_ready() {
    assert_menu(&here(false), &["Off: agents cannot run code", "[ ] Run code in isolation"]);
    assert_menu(&here(true), &["Ready", "[x] Run code in isolation"]);
    assert_eq!((icon(&here(false)), icon(&here(true))), (Icon::Off, Icon::Ready));
}

#[test]
fn the_turned_on_entry_stays_until_it_is_seen_in_the_window() {
    let unseen = OwnerSnapshot { turned_on_ms: Some(NOW), ..here(true) };
    assert_menu(&unseen, &["Ready", "[x] Run code in isolation", "[It was turned on: see when]"]);
    let opens = Item::Action { does: Action::Open(Some(Page::Overview)), text: TURNED_ON.into() };
    assert_eq!(menu(&unseen, NOW)[2], opens);
    // It was turned off again meanwhile, but it had been on.
    let off = OwnerSnapshot { enabled: false, ..unseen };
    assert_menu(&off, &["Off: agents cannot run code", "[ ] Run code in isolation", "[It was turned on: see when]"]);
}

#[test]
fn what_runs_is_named_and_can_be_stopped() {
    let snapshot = OwnerSnapshot {
        running: vec![run("1", "claude", 12), run("2", "a\nlong\u{202e}name that never seems to come to its end", 75)],
        queued: vec![run("3", "claude", 1)],
        ..here(true)
    };
    assert_menu(
        &snapshot,
        &[
            "2 running, 1 waiting",
            "[x] Run code in isolation",
            "---",
            "[Python for claude (the program node), 12 s]",
            "[Python for a longname that never seems to … (the program node), 1 min 15 s]",
            "[1 waiting]",
            "[Stop all]",
        ],
    );
    assert_eq!(icon(&snapshot), Icon::Running);
    let opens =
        Item::Action { does: Action::OpenRun("1".into()), text: "Python for claude (the program node), 12 s".into() };
    assert_eq!(menu(&snapshot, NOW)[3], opens);
}

#[test]
fn what_waits_says_for_what_and_says_it_once() {
    let pull = Waiting::Pull { fraction: 0.469, downloaded_bytes: 1, total_bytes: 2 };
    let state = ImageStateView::Pulling { fraction: 0.469, downloaded_bytes: 1, total_bytes: 2, bytes_per_second: 0.0 };
    let images = vec![ImageView {
        language: Language::Python,
        title: "Python".into(),
        language_version: String::new(),
        image: String::new(),
        pinned: false,
        fetched: false,
        state,
    }];
    let queued = vec![waiting("1", pull), waiting("2", pull)];
    assert_menu(
        &OwnerSnapshot { queued, images, ..here(true) },
        &["Fetching Python: 46 %, 2 waiting", "[x] Run code in isolation", "---", "[2 waiting]", "[Stop all]"],
    );
    let one = |what| words(&OwnerSnapshot { queued: vec![waiting("1", what)], ..here(true) });
    assert_eq!(one(Waiting::Preparation), "Preparing Python");
    assert_eq!(one(Waiting::Check), "Checking Python");
    assert_eq!(one(Waiting::Engine), "Waiting for Docker");
    assert_eq!(one(Waiting::Unread), "Waiting for its client to read");
    assert_eq!(one(Waiting::Turn { ahead: 0 }), "1 waiting");
}

#[test]
fn a_run_without_a_container_yet_is_starting() {
    let starting = OwnerSnapshot { running: vec![waiting("1", Waiting::Starting)], ..here(true) };
    let lines = [
        "1 starting",
        "[x] Run code in isolation",
        "---",
        "[Python for claude (the program node), starting]",
        "[Stop all]",
    ];
    assert_menu(&starting, &lines);
    let both = OwnerSnapshot { running: vec![waiting("1", Waiting::Starting), run("2", "claude", 3)], ..here(true) };
    assert_eq!(words(&both), "2 running");
}

#[test]
fn a_crowd_is_counted() {
    let running = (0..11).map(|run| self::run(&run.to_string(), "x", 0)).collect();
    let lines = read(&OwnerSnapshot { running, ..here(true) });
    assert_eq!(
        lines.iter().filter(|line| line.as_str() == "[Python for x (the program node), 0 s]").count(),
        SHOWN_RUNS
    );
    assert!(lines.contains(&"[3 more]".to_owned()), "{lines:?}");
}

#[test]
fn pulls_show_how_far_they_are() {
    let row = |title: &str, state| ImageView {
        language: Language::Python,
        title: title.into(),
        language_version: String::new(),
        image: String::new(),
        pinned: false,
        fetched: false,
        state,
    };
    let pulling =
        |fraction| ImageStateView::Pulling { fraction, downloaded_bytes: 0, total_bytes: 0, bytes_per_second: 0.0 };
    let images = vec![
        row("Python", pulling(0.619)),
        row("Shell", ImageStateView::NotPulled),
        row("Rust", pulling(0.0)),
        row("Go", ImageStateView::Preparing),
    ];
    assert_menu(
        &OwnerSnapshot { images, ..here(true) },
        &["Ready", "[x] Run code in isolation", "---", "Fetching Python: 61 %", "Fetching Rust: 0 %", "Preparing Go"],
    );
}

#[test]
fn trouble_is_said_in_a_few_words() {
    let at = |url: &str| Endpoint { url: url.into(), found: "the default socket".into() };
    let endpoint = at("unix:///var/run/docker.sock");
    let (reason, wall) = (String::from("its API is 1.38: too old."), "no network".into());
    let unusable = |unfit, endpoint: Endpoint| EngineTrouble::Unusable { endpoint, unfit, reason: reason.clone() };
    for (which, words) in [
        (EngineTrouble::Absent { looked_at: vec![endpoint.url.clone()] }, "On, but Docker isn't installed"),
        (EngineTrouble::NotRunning { endpoint: endpoint.clone() }, "On, but Docker isn't running"),
        (EngineTrouble::PermissionDenied { endpoint: endpoint.clone() }, "On, but Docker isn't open to you"),
        (EngineTrouble::NotAnswering { endpoint: endpoint.clone() }, "On, but Docker isn't answering"),
        (EngineTrouble::NotAnswering { endpoint: at("tcp://127.0.0.1:2375") }, "On, but Docker isn't answering"),
        (unusable(Unfit::TooOld, endpoint.clone()), "On, but Docker is too old"),
        (unusable(Unfit::Ssh, at("ssh://me@host")), "On, but Docker can't be reached over SSH"),
        (unusable(Unfit::Elsewhere, at("tcp://10.0.0.1:2375")), "On, but Docker is on another computer"),
        (
            EngineTrouble::WallMissing { endpoint, image: "python".into(), wall },
            "On, but Docker doesn't hold every wall",
        ),
        (
            EngineTrouble::NotRunning { endpoint: at("unix:///run/user/1000/podman/podman.sock") },
            "On, but Podman isn't running",
        ),
    ] {
        let lost = trouble(which);
        assert_menu(&lost, &[words, "[x] Run code in isolation"]);
        assert_eq!(icon(&lost), Icon::Trouble);
        // An owner who has turned it off does not need this.
        assert_eq!(icon(&OwnerSnapshot { enabled: false, ..lost }), Icon::Off);
    }
}

#[test]
fn without_a_service_of_its_own_the_switch_cannot_be_turned() {
    let state = |service| OwnerSnapshot { service, ..here(true) };
    let (message, hint) = (String::new(), String::new());
    for (service, words, icon) in [
        (ServiceView::Starting, "Starting", Icon::Off),
        (
            ServiceView::Elsewhere { message: message.clone(), hint: hint.clone() },
            "Sandtray runs in another program",
            Icon::Trouble,
        ),
        (ServiceView::Failed { message, hint }, "Sandtray couldn't start", Icon::Trouble),
    ] {
        let mut lines = vec![words, "[ ] Run code in isolation (cannot)"];
        lines.extend(&END[..1]);
        if service != ServiceView::Starting {
            lines.push("[Retry]");
        }
        lines.extend(&END[1..]);
        assert_eq!(read(&state(service.clone())), lines);
        assert_eq!(super::icon(&state(service)), icon);
    }
}
