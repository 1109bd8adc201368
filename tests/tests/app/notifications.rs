//! What the app tells the desktop's service for notifications.

use std::time::Instant;

use sandtray_core::settings::Settings;
use sandtray_tests::desktop::Desktop;
use sandtray_tests::desktop::screen::{Screen, close_windows};
use sandtray_tests::rig::{PATIENCE, eventually};
use serde_json::json;

use crate::told;

#[tokio::test(flavor = "multi_thread")]
async fn a_new_client_and_a_run_killed_by_a_limit_are_told_once() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    agent.call("hello", json!({ "name": "a <b>robot</b>" })).await.expect("hello");
    for _ in 0..2 {
        let mut params = told("shell", "sleep 100");
        params["limits"] = json!({ "seconds": 0.5 });
        assert_eq!(agent.run(params).await["status"], "timeout");
    }
    let body = desktop.notifications.until("Program stopped at a limit").await;
    assert_eq!(body, "Shell for a &lt;b&gt;robot&lt;/b&gt; took longer than it may.");
    let body = desktop.notifications.until("A new client runs code").await;
    assert!(body.starts_with("a &lt;b&gt;robot"), "{body}");
    assert_eq!(desktop.notifications.told().len(), 2, "{:?}", desktop.notifications.told());
    tray.press("Quit").await;
    app.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_who_wants_none_gets_none() {
    let desktop = Desktop::with(Settings { enabled: true, notifications: false, ..Settings::default() }).await;
    let app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    let mut params = told("shell", "sleep 100");
    params["limits"] = json!({ "seconds": 0.2 });
    assert_eq!(agent.run(params).await["status"], "timeout");
    // The app has seen the end when its tray has.
    tray.press("Quit").await;
    app.ended().await;
    assert_eq!(desktop.notifications.told(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_told_while_the_window_is_in_front() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    let screen = Screen::open(&desktop.framebuffer()).expect("a picture of the screen");
    tray.press("Open Sandtray").await;
    let painted = tokio::task::spawn_blocking(move || screen.watch(Instant::now(), PATIENCE)).await.expect("no panic");
    assert!(painted.expect("a picture of the screen").is_some(), "the window has nothing in it");
    let mut agent = desktop.agent().await;
    let limited = |language, code| {
        let mut params = told(language, code);
        params["limits"] = json!({ "seconds": 0.3 });
        params
    };
    // A new client's, and one that its limit ends: both would be told.
    assert_eq!(agent.run(limited("python", "while True: pass")).await["status"], "timeout");
    close_windows(desktop.display()).expect("a screen");
    eventually("nothing of the window is left", || async { app.descendants().is_empty() }).await;
    assert_eq!(agent.run(limited("shell", "sleep 100")).await["status"], "timeout");
    let body = desktop.notifications.until("Program stopped at a limit").await;
    assert!(body.starts_with("Shell for "), "{body}");
    assert_eq!(desktop.notifications.told().len(), 1, "{:?}", desktop.notifications.told());
    tray.press("Quit").await;
    app.ended().await;
}
