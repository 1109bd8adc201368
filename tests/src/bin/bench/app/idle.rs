//! What it costs to have it in the tray, switched on, while nothing happens: before its window was ever opened, and after it
//! was opened and closed.

use std::process::Stdio;
use std::time::{Duration, Instant};

use sandtray_core::settings::Settings;
use sandtray_tests::desktop::screen::{Screen, close_windows};
use sandtray_tests::desktop::{AT_LOGIN, App};
use sandtray_tests::rig::{PATIENCE, eventually};
use serde_json::{Value, json};

use super::processes::Figures;
use crate::stats::round;

const WHILE: Duration = Duration::from_secs(60);
/// After the last thing that happened.
const SETTLED: Duration = Duration::from_secs(5);

pub(crate) async fn measure() -> Value {
    let desktop = match super::desktop().await {
        Ok(desktop) => desktop,
        Err(reason) => return reason,
    };
    desktop.settle_in(&Settings { enabled: true, ..Settings::default() });
    println!("{:<34} {:>9} {:>9} {:>10} {:>9} {:>11}", "idle", "memory", "anonymous", "processes", "webviews", "CPU");
    desktop.knows_of_closing();
    let app = desktop.app_saying(&[AT_LOGIN], Stdio::null());
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    let unopened = row("in the tray, never opened", &app).await;
    let screen = Screen::open(&desktop.framebuffer()).unwrap();
    tray.press("Open Sandtray").await;
    let painted = tokio::task::spawn_blocking(move || screen.watch(Instant::now(), PATIENCE)).await.unwrap().unwrap();
    assert!(painted.is_some(), "the window drew nothing");
    let open = Figures::of(app.child.id().unwrap());
    close_windows(desktop.display()).unwrap();
    eventually("nothing of the window is left", || async { app.descendants().is_empty() }).await;
    let closed = row("in the tray, opened and closed", &app).await;
    println!("with the window open: {:.1} MB in {} processes", open.proportional, open.names.len());
    tray.press("Quit").await;
    app.ended().await;
    json!({
        "never_opened": unopened, "opened_and_closed": closed,
        "open": { "pss_mb": round(open.proportional), "processes": open.names.len() },
    })
}

async fn row(what: &str, app: &App) -> Value {
    let pid = app.child.id().unwrap();
    tokio::time::sleep(SETTLED).await;
    let begun = Figures::of(pid).cpu;
    tokio::time::sleep(WHILE).await;
    let figures = Figures::of(pid);
    let cpu = figures.cpu.saturating_sub(begun).as_millis();
    let (memory, anonymous) = (figures.proportional, figures.anonymous);
    println!(
        "{what:<34} {memory:>6.1} MB {anonymous:>6.1} MB {:>10} {:>9} {cpu:>5} ms in {} s",
        figures.names.len(),
        figures.webviews(),
        WHILE.as_secs()
    );
    json!({
        "pss_mb": round(memory), "anonymous_mb": round(anonymous), "processes": figures.names, "webviews": figures.webviews(),
        "cpu_ms": cpu, "seconds": WHILE.as_secs(),
    })
}
