//! The page of agents in the real window: its examples run as they are copied, and it names who came in, over restarts too.

use std::process::Stdio;

use sandtray_core::settings::Settings;
use sandtray_tests::desktop::Desktop;
use sandtray_tests::desktop::driver::Window;
use sandtray_tests::desktop::screen::copied;
use sandtray_tests::rig::{PATIENCE, built, eventually};
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

const AGENTS: &str = "[aria-label='Places'] button:nth-child(3)";

/// Copied by the page's own button.
async fn example(desktop: &Desktop, window: &Window, way: &str) -> String {
    window.script(&format!("document.querySelector('input[value={way}]').click()")).await;
    let shown = window.script("return document.querySelector('#connect-how pre').textContent").await;
    let shown = shown.as_str().expect("an example").to_owned();
    window.click("[aria-label='Copy the example']").await;
    eventually("the example is in the clipboard", || async {
        let display = desktop.display().to_owned();
        tokio::task::spawn_blocking(move || copied(&display)).await.expect("no panic").ok().as_ref() == Some(&shown)
    })
    .await;
    shown
}

/// What it prints, started as the page says.
async fn printed(desktop: &Desktop, program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    desktop.environment(&mut command);
    let folder = built("sandtray").parent().expect("a folder").display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    command.args(arguments).env("PATH", format!("{folder}:{path}")).current_dir(desktop.home()).stdin(Stdio::null());
    let output = timeout(PATIENCE, command.output()).await.expect("it ends in time").expect("it can be run");
    assert!(output.status.success(), "{program}: {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{program}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The lines of the list, each as its words.
async fn rows(window: &Window) -> Vec<String> {
    let texts = window
        .script("return [...document.querySelectorAll('section[aria-labelledby=agents-title] .row')].map((row) => row.innerText.trim().split(/\\s*\\n\\s*/).join(' | '))")
        .await;
    let Value::Array(texts) = texts else { panic!("{texts}") };
    texts.iter().map(|text| text.as_str().unwrap_or_default().replace('\u{a0}', " ")).collect()
}

async fn listed(window: &Window, name: &str, program: &str, end: &str) {
    let there =
        |rows: &[String]| rows.iter().any(|row| row.starts_with(&format!("{name} | {program}")) && row.ends_with(end));
    let listed = async {
        while !there(&rows(window).await) {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    if timeout(PATIENCE, listed).await.is_err() {
        panic!("{name} of {program} with {end:?} is not among {:?}", rows(window).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_example_runs_as_it_is_copied_and_its_agent_is_named_over_a_restart() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let (window, tray) = Window::from_tray(&desktop).await;
    tray.until("Ready").await;
    window.click(AGENTS).await;
    window.until("No agent has connected yet.").await;

    let line = example(&desktop, &window, "terminal").await;
    assert_eq!(printed(&desktop, "bash", &["-c", &line]).await, "42\n");
    for (way, program, file) in [("python", "python3", "try.py"), ("node", "node", "try.js")] {
        let text = example(&desktop, &window, way).await;
        std::fs::write(desktop.home().join(file), text).expect("a file");
        assert_eq!(printed(&desktop, program, &[file]).await, "42\n", "{way}");
    }
    let python = std::fs::canonicalize("/usr/bin/python3").expect("python3");
    let python = python.file_name().expect("a name").to_string_lossy().into_owned();
    listed(&window, "sandtray run", "sandtray", "1 run").await;
    listed(&window, "my agent", &python, "1 run").await;
    listed(&window, "my agent", "node", "1 run").await;

    // And one that stays.
    let mut agent = desktop.agent().await;
    agent.call("hello", serde_json::json!({ "name": "stays" })).await.expect("hello");
    let process = format!("process {}", std::process::id());
    eventually("it is shown as connected", || async {
        rows(&window)
            .await
            .iter()
            .any(|row| row.starts_with("stays | ") && row.contains("Connected now") && row.contains(&process))
    })
    .await;
    drop(agent);
    eventually("it is shown as gone", || async {
        rows(&window).await.iter().any(|row| row.starts_with("stays | ") && row.contains("Last seen just now"))
    })
    .await;
    tray.press("Quit").await;
    eventually("it has gone", || async { !tray.lives().await }).await;
    drop(window);

    let (window, tray) = Window::from_tray(&desktop).await;
    window.click(AGENTS).await;
    listed(&window, "my agent", &python, "1 run").await;
    assert!(
        !rows(&window).await.iter().any(|row| row.starts_with("stays")),
        "it ran nothing, so nothing is kept of it"
    );
    tray.press("Quit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hello_world_is_tried_from_the_window_after_turning_it_on_there() {
    let desktop = Desktop::used().await;
    let (window, tray) = Window::from_tray(&desktop).await;
    tray.until("Off").await;
    window.click(AGENTS).await;
    let press = async |words: &str| {
        let script = format!(
            "const button = [...document.querySelectorAll('main button')].find((one) => one.textContent.trim() === '{words}' && !one.disabled); \
             button?.click(); return button !== undefined"
        );
        eventually(&format!("{words} can be pressed"), || async { window.script(&script).await == true }).await;
    };
    press("Turn on").await;
    press("Run hello world").await;
    let result = window.find(".result pre").await.text().await.expect("its text");
    assert_eq!(result, "Hello, world");
    let took = window.find(".result strong").await.text().await.expect("its text").replace('\u{a0}', " ");
    let (figure, unit) = took.split_once(' ').expect("a figure and its unit");
    assert!(figure.parse::<f64>().is_ok_and(|figure| figure > 0.0) && ["ms", "s"].contains(&unit), "{took}");
    // It is listed as the window's own run, and the window is not among the agents.
    assert_eq!(rows(&window).await, [""; 0]);
    press("Open the run").await;
    window.until("this window").await;
    tray.press("Quit").await;
}
