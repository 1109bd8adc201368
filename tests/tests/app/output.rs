//! What a run does and prints, as its owner sees it while it goes on.

use std::time::Duration;

use sandtray_core::settings::Settings;
use sandtray_tests::desktop::Desktop;
use sandtray_tests::desktop::driver::Window;
use sandtray_tests::rig::{PATIENCE, eventually};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::told;

const RUNS: u32 = 10;
/// A thousand lines a second, each wider than the pane. Its number is at both ends.
const FLOOD: &str = "import sys, time\nbegan, n = time.monotonic(), 0\nwhile True:\n    due = int((time.monotonic() - began) * 1000)\n    \
                     while n < due:\n        n += 1\n        print(f'#{n} {\"lorem ipsum \" * 13} {n}#')\n    sys.stdout.flush()\n    time.sleep(0.02)\n";
/// Far more than what is kept of an output: 64 KB are 400 of these lines.
const PAST_THE_CAP: u64 = 4000;
/// What the pane shows: how many pixels of it have no row, how far its last row is from its foot, and the last line's number.
const LOOK: &str = "const box = document.querySelector('.rows[role=region]'); const outer = box.getBoundingClientRect();
    const rows = [...box.querySelectorAll('.row')].map(row => row.getBoundingClientRect());
    let covered = outer.top; for (const row of rows) if (row.top <= covered + 9) covered = Math.max(covered, row.bottom);
    const last = [...box.querySelectorAll('.row')].at(-1);
    return { bare: Math.max(0, outer.bottom - 9 - covered), foot: Math.abs(last.getBoundingClientRect().bottom - (outer.bottom - 8)),
             top: [...box.querySelectorAll('.row')].find(row => row.getBoundingClientRect().bottom > outer.top + 1).textContent,
             line: Number(/(\\d+)#$/.exec(last.textContent)?.[1] ?? 0) }";
const TOLERANCE: f64 = 2.0;

#[tokio::test(flavor = "multi_thread")]
async fn ten_programs_that_print_fast_are_followed_past_what_is_kept_and_leave_a_reader_alone() {
    let settings = Settings { enabled: true, concurrency: Some(RUNS), warm: 0, ..Settings::default() };
    let desktop = Desktop::with(settings).await;
    let (window, tray) = Window::from_tray(&desktop).await;
    tray.until("Ready").await;
    let mut agents = Vec::new();
    for _ in 0..RUNS {
        let mut agent = desktop.agent().await;
        let mut flood = told("python", FLOOD);
        flood["stream"] = json!(false);
        flood["overflow"] = json!("truncate");
        let run = agent.send("code.run", flood).await;
        agents.push((agent, run));
    }
    tray.until(&format!("{RUNS} running")).await;
    window.click("[aria-label='Places'] button:nth-child(2)").await;
    window.click(".live .open").await;
    // A run that has not printed yet is opened at its code, and its first lines do not fill the pane.
    eventually("it has printed more than the pane holds", || async {
        window.script("return /#\\d{3,} lorem/.test(document.querySelector('.rows[role=region]')?.textContent)").await
            == json!(true)
    })
    .await;

    let (mut looks, begun) = (0, Instant::now());
    loop {
        let seen = window.script(LOOK).await;
        let figure = |name: &str| seen[name].as_f64().expect("a figure");
        assert!(figure("bare") <= TOLERANCE && figure("foot") <= TOLERANCE, "look {looks}: {seen}");
        looks += 1;
        if seen["line"].as_u64().is_some_and(|line| line > PAST_THE_CAP) && looks > 40 {
            break;
        }
        assert!(begun.elapsed() < 2 * PATIENCE, "after {looks} looks: {seen}");
        sleep(Duration::from_millis(50)).await;
    }

    // A reader who has scrolled up reads on while it goes on printing.
    window.script("document.querySelector('.rows[role=region]').scrollTop -= 300").await;
    eventually("it is told", || async { window.text().await.contains("Follow the end") }).await;
    let read = window.script(LOOK).await;
    for look in 0..20 {
        let seen: Value = window.script(LOOK).await;
        assert_eq!((&seen["top"], &seen["bare"]), (&read["top"], &json!(0)), "look {look}");
        sleep(Duration::from_millis(50)).await;
    }
    tray.press("Stop all").await;
    for (agent, run) in &mut agents {
        let result = agent.reply(*run).await.expect("a result");
        assert_eq!(result["status"], "cancelled");
        assert!(result["stdout"].as_str().expect("text").len() < 70_000, "what is kept has its cap all the same");
    }
    tray.press("Quit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_reads_code_and_inputs_before_anything_is_printed() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let (window, tray) = Window::from_tray(&desktop).await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    let mut asked = told("shell", "# counts what it is given\nsleep 100");
    asked["files"] = json!({ "a b.csv": "x,y\n1,2\n" });
    asked["stdin"] = json!("the words that came in");
    let run = agent.send("code.run", asked).await;
    let started = agent.notification("code.started").await;
    window.click("[aria-label='Places'] button:nth-child(2)").await;
    window.click(".live .open").await;
    window.click("[role=tab]:nth-of-type(2)").await;
    window.until("# counts what it is given").await;
    window.click("[role=tab]:nth-of-type(3)").await;
    window.until("the words that came in").await;
    window.until("a b.csv").await;
    let id = &started["run_id"];
    let request = window.invoke("live_request", json!({ "runId": id })).await.expect("what it was asked to do");
    assert_eq!(request["inputs"][1]["preview"], json!({ "kind": "csv", "text": "x,y\n1,2\n", "cut": false }));
    // To an agent there is no such thing.
    let refused = agent.call("live_request", json!({ "runId": id })).await.expect_err("no such method");
    assert_eq!(refused["code"], -32601);
    window.click("button[aria-label^='Stop ']").await;
    assert_eq!(agent.reply(run).await.expect("a result")["status"], "cancelled");
    window.until("Inputs (2)").await;
    tray.press("Quit").await;
}
