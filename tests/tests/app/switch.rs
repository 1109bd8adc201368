//! The switch in the tray, a run that comes in live, and both ways to end it.

use sandtray_core::settings::Settings;
use sandtray_tests::desktop::Desktop;
use sandtray_tests::desktop::driver::Window;
use sandtray_tests::rig::eventually;
use serde_json::json;

use crate::told;

const SLOW: &str = "echo first words; while :; do sleep 0.2; echo more words; done";

#[tokio::test(flavor = "multi_thread")]
async fn turned_on_from_the_tray_a_run_comes_in_live_and_stop_ends_it() {
    let desktop = Desktop::start().await;
    let window = Window::of(&desktop).await;
    let tray = desktop.tray().await;
    assert!(!desktop.settings().enabled);
    tray.until("Off").await;
    // So that every container there is belongs to a run.
    let mut settings = window.invoke("settings", json!({})).await.expect("settings");
    settings["warm"] = json!(0);
    window.invoke("apply_settings", json!({ "settings": settings })).await.expect("no container ahead of its call");
    tray.press("Run code in isolation").await;
    tray.until("Ready").await;
    window.until("Ready").await;
    assert!(desktop.settings().enabled);

    let mut agent = desktop.agent().await;
    agent.call("hello", json!({ "name": "a_robot & co" })).await.expect("hello");
    let run = agent.send("code.run", told("shell", SLOW)).await;
    agent.notification("code.started").await;
    tray.until("Shell for a_robot & co").await;
    eventually("the run's container is the only one", || async { desktop.containers().await == 1 }).await;

    // A click on the run in the tray leads to its page.
    tray.press("Shell for a_robot & co").await;
    window.until("first words").await;
    window.until("more words").await;
    window.click("button[aria-label^='Stop ']").await;
    assert_eq!(agent.reply(run).await.expect("a result")["status"], "cancelled");
    eventually("no container is left", || async { desktop.containers().await == 0 }).await;
    tray.until_gone("Shell for").await;
    window.until("a_robot & co").await;
    tray.press("Quit").await;
    eventually("it has gone", || async { !tray.lives().await }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn turned_off_from_the_tray_it_kills_what_runs_and_refuses_what_comes() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    let run = agent.send("code.run", told("shell", SLOW)).await;
    agent.notification("code.started").await;
    tray.until("1 running").await;
    tray.press("Run code in isolation").await;
    assert_eq!(agent.reply(run).await.expect("a result")["status"], "cancelled");
    tray.until("Off").await;
    eventually("no container is left", || async { desktop.containers().await == 0 }).await;
    let refusal = agent.call("code.run", told("shell", "echo hi")).await.expect_err("it is off");
    assert_eq!(refusal["data"]["code"], "capability_off");
    assert!(!desktop.settings().enabled);
    tray.press("Quit").await;
    app.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quit_ends_what_runs_and_leaves_no_container() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    let run = agent.send("code.run", told("shell", SLOW)).await;
    agent.notification("code.started").await;
    tray.press("Quit").await;
    assert_eq!(agent.reply(run).await.expect("a result")["status"], "cancelled");
    app.ended().await;
    assert_eq!(desktop.containers().await, 0);
}
