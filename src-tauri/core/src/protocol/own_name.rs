//! The one name that no client may take: that of the owner's window, whose runs are in the same lists. Pure.

use unicode_normalization::UnicodeNormalization;
use unicode_security::confusable_detection::skeleton;

/// The name of the window's own runs.
pub const OWN_NAME: &str = "Sandtray";

/// Whether a person could mistake a name for [`OWN_NAME`]: in any case, with spaces and punctuation between its
/// letters, with accents, and with look-alike letters of other scripts.
pub fn passes_for_own(name: &str) -> bool {
    folded(name) == folded(OWN_NAME)
}

fn folded(name: &str) -> String {
    let compatible: String = name.nfkc().flat_map(char::to_lowercase).collect();
    let looks: String = skeleton(&compatible).flat_map(char::to_lowercase).collect();
    looks.nfd().filter(|c| c.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_disguise_of_the_name_is_refused() {
        for name in [
            "Sandtray",
            "sandtray",
            "SANDTRAY",
            " Sand Tray ",
            "sand-tray",
            "S.a.n.d.t.r.a.y",
            "\u{201c}Sandtray\u{201d}",
            "Sandtray\u{200b}",
            "Sand\u{ad}tray",
            "\u{202e}Sandtray\u{202c}",
            "S\u{e1}ndtr\u{e0}y",
            // Cyrillic, Greek, full-width, mathematical and circled letters.
            "\u{405}\u{430}ndtr\u{430}\u{443}",
            "S\u{3b1}ndtray",
            "\u{ff33}\u{ff41}\u{ff4e}\u{ff44}\u{ff54}\u{ff52}\u{ff41}\u{ff59}",
            "\u{1d412}\u{1d41a}\u{1d427}\u{1d41d}\u{1d42d}\u{1d42b}\u{1d41a}\u{1d432}",
            "\u{24c8}\u{24d0}\u{24dd}\u{24d3}\u{24e3}\u{24e1}\u{24d0}\u{24e8}",
        ] {
            assert!(passes_for_own(name), "{name:?}");
        }
    }

    #[test]
    fn other_names_are_allowed() {
        for name in [
            "sandtray run",
            "sandtray mcp",
            "Sandtray for Vim",
            "sand",
            "sandbox",
            "tray",
            "claude-desktop",
            "\u{6c99}\u{76d8}",
            "",
        ] {
            assert!(!passes_for_own(name), "{name:?}");
        }
    }
}
