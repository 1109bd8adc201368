//! What the window gets of runs that are over.

use serde_json::json;

use sandtray_core::settings::Settings;
use sandtray_tests::desktop::Desktop;
use sandtray_tests::desktop::driver::Window;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_can_be_found_read_run_again_and_deleted() {
    let desktop = Desktop::start().await;
    let window = Window::of(&desktop).await;
    let tray = desktop.tray().await;
    window.invoke("set_enabled", json!({ "enabled": true })).await.expect("on");
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    let code = "printf 'a,b\\n1,2\\n' > out/table.csv; printf '\\377' ; echo '<img src=x onerror=alert(1)>' >&2; exit 3 # findme";
    agent.run(json!({ "language": "shell", "code": code, "label": "a table" })).await;
    agent.run(json!({ "language": "shell", "code": "echo other" })).await;

    let filter = json!({ "filter": { "limit": 10, "text": "findme" } });
    let page = window.invoke("history_page", filter.clone()).await.expect("a page");
    let [run] = &page["runs"].as_array().expect("runs")[..] else { panic!("one run is found: {page}") };
    assert_eq!((&run["status"], &run["exit_code"], &run["label"]), (&json!("failed"), &json!(3), &json!("a table")));

    let id = json!({ "runId": run["run_id"] });
    let record = window.invoke("history_run", id.clone()).await.expect("a record");
    let body = &record["body"];
    assert_eq!(body["code"]["text"], code);
    assert_eq!(body["stdout"], json!({ "text": "\u{fffd}", "base64": "/w==", "cut": false }));
    assert_eq!(body["stderr"]["text"], "<img src=x onerror=alert(1)>\n");
    let preview = json!({ "kind": "csv", "text": "a,b\n1,2\n", "cut": false });
    assert_eq!(body["files"], json!([{ "name": "table.csv", "size": 8, "preview": preview }]));

    let again = window.invoke("run_again", id.clone()).await.expect("it runs again");
    assert_ne!(again, run["run_id"]);
    sandtray_tests::rig::eventually("it has run again", || async {
        let page = window.invoke("history_page", filter.clone()).await.expect("a page");
        page["runs"][0]["run_id"] == again && page["runs"][0]["client"] == "Sandtray"
    })
    .await;
    let recent = window.invoke("history_recent", json!({ "sinceMs": 0, "max": 2 })).await.expect("recent runs");
    assert_eq!(recent.as_array().map(Vec::len), Some(2));

    window.invoke("history_delete", id.clone()).await.expect("it is deleted");
    assert_eq!(window.invoke("history_run", id).await.expect_err("it is gone")["code"], "no_such_run");
    window.invoke("history_clear", json!({})).await.expect("all of it is gone");
    assert_eq!(window.invoke("history_stats", json!({})).await.expect("figures")["runs"], 0);
    tray.press("Quit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn run_again_is_the_same_run() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let (window, tray) = Window::from_tray(&desktop).await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    let code = "# Read all that came in\ncat in.txt -; while :; do :; done";
    let call = json!({
        "language": "shell", "code": code, "files": { "in.txt": "file\n", "raw": { "base64": "/wA=" } }, "stdin": "input\n",
        "limits": { "seconds": 1, "memory_mb": 64, "cpus": 0.5 }, "overflow": "truncate",
    });
    let first = agent.run(call).await;
    assert_eq!((&first["status"], &first["stdout"]), (&json!("timeout"), &json!("file\ninput\n")));
    let again = window.invoke("run_again", json!({ "runId": first["run_id"] })).await.expect("it runs again");
    let record = |run: serde_json::Value| window.invoke("history_run", json!({ "runId": run }));
    sandtray_tests::rig::eventually("it has run again", || async { record(again.clone()).await.is_ok() }).await;
    let (first, again) = (record(first["run_id"].clone()).await.unwrap(), record(again).await.unwrap());
    assert_eq!((again["run"]["limits"]["seconds"].as_f64(), &again["run"]["status"]), (Some(1.0), &json!("timeout")));
    for same in ["limits", "language", "label", "title", "code_sha256", "stdin_bytes", "files_in"] {
        assert_eq!(again["run"][same], first["run"][same], "{same}");
    }
    assert_eq!(again["run"]["title"], "Read all that came in");
    assert_eq!(again["body"]["inputs"], first["body"]["inputs"]);
    let text = |text: &str| json!({ "kind": "text", "text": text, "cut": false });
    assert_eq!(
        again["body"]["inputs"],
        json!([
            { "name": null, "size": 6, "kept": true, "preview": text("input\n") },
            { "name": "in.txt", "size": 5, "kept": true, "preview": text("file\n") },
            { "name": "raw", "size": 2, "kept": true, "preview": { "kind": "none" } },
        ])
    );
    assert_eq!((again.get("not_again"), &again["body"]["stdout"]["text"]), (None, &json!("file\ninput\n")));
    tray.press("Quit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_run_is_watched_with_what_it_printed_before() {
    let desktop = Desktop::start().await;
    let window = Window::of(&desktop).await;
    let tray = desktop.tray().await;
    let settings = json!(Settings { enabled: true, ..Settings::default() });
    window.invoke("apply_settings", json!({ "settings": settings })).await.expect("on");
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    let slow = json!({ "language": "python", "stream": true,
        "code": "import sys, time\nprint('early')\nwhile True:\n    sum(range(10000000)); sys.stderr.write('busy ')" });
    agent.send("code.run", slow).await;
    let started = agent.notification("code.started").await;
    // The page's own way of being told: a channel is a callback by number.
    window
        .script(
            "window.seen = []; const internals = window.__TAURI_INTERNALS__; \
             const id = internals.transformCallback(m => { if (m.message) window.seen.push(m.message); }); \
             window.channel = `__CHANNEL__:${id}`;",
        )
        .await;
    let channel = window.script("return window.channel").await;
    window.invoke("watch_run", json!({ "runId": started["run_id"], "channel": channel })).await.expect("a watch");
    let seen = |script: &'static str| {
        let window = &window;
        move || async move { window.script(script).await == true }
    };
    sandtray_tests::rig::eventually(
        "what was printed before",
        seen(
            "return window.seen.filter(e => e.kind === 'output' && e.stream === 'stdout').map(e => e.text).join('') \
             === 'early\\n'",
        ),
    )
    .await;
    sandtray_tests::rig::eventually(
        "figures of a program at work",
        seen("return window.seen.some(e => e.kind === 'sample' && e.memory_bytes > 1e6 && e.cpu > 0.05)"),
    )
    .await;
    window.invoke("stop_all", json!({})).await.expect("a stop");
    sandtray_tests::rig::eventually("the end", seen("return window.seen.at(-1)?.kind === 'ended'")).await;
    tray.press("Quit").await;
}

/// Runs that are over before the window can watch them are many on a busy day.
#[tokio::test(flavor = "multi_thread")]
async fn watches_that_come_too_late_use_nothing_up() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let (window, tray) = Window::from_tray(&desktop).await;
    let late = window
        .promised(
            "const [done] = arguments; const { invoke } = window.__TAURI_INTERNALS__; (async () => { \
             const codes = {}; \
             for (let n = 0; n < 300; n++) await invoke('watch_run', { runId: '0'.repeat(32), channel: `__CHANNEL__:${n + 1}` }) \
                 .catch(error => codes[error.code] = (codes[error.code] ?? 0) + 1); \
             return codes; })().then(done)",
            Vec::new(),
        )
        .await;
    assert_eq!(late, json!({ "no_such_run": 300 }));
    tray.press("Quit").await;
}
