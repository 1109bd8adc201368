//! The app's own life: its window comes and goes, a second start, a restart, a crash, and a service that is elsewhere.

use std::time::Instant;

use sandtray_core::settings::Settings;
use sandtray_tests::desktop::Desktop;
use sandtray_tests::desktop::driver::Window;
use sandtray_tests::desktop::screen::{Screen, close_windows};
use sandtray_tests::rig::{PATIENCE, eventually, serving_process};
use serde_json::json;

use crate::told;

#[tokio::test(flavor = "multi_thread")]
async fn without_a_window_no_webview_lives_and_a_second_start_opens_it() {
    let desktop = Desktop::used().await;
    let app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Off").await;
    assert!(app.descendants().is_empty(), "{:?}", app.descendants());
    // A second start at login ends by itself and opens nothing; one by hand opens the first one's window.
    desktop.app().await.ended().await;
    assert!(app.descendants().is_empty(), "{:?}", app.descendants());
    desktop.by_hand().await.ended().await;
    eventually("the window opens", || async { app.has_webview() }).await;
    tray.press("Quit").await;
    app.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_window_leaves_no_process_behind_and_opens_again() {
    let desktop = Desktop::used().await;
    desktop.knows_of_closing();
    let app = desktop.app().await;
    let tray = desktop.tray().await;
    for _ in 0..2 {
        let screen = Screen::open(&desktop.framebuffer()).expect("a picture of the screen");
        tray.press("Open Sandtray").await;
        let watching = tokio::task::spawn_blocking(move || screen.watch(Instant::now(), PATIENCE));
        let painted = watching.await.expect("no panic").expect("a picture of the screen");
        assert!(painted.is_some(), "the window has nothing in it");
        assert!(app.has_webview());
        assert_eq!(close_windows(desktop.display()).expect("a screen"), 1);
        eventually("nothing of the window is left", || async { app.descendants().is_empty() }).await;
    }
    tray.press("Quit").await;
    app.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_from_the_window_hold_at_once_and_after_a_restart() {
    let desktop = Desktop::start().await;
    let window = Window::of(&desktop).await;
    let tray = desktop.tray().await;
    let mut settings = window.invoke("settings", json!({})).await.expect("settings");
    assert_eq!(settings["enabled"], false);
    settings["limits"]["seconds"] = json!(0.01);
    let refused = window.invoke("apply_settings", json!({ "settings": settings })).await.expect_err("out of bounds");
    assert_eq!((&refused["code"], &refused["field"]), (&json!("invalid_settings"), &json!("limits.seconds")));
    settings["limits"]["seconds"] = json!(0.5);
    settings["theme"] = json!("dark");
    settings["enabled"] = json!(true);
    let applied = window.invoke("apply_settings", json!({ "settings": settings })).await.expect("settings that hold");
    assert_eq!(applied, settings);
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    assert_eq!(agent.run(told("shell", "sleep 100")).await["status"], "timeout");
    tray.press("Quit").await;
    eventually("it has gone", || async { !tray.lives().await }).await;

    let app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    assert_eq!(desktop.settings().limits.seconds, 0.5);
    let mut agent = desktop.agent().await;
    assert_eq!(agent.run(told("shell", "sleep 100")).await["status"], "timeout");
    tray.press("Quit").await;
    app.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_the_next_start_sweeps_and_works() {
    let desktop = Desktop::with(Settings { enabled: true, warm: 0, ..Settings::default() }).await;
    let mut app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    agent.send("code.run", told("shell", "while :; do sleep 1; done")).await;
    agent.notification("code.started").await;
    eventually("the run's container is the only one", || async { desktop.containers().await == 1 }).await;
    app.child.kill().await.expect("a kill");
    assert_eq!(desktop.containers().await, 1);

    let app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    eventually("what was left is swept", || async { desktop.containers().await == 0 }).await;
    let mut agent = desktop.agent().await;
    assert_eq!(agent.run(told("shell", "echo hi")).await["stdout"], "hi\n");
    tray.press("Quit").await;
    app.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_elsewhere_is_said_and_taken_over_when_it_has_gone() {
    let desktop = Desktop::used().await;
    let mut service = serving_process(desktop.home()).kill_on_drop(true).spawn().expect("sandtray serve");
    let _ = desktop.agent().await;
    let window = Window::of(&desktop).await;
    let tray = desktop.tray().await;
    tray.until("Sandtray runs in another program").await;
    let switch =
        tray.entries().await.into_iter().find(|entry| entry.label == "Run code in isolation").expect("a switch");
    assert_eq!((switch.enabled, switch.checked), (false, Some(false)));
    let refused = window.invoke("set_enabled", json!({ "enabled": true })).await.expect_err("it is not ours to turn");
    assert_eq!(refused["code"], "elsewhere");
    // Neither the tray's Retry nor the window's takes the place from a program that is there.
    tray.press("Retry").await;
    window.invoke("retry_engine", json!({})).await.expect("one more try");
    tray.until("Sandtray runs in another program").await;
    window.until("When it ends, this app takes over by itself.").await;
    service.kill().await.expect("a kill");
    // By itself.
    tray.until("Off").await;
    tray.until_gone("Retry").await;
    window.until("The program that ran Sandtray before has ended. This app runs it now.").await;
    let mut agent = desktop.agent().await;
    agent.call("hello", json!({ "name": "a robot" })).await.expect("an answer of the app's");
    tray.press("Quit").await;
    eventually("it has gone", || async { !tray.lives().await }).await;
}
