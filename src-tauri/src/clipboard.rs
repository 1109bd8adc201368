//! Copies text for the owner. The app owns the clipboard's content and not the window, because on X11 and Wayland the
//! owner of the content must still run when it is pasted. Programs wrote most of the text, and a terminal obeys what is
//! pasted into it, so control characters are removed.

use std::sync::{Arc, Mutex, PoisonError};

use crate::app::App;
use crate::dto::error::CommandError;

/// Longest text that is copied, in bytes: more than any output that is kept.
const MAX_COPY: usize = 16 << 20;

/// The desktop's clipboard, opened at the first use.
#[derive(Default)]
pub(crate) struct Clipboard(Mutex<Option<arboard::Clipboard>>);

impl std::fmt::Debug for Clipboard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clipboard")
    }
}

impl Clipboard {
    /// Blocks until the desktop has the text.
    fn set(&self, text: String) -> Result<(), arboard::Error> {
        let mut clipboard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = match clipboard.take() {
            Some(open) => open,
            None => arboard::Clipboard::new()?,
        };
        clipboard.insert(open).set_text(text)
    }
}

/// Copies text and returns the number of characters that were removed.
pub(crate) async fn copy(app: &Arc<App>, text: String) -> Result<usize, CommandError> {
    copyable(&text)?;
    let (text, left_out) = harmless(text);
    let copying = Arc::clone(app);
    let copied = tokio::task::spawn_blocking(move || copying.clipboard.set(text)).await;
    let failed = |why: String| {
        CommandError::new("not_copied", format!("It was not copied: {why}."))
            .hint("If that happens again, quit Sandtray and start it anew.")
    };
    copied.map_err(|failure| failed(failure.to_string()))?.map_err(|failure| failed(failure.to_string()))?;
    Ok(left_out)
}

fn copyable(text: &str) -> Result<(), CommandError> {
    if text.len() > MAX_COPY { Err(CommandError::new("too_large", "That is too much to copy.")) } else { Ok(()) }
}

/// Removes control characters, C1 included, and counts them. Line ends and tabs stay.
fn harmless(mut text: String) -> (String, usize) {
    let mut left_out = 0;
    text.retain(|c| {
        let stays = !c.is_control() || matches!(c, '\n' | '\r' | '\t');
        left_out += usize::from(!stays);
        stays
    });
    (text, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_much_is_copied() {
        assert!(copyable(&"x".repeat(MAX_COPY)).is_ok());
        assert_eq!(copyable(&"x".repeat(MAX_COPY + 1)).unwrap_err().code, "too_large");
    }

    #[test]
    fn control_characters_are_removed_and_counted() {
        let plain = "one\r\n\ttwo \u{20ac} \u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{1f980}\n";
        assert_eq!(harmless(plain.into()), (plain.into(), 0));
        let pasted = "\u{1b}[201~rm -rf ~\n\u{9b}31m\u{9d}52;c;\u{7}a\u{8}\u{7f}\u{0}b\u{90}\u{3}";
        assert_eq!(harmless(pasted.into()), ("[201~rm -rf ~\n31m52;c;ab".into(), 9));
    }
}
