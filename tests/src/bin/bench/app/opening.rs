//! How soon the window is there. The clock starts with the press on the tray's "Open Sandtray", or with the start of the
//! app for a second time, and it stops when the pixels are on the screen: neither the app nor its page has a say in it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use sandtray_core::settings::Settings;
use sandtray_tests::desktop::screen::{Painted, Screen, close_windows};
use sandtray_tests::desktop::{AT_LOGIN, App, Desktop};
use sandtray_tests::rig::eventually;
use serde_json::{Value, json};

use crate::stats::Sample;

/// Of each.
const ROUNDS: usize = 9;
/// A window that takes longer has failed.
const BOUND: Duration = Duration::from_secs(20);
/// Between closing and opening.
const PAUSE: Duration = Duration::from_millis(700);

pub(crate) async fn measure() -> Value {
    let desktop = match super::desktop().await {
        Ok(desktop) => desktop,
        Err(reason) => return reason,
    };
    desktop.settle_in(&Settings { enabled: true, ..Settings::default() });
    desktop.knows_of_closing();
    println!("{:<42} {:>14} {:>9} {:>14} {:>9}", "opening the window", "first content", "p95", "whole page", "p95");
    let (mut first, mut rested, mut soon, mut second) = <(Times, Times, Times, Times)>::default();
    for round in 0..ROUNDS {
        let app = desktop.app_saying(&[AT_LOGIN], Stdio::null());
        let tray = desktop.tray().await;
        tray.until("Ready").await;
        let open = tray.find("Open Sandtray").await;
        // The first window of all is the first GTK program of its screen, and looks at the graphics driver, once for all.
        let painted = watched(&desktop, &app, tray.press_entry(open)).await;
        if round > 0 {
            first.add(painted);
        }
        soon.add(watched(&desktop, &app, tray.press_entry(open)).await);
        let again = async { desktop.app_saying(&[], Stdio::null()).ended().await };
        second.add(watched(&desktop, &app, again).await);
        eventually("nothing of the window is left", || async { app.descendants().is_empty() }).await;
        rested.add(watched(&desktop, &app, tray.press_entry(open)).await);
        tray.press("Quit").await;
        app.ended().await;
    }
    json!({
        "first": first.row("from the tray, the first time"),
        "rested": rested.row("from the tray, after a rest"),
        "soon": soon.row("from the tray, a second after it was closed"),
        "second_start": second.row("by a second start, a second after"),
    })
}

/// Opens the window, watches it come, and closes it again.
async fn watched(desktop: &Desktop, app: &App, ask: impl Future<Output = ()>) -> Painted {
    let screen = Screen::open(&desktop.framebuffer()).unwrap();
    let begun = Instant::now();
    let watching = tokio::task::spawn_blocking(move || screen.watch(begun, BOUND));
    ask.await;
    let painted = watching.await.unwrap().unwrap().expect("a window with something in it");
    close_windows(desktop.display()).unwrap();
    eventually("nothing of the window is left", || async { app.descendants().is_empty() }).await;
    tokio::time::sleep(PAUSE).await;
    painted
}

#[derive(Default)]
struct Times {
    first: Sample,
    whole: Sample,
}

impl Times {
    fn add(&mut self, painted: Painted) {
        self.first.add(painted.first);
        self.whole.add(painted.whole);
    }

    fn row(&self, what: &str) -> Value {
        let Self { first, whole } = self;
        println!(
            "{what:<42} {:>11.0} ms {:>6.0} ms {:>11.0} ms {:>6.0} ms",
            first.median(),
            first.p95(),
            whole.median(),
            whole.p95()
        );
        json!({ "first_content": first.json(), "whole_page": whole.json() })
    }
}
