//! A hundred thousand past runs in the real window: how soon the Runs page shows its rows, and how soon a search shows what
//! it found after the last key. Clocks and eyes are the page's own: the time of the event, and the first frame in which
//! the rows are there.

use std::time::{Duration, Instant};

use sandtray_core::paths::Paths;
use sandtray_tests::desktop::driver::{self, Window};
use sandtray_tests::long_history::{self, Prints};
use sandtray_tests::rig::eventually;
use serde_json::{Value, json};

use crate::stats::Sample;

const RUNS: u32 = 100_000;
const ROUNDS: u32 = 15;
/// After the page was loaded anew, before it is asked for anything.
const SETTLED: Duration = Duration::from_millis(500);

/// Milliseconds from the press on "Runs" to the frame after the one that has rows.
const OPEN: &str = r#"
    const done = arguments[0];
    const begun = performance.now();
    document.querySelector("[aria-label='Places'] button:nth-child(2)").click();
    const look = () => document.querySelectorAll("[role='option'] time").length > 5
        ? requestAnimationFrame(() => done(performance.now() - begun))
        : requestAnimationFrame(look);
    requestAnimationFrame(look);
"#;

/// Notes when the last key changed the words that are searched for, and the frame after the one that says how many were found.
const LISTEN: &str = r#"
    const found = arguments[0];
    window.shown = null;
    document.querySelector("[aria-label='Search runs']").addEventListener('input', () => { window.typed = performance.now(); });
    const look = () => document.querySelector("[role='search'] [aria-live]").innerText.startsWith(found)
        && document.querySelectorAll("[role='option'] time").length > 5
        ? requestAnimationFrame(() => { window.shown = performance.now(); })
        : requestAnimationFrame(look);
    requestAnimationFrame(look);
"#;

pub(crate) async fn measure() -> Value {
    if !driver::is_here() {
        return super::not_measured(
            "WebKitWebDriver cannot be run: `make setup-app` installs what tests/bench/packages-app.txt names.",
        );
    }
    let desktop = match super::desktop().await {
        Ok(desktop) => desktop,
        Err(reason) => return reason,
    };
    let paths = Paths::under(desktop.home());
    paths.ensure().unwrap();
    let begun = Instant::now();
    long_history::fill(&paths.history_file(), RUNS, long_history::start(RUNS), Prints::ALine).await;
    println!("{RUNS} past runs, written in {:.0} s", begun.elapsed().as_secs_f64());
    let window = Window::of(&desktop).await;
    let tray = desktop.tray().await;
    let (mut opening, mut searching) = <(Sample, Sample)>::default();
    for _ in 0..ROUNDS {
        opening.add(open(&window).await);
    }
    for round in 0..ROUNDS {
        // Another model's output holds three times its number, so only a number that is no multiple of three stands for
        // one model alone.
        searching.add(search(&window, 710 + round * 15).await);
    }
    tray.press("Quit").await;
    println!("{:<34} {:>6.0} ms, p95 {:.0} ms", "opening the Runs page", opening.median(), opening.p95());
    println!("{:<34} {:>6.0} ms, p95 {:.0} ms", "a search, from the last key", searching.median(), searching.p95());
    json!({ "runs": RUNS, "open_runs_page": opening.json(), "search": searching.json() })
}

/// In a page that was loaded anew: one that was there before still has its rows.
async fn open(window: &Window) -> Duration {
    window.script("window.old = true; setTimeout(() => location.reload())").await;
    eventually("the page is another one", || async { window.script("return window.old").await.is_null() }).await;
    window.find("[aria-label='Places']").await;
    window.until("Run code in isolation").await;
    tokio::time::sleep(SETTLED).await;
    millis(&window.promised(OPEN, Vec::new()).await)
}

/// Words of which one is in every run and the other in a hundred; each key narrows it down.
async fn search(window: &Window, model: u32) -> Duration {
    const FIELD: &str = "[aria-label='Search runs']";
    window.script("document.querySelector(\"[aria-label='Search runs']\").value = ''").await;
    window.promised(
        "const [done] = arguments; const clear = document.querySelector(\"[role='search'] .found button\"); clear?.click(); done()",
        Vec::new(),
    )
    .await;
    window.until("100,000 runs").await;
    window
        .promised(
            &format!("const listen = function () {{ {LISTEN} }}; listen(arguments[0]); arguments[1]()"),
            vec![json!("100 found")],
        )
        .await;
    window.keys(FIELD, &format!("print {model}")).await;
    eventually("what was found is shown", || async { !window.script("return window.shown").await.is_null() }).await;
    millis(&window.script("return window.shown - window.typed").await)
}

fn millis(figure: &Value) -> Duration {
    Duration::from_secs_f64(figure.as_f64().unwrap() / 1000.0)
}
