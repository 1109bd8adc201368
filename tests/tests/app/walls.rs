//! What the page may not do, whoever has got into it.

use sandtray_tests::desktop::Desktop;
use sandtray_tests::desktop::driver::Window;
use serde_json::json;

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
