//! Keeps the page where it is. Refuses navigation by dropped links and scripts, new windows, and downloads.

use tauri::Url;
use tauri::webview::NewWindowResponse;
use tauri::{Manager, WebviewWindowBuilder, Wry};
use tracing::warn;

/// The scheme of tauri's own pages: `tauri://localhost`, and on Windows `http://tauri.localhost`.
const SCHEME: &str = "tauri";
const HOST: &str = "localhost";
const HOST_ON_WINDOWS: &str = "tauri.localhost";

pub(crate) fn guarded<'a, M: Manager<Wry>>(
    window: WebviewWindowBuilder<'a, Wry, M>,
    dev_server: Option<Url>,
) -> WebviewWindowBuilder<'a, Wry, M> {
    window
        .on_navigation(move |url| {
            let ours = is_ours(url) || dev_server.as_ref().is_some_and(|server| server.origin() == url.origin());
            if !ours {
                warn!(scheme = url.scheme(), "refused to leave the page");
            }
            ours
        })
        .on_new_window(|_, _| NewWindowResponse::Deny)
        .on_download(|_, _| false)
}

fn is_ours(url: &Url) -> bool {
    if cfg!(any(windows, target_os = "android")) {
        matches!(url.scheme(), "http" | "https") && url.host_str() == Some(HOST_ON_WINDOWS)
    } else {
        url.scheme() == SCHEME && url.host_str() == Some(HOST)
    }
}

#[cfg(test)]
mod tests {
    #[cfg(not(windows))]
    #[test]
    fn only_the_apps_own_pages_are_allowed() {
        let ours = |url: &str| super::is_ours(&url.parse().unwrap());
        assert!(ours("tauri://localhost/") && ours("tauri://localhost/index.html#runs"));
        for elsewhere in [
            "https://example.com/",
            "http://localhost/",
            "http://tauri.localhost/",
            "tauri://elsewhere/",
            "tauri://localhost.example.com/",
            "file:///etc/passwd",
            "data:text/html,<script>1</script>",
            "blob:tauri://localhost/1",
            "javascript:1",
            "about:blank",
            "about:srcdoc",
            "ipc://localhost/",
        ] {
            assert!(!ours(elsewhere), "{elsewhere}");
        }
    }
}
