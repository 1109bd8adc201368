//! The one place that names notify-rust.

use notify_rust::Notification;
use tracing::debug;

/// Waits for the desktop. Returns whether the desktop took the notification; a desktop without notifications is not
/// reported.
pub(super) fn show(title: &str, body: &str) -> bool {
    let mut notification = Notification::new();
    notification.appname("Sandtray").summary(title).body(&escaped(body)).icon("sandtray-app");
    notification.show().inspect_err(|failure| debug!(%failure, "no notification")).is_ok()
}

/// Desktops of the free kind read a body as markup.
#[cfg(all(unix, not(target_os = "macos")))]
fn escaped(body: &str) -> String {
    body.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(any(windows, target_os = "macos"))]
fn escaped(body: &str) -> String {
    body.to_owned()
}
