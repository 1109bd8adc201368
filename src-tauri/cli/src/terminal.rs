//! Makes untrusted text safe for a terminal.

mod cleaner;
mod looks;

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use sandtray_core::text::is_hidden;
use serde_json::Value;

pub(crate) use cleaner::Cleaner;

/// An untrusted text (a name, a label, a message) as one line, for a table or a sentence.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) { '\u{fffd}' } else { c }).collect()
}

/// A value for standard output: exact in a file or a pipe. On a terminal it is the same value, with JSON escapes for
/// characters that could do more than print.
pub(crate) fn json(value: &Value) -> String {
    let text = value.to_string();
    if std::io::stdout().is_terminal() { escaped(&text) } else { text }
}

/// Such characters only occur inside strings: JSON has none between them.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_plain_line() {
        assert_eq!(plain("a\x1b[2J\nb\u{202e}c\u{200b}d"), "a\u{fffd}[2J\u{fffd}b\u{fffd}c\u{fffd}d");
    }

    #[test]
    fn json_for_a_terminal_is_the_same_value_in_printable_characters() {
        let hostile: String =
            ('\0'..='\u{ff}').chain("\u{200b}\u{202e}\u{2066}\u{feff}\u{e0041}\u{fffd}😀\\\"".chars()).collect();
        let value = serde_json::json!({ &hostile: [&hostile, "\\\u{9b}", 1.5, null] });
        let text = escaped(&value.to_string());
        assert_eq!(text.chars().find(|c| is_hidden(*c)), None);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert!(text.contains("\\u009b") && text.contains("\\u202e") && text.contains("\\udb40\\udc41"), "{text}");
        assert!(text.contains("😀ÿ") || text.contains('😀'), "what is seen stays");
    }
}
