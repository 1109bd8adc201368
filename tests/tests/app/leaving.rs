//! Leaving and coming back: what the first close says, quitting from the window, and which start shows a window.

use sandtray_core::paths::Paths;
use sandtray_core::settings::Settings;
use sandtray_tests::desktop::Desktop;
use sandtray_tests::desktop::driver::Window;
use sandtray_tests::desktop::screen::close_windows;
use sandtray_tests::rig::eventually;
use serde_json::json;

use crate::told;

const STAYS: &str = "Sandtray stays in the tray";

async fn close(desktop: &Desktop) {
    eventually("a window closes", || async { close_windows(desktop.display()).expect("a screen") > 0 }).await;
}

fn times_told(desktop: &Desktop) -> usize {
    desktop.notifications.told().iter().filter(|(summary, _)| summary == STAYS).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_close_ever_says_where_sandtray_stays_and_no_other() {
    // This notification answers an act of the owner, so it is shown with notifications off too.
    let desktop = Desktop::with(Settings { notifications: false, ..Settings::default() }).await;
    let app = desktop.by_hand().await;
    let tray = desktop.tray().await;
    eventually("the window opens at a start by hand", || async { app.has_webview() }).await;
    close(&desktop).await;
    eventually("the window closes", || async { app.descendants().is_empty() }).await;
    let body = desktop.notifications.until(STAYS).await;
    assert!(body.contains("Its icon in the tray opens the window again"), "{body}");
    let known = Paths::under(desktop.home()).told_of_closing_file();
    eventually("that is kept", || async { known.exists() }).await;
    tray.press("Open Sandtray").await;
    eventually("the window opens again", || async { app.has_webview() }).await;
    close(&desktop).await;
    eventually("the window closes", || async { app.descendants().is_empty() }).await;
    assert_eq!(times_told(&desktop), 1);
    tray.press("Quit").await;
    app.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_there_is_no_tray_the_window_says_before_it_closes_that_sandtray_goes_on() {
    let desktop = Desktop::used().await;
    desktop.lose_tray().await;
    let window = Window::of(&desktop).await;
    window.until("Off").await;
    close(&desktop).await;
    window.until("Sandtray goes on without its window").await;
    window.until("start Sandtray once more").await;
    let known = Paths::under(desktop.home()).told_of_closing_file();
    assert!(!known.exists());
    // A driver's own click would find no page to say that it was done.
    window.script("setTimeout(() => document.querySelector('dialog .primary').click())").await;
    eventually("the window has gone", || async { close_windows(desktop.display()).expect("a screen") == 0 }).await;
    assert!(known.exists());
    // It answers agents still.
    desktop.agent().await.call("hello", json!({ "name": "a robot" })).await.expect("hello");
    assert_eq!(times_told(&desktop), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_says_nothing_does_not_keep_its_window_open() {
    let desktop = Desktop::used().await;
    desktop.lose_tray().await;
    let window = Window::of(&desktop).await;
    window.until("Off").await;
    close(&desktop).await;
    window.until("Sandtray goes on without its window").await;
    // Once more, with the question unanswered.
    close(&desktop).await;
    eventually("the window has gone", || async { close_windows(desktop.display()).expect("a screen") == 0 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quit_in_the_window_says_how_much_it_ends_and_ends_it() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let (window, tray) = Window::from_tray(&desktop).await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    let run = agent.send("code.run", told("shell", "while :; do sleep 1; done")).await;
    agent.notification("code.started").await;
    window.until("1 program running").await;
    window.click("[aria-label='Places'] button:last-child").await;
    window.click("button[aria-keyshortcuts='Control+Q']").await;
    window.until("One program that runs or waits is ended.").await;
    window.click_and_close("dialog .danger").await;
    assert_eq!(agent.reply(run).await.expect("a result")["status"], "cancelled");
    eventually("it has gone", || async { !tray.lives().await }).await;
    assert_eq!(desktop.containers().await, 0);
}
