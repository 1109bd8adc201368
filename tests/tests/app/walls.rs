//! What the page may not do, even with hostile code in it.

use sandtray_tests::desktop::Desktop;
use sandtray_tests::desktop::driver::Window;
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn the_page_reaches_our_commands_and_nothing_else() {
    let desktop = Desktop::start().await;
    let window = Window::of(&desktop).await;
    let tray = desktop.tray().await;
    for command in [
        // The window's own question, not the page's.
        "returned_file",
        "no_such_command",
        "plugin:dialog|save",
        "plugin:clipboard-manager|read_text",
        "plugin:autostart|enable",
        "plugin:fs|read_text_file",
        "plugin:shell|execute",
        "plugin:window|create",
        "plugin:webview|create_webview_window",
        "plugin:event|emit",
        "plugin:path|resolve_directory",
        "plugin:app|version",
    ] {
        let refused = window.invoke(command, json!({})).await.expect_err(command);
        assert!(
            refused.to_string().contains("not allowed") || refused.to_string().contains("not found"),
            "{command}: {refused}"
        );
    }
    // Neither markup nor scripts that come as text do anything, nor does anything reach the net.
    let reached = window
        .script(
            "window.bad = 0; \
             document.body.insertAdjacentHTML('beforeend', '<img src=\"x:y\" onerror=\"window.bad = 1\">'); \
             const script = document.createElement('script'); script.textContent = 'window.bad = 2'; \
             document.body.append(script); \
             try { (0, eval)('window.bad = 3'); } catch {} \
             return window.bad;",
        )
        .await;
    assert_eq!(reached, 0);
    tray.press("Quit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_goes_nowhere_opens_nothing_and_downloads_nothing() {
    let desktop = Desktop::start().await;
    let window = Window::of(&desktop).await;
    let tray = desktop.tray().await;
    window.script("window.mark = 'still here'").await;
    for attempt in [
        "location.href = 'https://example.invalid/'",
        "location.assign('data:text/html,elsewhere')",
        "location.replace('file:///etc/hostname')",
        "location.href = 'about:blank'",
        "location.href = URL.createObjectURL(new Blob(['elsewhere'], { type: 'text/html' }))",
        "window.opened = window.open('about:blank'); window.opened = window.open('https://example.invalid/', '_blank')",
        "const a = document.createElement('a'); a.href = 'data:application/x,1'; a.download = 'x'; document.body.append(a); a.click()",
        "const f = document.createElement('iframe'); f.src = 'data:text/html,elsewhere'; document.body.append(f)",
    ] {
        window.script(&format!("setTimeout(() => {{ {attempt} }})")).await;
        // A navigation that is allowed has begun by then.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(400) {
            let seen = window.script("return [window.mark, location.protocol, window.opened ?? null]").await;
            assert_eq!(seen, json!(["still here", "tauri:", null]), "{attempt}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    tray.press("Quit").await;
}
