//! What the owner copies. The app hands it out, not the window: on X11 and Wayland whoever copied must be there when it is pasted.

use std::sync::{Arc, Mutex, PoisonError};

use crate::app::App;
use crate::dto::error::CommandError;

/// What is copied at most: more than any output that is kept.
const MAX_COPY: usize = 16 << 20;

/// The desktop's clipboard, once it was needed.
#[derive(Default)]
pub(crate) struct Clipboard(Mutex<Option<arboard::Clipboard>>);

impl std::fmt::Debug for Clipboard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clipboard")
    }
}

impl Clipboard {
    /// Waits for the desktop.
    fn set(&self, text: String) -> Result<(), arboard::Error> {
        let mut clipboard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = match clipboard.take() {
            Some(open) => open,
            None => arboard::Clipboard::new()?,
        };
        clipboard.insert(open).set_text(text)
    }
}

pub(crate) async fn copy(app: &Arc<App>, text: String) -> Result<(), CommandError> {
    copyable(&text)?;
    let copying = Arc::clone(app);
    let copied = tokio::task::spawn_blocking(move || copying.clipboard.set(text)).await;
    let failed = |why: String| {
        CommandError::new("not_copied", format!("It was not copied: {why}."))
            .hint("If that happens again, quit Sandtray and start it anew.")
    };
    copied.map_err(|failure| failed(failure.to_string()))?.map_err(|failure| failed(failure.to_string()))
}

fn copyable(text: &str) -> Result<(), CommandError> {
    if text.len() > MAX_COPY { Err(CommandError::new("too_large", "That is too much to copy.")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_much_is_copied() {
        assert!(copyable(&"x".repeat(MAX_COPY)).is_ok());
        assert_eq!(copyable(&"x".repeat(MAX_COPY + 1)).unwrap_err().code, "too_large");
    }
}
