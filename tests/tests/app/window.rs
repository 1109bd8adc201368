//! The window is a program of its own: what the app is without it, and what becomes of either when the other goes.

use std::process::Stdio;
use std::time::{Duration, Instant};

use sandtray_core::settings::Settings;
use sandtray_tests::desktop::driver::Window;
use sandtray_tests::desktop::screen::{classes, close_windows, copied};
use sandtray_tests::desktop::{App, Desktop, Process};
use sandtray_tests::rig::{PATIENCE, built, eventually};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::told;

/// Files of libraries that only a window needs.
fn of_a_window(pid: u32) -> Vec<String> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("what it has mapped");
    let files = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let heavy = ["webkit", "javascriptcore", "libgtk", "libgdk", "libLLVM"];
    files.filter(|file| heavy.iter().any(|name| file.contains(name))).map(str::to_owned).collect()
}

async fn opened(app: &App) -> u32 {
    eventually("the window opens", || async { app.has_webview() }).await;
    app.window().expect("its process")
}

/// Asks every window in view to close, as soon as there is one.
async fn close(desktop: &Desktop) {
    eventually("a window closes", || async { close_windows(desktop.display()).expect("a screen") > 0 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_app_itself_holds_nothing_of_a_browser_whether_its_window_is_open_or_not() {
    let desktop = Desktop::used().await;
    let app = desktop.app().await;
    let tray = desktop.tray().await;
    let pid = app.child.id().expect("it runs");
    tray.until("Off").await;
    assert_eq!(of_a_window(pid), [""; 0]);
    tray.press("Open Sandtray").await;
    let window = opened(&app).await;
    assert!(!of_a_window(window).is_empty(), "this is how a browser would be seen");
    assert_eq!(of_a_window(pid), [""; 0]);
    // A desktop groups windows, and finds their icon, by the name that the desktop entry has.
    assert!(classes(desktop.display()).expect("a screen").contains(&"sandtray-app".into()));
    close(&desktop).await;
    eventually("nothing of the window is left", || async { app.descendants().is_empty() }).await;
    assert_eq!(of_a_window(pid), [""; 0]);
    tray.press("Quit").await;
    app.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_crashes_is_told_and_costs_no_run() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    let run = agent.send("code.run", told("shell", "read line; sleep 1; echo still here")).await;
    agent.notification("code.started").await;
    tray.press("Open Sandtray").await;
    let window = opened(&app).await;
    kill(window).await;
    let body = desktop.notifications.until("The window is not there").await;
    assert!(body.starts_with("What runs goes on. Open it again from the tray."), "{body}");
    assert_eq!(agent.reply(run).await.expect("a result")["stdout"], "still here\n");
    tray.press("Open Sandtray").await;
    assert_ne!(opened(&app).await, window);
    tray.press("Quit").await;
    app.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_window_outlives_its_app() {
    let desktop = Desktop::used().await;
    let mut app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.press("Open Sandtray").await;
    let window = opened(&app).await;
    app.child.kill().await.expect("a kill");
    let there = || std::path::Path::new(&format!("/proc/{window}")).exists();
    eventually("the window has gone", || async { !there() }).await;
}

/// It says that it was started, and what it is told.
const NOTES: &str = "echo started >>$1; while read -r line; do echo \"$line\" >>$1";

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_is_asked_for_while_it_closes_comes_again() {
    let desktop = Desktop::used().await;
    // Closing: it ends when it is asked to the front, without a word.
    let app = desktop.app_with_window(&format!("{NOTES}; case $line in *front*) exit 0;; esac; done")).await;
    let tray = desktop.tray().await;
    let started = || desktop.window_wrote().iter().filter(|line| *line == "started").count();
    tray.press("Open Sandtray").await;
    eventually("it is told to show itself", || async { desktop.window_wrote().len() == 2 }).await;
    let show = &desktop.window_wrote()[1];
    assert_eq!(
        *show,
        format!("{{\"show\":{{\"theme\":\"system\",\"version\":\"{}\",\"asks\":true}}}}", env!("CARGO_PKG_VERSION"))
    );
    tray.press("Open Sandtray").await;
    eventually("it is started again", || async { started() == 2 }).await;
    tray.press("Quit").await;
    app.ended().await;
    assert_eq!(started(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_hangs_is_replaced_when_it_is_asked_for() {
    let desktop = Desktop::used().await;
    let app = desktop.app_with_window(&format!("{NOTES}; done; exec sleep 1000")).await;
    let tray = desktop.tray().await;
    tray.press("Open Sandtray").await;
    eventually("it is told to show itself", || async { desktop.window_wrote().len() == 2 }).await;
    tray.press("Open Sandtray").await;
    let started = || desktop.window_wrote().iter().filter(|line| *line == "started").count();
    eventually("another takes its place", || async { started() == 2 }).await;
    tray.press("Quit").await;
    app.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_cannot_open_is_told_to_those_too_who_want_no_news() {
    let desktop = Desktop::with(Settings { notifications: false, ..Settings::default() }).await;
    let app = desktop.app_with_window("exit 7").await;
    let tray = desktop.tray().await;
    tray.press("Open Sandtray").await;
    let body = desktop.notifications.until("The window is not there").await;
    assert!(body.contains("exit status: 7"), "{body}");
    tray.press("Quit").await;
    app.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panel_that_hangs_keeps_nobody_waiting_and_is_asked_again() {
    let desktop = Desktop::used().await;
    desktop.hang_tray(true);
    let app = desktop.by_hand().await;
    opened(&app).await;
    desktop.hang_tray(false);
    let tray = desktop.tray().await;
    tray.until("Off").await;
    tray.press("Quit").await;
    app.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_copied_is_there_when_the_window_has_gone() {
    const TEXT: &str = "printed \u{20ac} before it closed";
    let desktop = Desktop::start().await;
    let window = Window::of(&desktop).await;
    let tray = desktop.tray().await;
    window.invoke("copy_text", json!({ "text": TEXT })).await.expect("copied");
    close(&desktop).await;
    eventually("no window is left", || async { close_windows(desktop.display()).expect("a screen") == 0 }).await;
    let display = desktop.display().to_owned();
    let pasting = tokio::task::spawn_blocking(move || copied(&display));
    let pasted = timeout(PATIENCE, pasting).await.expect("an answer in time").expect("no panic").expect("a screen");
    assert_eq!(pasted, TEXT);
    tray.press("Quit").await;
    eventually("it has gone", || async { !tray.lives().await }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_app_ends_with_its_screen_and_leaves_no_container() {
    let mut desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    let run = agent.send("code.run", told("shell", "while :; do sleep 1; done")).await;
    agent.notification("code.started").await;
    desktop.lose_screen().await;
    assert_eq!(agent.reply(run).await.expect("a result")["status"], "cancelled");
    app.ended().await;
    assert_eq!(desktop.containers().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_there_is_no_tray_the_window_opens_at_the_start_but_not_at_login() {
    let desktop = Desktop::used().await;
    desktop.lose_tray().await;
    let app = desktop.app().await;
    desktop.agent().await.call("hello", json!({ "name": "a robot" })).await.expect("hello");
    // A window would be on its way by now.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(1) {
        assert!(app.descendants().is_empty(), "{:?}", app.descendants());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // A person who starts it by hand wants to see it.
    desktop.by_hand().await.ended().await;
    opened(&app).await;
    app.told_to_end().await;

    let app = desktop.by_hand().await;
    opened(&app).await;
    app.told_to_end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_while_the_one_before_is_quitting_waits_for_it() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let first = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    assert_eq!(agent.run(told("shell", "echo hi")).await["stdout"], "hi\n");
    tray.press("Quit").await;
    let second = desktop.app().await;
    first.ended().await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    tray.press("Quit").await;
    second.ended().await;
}

/// What the page has not taken yet waits with the app, which leaves out what is too much.
#[tokio::test(flavor = "multi_thread")]
async fn a_busy_page_does_not_fill_the_memory_with_what_a_program_prints() {
    const BUSY: &str = "const end = performance.now() + 6000; while (performance.now() < end); return 1";
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let (window, tray) = Window::from_tray(&desktop).await;
    tray.until("Ready").await;
    window.click("[aria-label='Places'] button:nth-child(2)").await;
    let mut agent = desktop.agent().await;
    let mut noisy = told("shell", "while :; do head -c 100000 /dev/zero | tr '\\0' '\\1'; sleep 0.02; done");
    noisy["overflow"] = json!("truncate");
    let run = agent.send("code.run", noisy).await;
    agent.notification("code.started").await;
    tray.press("Shell for").await;
    window.find("button[aria-label^='Stop ']").await;
    let program = window.program();
    let before = Process::mebibytes(program, "Pss");
    assert_eq!(window.script(BUSY).await, 1);
    let grown = Process::mebibytes(program, "Pss") - before;
    assert!(grown < 24.0, "{grown:.0} MB more");
    // And it goes on when the page does.
    window.click("button[aria-label^='Stop ']").await;
    assert_eq!(agent.reply(run).await.expect("a result")["status"], "cancelled");
    tray.press("Quit").await;
}

/// As after an update, while the app of before still runs.
#[tokio::test]
async fn a_window_of_another_version_than_the_app_does_not_open() {
    let mut window = tokio::process::Command::new(built("sandtray-window"));
    window.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut window = window.spawn().expect("the window's program");
    let mut line = window.stdin.take().expect("a pipe");
    line.write_all(b"{\"show\":{\"theme\":\"system\",\"version\":\"0.0.1\",\"asks\":false}}\n").await.expect("a line");
    let output = timeout(PATIENCE, window.wait_with_output()).await.expect("it ends in time").expect("an end");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0), "{complaint}");
    assert!(complaint.contains("Sandtray 0.0.1 runs"), "{complaint}");
}

async fn kill(pid: u32) {
    let status = tokio::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status().await;
    assert!(status.expect("kill can be run").success());
}
