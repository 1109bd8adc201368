//! What the app tells the desktop's service for notifications.

use std::time::Instant;

use sandtray_core::settings::Settings;
use sandtray_tests::desktop::Desktop;
use sandtray_tests::desktop::driver::Window;
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
    // This service takes a body as it is.
    let body = desktop.notifications.until("Program stopped at a limit").await;
    assert_eq!(body, format!("Shell for a <b>robot</b> (the program {}) took longer than it may.", own_program()));
    let body = desktop.notifications.until("A new client runs code").await;
    assert!(body.starts_with("a <b>robot</b> (the program "), "{body}");
    assert_eq!(desktop.notifications.told().len(), 2, "{:?}", desktop.notifications.told());
    assert_eq!(desktop.notifications.asked(), 1, "what it can do is asked once");
    tray.press("Quit").await;
    app.ended().await;
}

/// The file name of this test's program, as the kernel has it.
fn own_program() -> String {
    let exe = std::env::current_exe().expect("a program");
    exe.file_name().expect("a name").to_string_lossy().into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_reads_markup_gets_none_of_the_clients() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    desktop.notifications.can(&["body", "body-markup"]);
    let app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    agent.call("hello", json!({ "name": "a <b>robot</b> & co" })).await.expect("hello");
    assert_eq!(agent.run(told("shell", "echo hi")).await["status"], "ok");
    let body = desktop.notifications.until("A new client runs code").await;
    assert!(body.starts_with("a &lt;b&gt;robot&lt;/b&gt; &amp; co (the program "), "{body}");
    // And it knows of no actions, so it is given none.
    assert_eq!(desktop.notifications.all()[0].actions, [""; 0]);
    tray.press("Quit").await;
    app.ended().await;
}

/// Subscribes as a page does, says that it comes to the front when it is asked to, and keeps what it is told.
const PAGE: &str = r#"echo '{"ask":{"id":1,"request":{"command":"subscribe","args":{"channel":"c"}}}}'
while read -r line; do
  echo "$line" >>$1
  case $line in '{"front"'*) echo '"in_front"';; esac
done"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_press_opens_what_the_notification_tells_of() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let app = desktop.app_with_window(PAGE).await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    let mut params = told("shell", "sleep 100");
    params["limits"] = json!({ "seconds": 0.3 });
    let run = agent.run(params).await["run_id"].as_str().expect("an id").to_owned();
    let gone = |place: String| {
        let desktop = &desktop;
        async move {
            eventually("the window is sent there", || async { desktop.window_wrote().contains(&place) }).await;
        }
    };
    // The window is closed, and opens there.
    desktop.notifications.press("A new client runs code").await;
    gone(json!({ "go": { "page": "agents", "run_id": null } }).to_string()).await;
    // And goes there when it is open.
    desktop.notifications.press("Program stopped at a limit").await;
    gone(json!({ "go": { "page": "runs", "run_id": run } }).to_string()).await;
    tray.press("Quit").await;
    app.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_client_is_told_in_the_window_that_is_in_front() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let app = desktop.app_with_window(&format!("echo '{{\"focus\":true}}'\n{PAGE}")).await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    tray.press("Open Sandtray").await;
    eventually("the page has its first snapshot", || async {
        desktop.window_wrote().iter().any(|line| line.contains("\"kind\":\"snapshot\""))
    })
    .await;
    let mut agent = desktop.agent().await;
    agent.call("hello", json!({ "name": "claude" })).await.expect("hello");
    assert_eq!(agent.run(told("shell", "echo hi")).await["status"], "ok");
    let text = format!("claude (the program {}) runs a program in a sandbox for the first time.", own_program());
    let message = json!({ "kind": "notice", "text": text, "to": { "page": "agents", "run_id": null } });
    let expected = json!({ "tell": { "channel": "c", "message": message } });
    eventually("the page is told", || async {
        let lines = desktop.window_wrote();
        lines.iter().any(|line| serde_json::from_str::<serde_json::Value>(line).is_ok_and(|line| line == expected))
    })
    .await;
    assert_eq!(desktop.notifications.told(), []);
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
    desktop.knows_of_closing();
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

const TURNED_ON: &str = "It was turned on: see when";

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_is_told_whoever_turns_it_on() {
    let desktop = Desktop::used().await;
    let app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Off").await;
    // Any program on the session's bus can do this.
    tray.press("Run code in isolation").await;
    let body = desktop.notifications.until("Running code was turned on").await;
    assert!(body.contains("If that was not you, turn it off"), "{body}");
    tray.until("Ready").await;
    assert!(!tray.labels().await.iter().any(|label| label.contains(TURNED_ON)), "told is told");
    tray.press("Quit").await;
    app.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_notifications_muted_turning_on_is_shown_until_it_is_seen() {
    let desktop = Desktop::with(Settings { notifications: false, ..Settings::default() }).await;
    let (window, tray) = Window::from_tray(&desktop).await;
    tray.until("Off").await;
    tray.press("Run code in isolation").await;
    tray.until(TURNED_ON).await;
    window.until("Running code was turned on at").await;
    // It is turned off again, but it had been on; and nothing in the tray removes the entry.
    tray.press("Run code in isolation").await;
    tray.until("Off").await;
    tray.press(TURNED_ON).await;
    tray.until(TURNED_ON).await;
    window.click("[aria-label='Close this note']").await;
    tray.until_gone(TURNED_ON).await;
    assert_eq!(desktop.notifications.told(), []);
    tray.press("Quit").await;
}

/// Claims the name of another client, and runs a program.
const CLAIMANT: &str = r#"
import json, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
lines = connection.makefile("rw")
for number, (method, params) in enumerate([("hello", {"name": "claude"}), ("code.run", {"language": "shell", "code": "echo hi"})]):
    lines.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
    lines.flush()
    assert "result" in json.loads(lines.readline())
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_known_name_from_another_program_is_a_new_client() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let greeted = async || {
        let mut agent = desktop.agent().await;
        agent.call("hello", json!({ "name": "claude" })).await.expect("hello");
        assert_eq!(agent.run(told("shell", "echo hi")).await["status"], "ok");
    };
    let newcomers =
        || desktop.notifications.told().iter().filter(|(title, _)| title == "A new client runs code").count();
    // Once, so that the name is in the history.
    let app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    greeted().await;
    desktop.notifications.until("A new client runs code").await;
    tray.press("Quit").await;
    app.ended().await;

    let app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    greeted().await;
    let socket = desktop.home().join("run/agent.sock");
    let mut claimant = tokio::process::Command::new("python3");
    let claimed = claimant.args(["-c", CLAIMANT]).arg(&socket).status().await.expect("python3");
    assert!(claimed.success());
    eventually("the claimant is told of", || async { newcomers() == 2 }).await;
    let told = desktop.notifications.told();
    let (_, body) = told.last().expect("a notification");
    assert!(body.starts_with("claude (the program python3"), "{body}");
    tray.press("Quit").await;
    app.ended().await;
}
