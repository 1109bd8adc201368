//! Makes untrusted names safe to show on the owner's desktop: a client may call itself anything.

use sandtray_core::protocol::own_name::OWN_NAME;
use sandtray_core::text::is_hidden;

/// One line of at most `most` characters, without characters that move, hide or reverse the text beside them.
pub fn plain(text: &str, most: usize) -> String {
    let shown: Vec<char> =
        text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| !is_hidden(*c)).collect();
    match shown.len() {
        length if length > most => shown[..most.saturating_sub(1)].iter().chain(&['…']).collect(),
        _ => shown.into_iter().collect(),
    }
}

/// A client's name with its program from the kernel, because the name is only claimed. The owner's own window, whose
/// name no client may have, is shown without a program.
pub fn by(client: &str, program: Option<&str>, most: usize) -> String {
    let name = plain(client, most);
    match program.map(|program| plain(program, most)) {
        Some(program) if program != name => format!("{name} (the program {program})"),
        None if client != OWN_NAME => format!("{name} (program unknown)"),
        Some(_) | None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_deceive_is_left_out() {
        assert_eq!(plain("a\u{202e}b\u{1b}[31m\nc\u{200b}", 20), "ab[31m c");
        assert_eq!(plain("exactly", 7), "exactly");
        assert_eq!(plain("one more", 7), "one mo…");
        assert_eq!(plain("", 7), "");
    }

    #[test]
    fn a_name_stands_with_its_program() {
        assert_eq!(by("claude", Some("node"), 20), "claude (the program node)");
        assert_eq!(by("node", Some("node"), 20), "node");
        assert_eq!(by("claude", None, 20), "claude (program unknown)");
        assert_eq!(by("Sandtray", None, 20), "Sandtray");
        assert_eq!(by("a long claim of a name", Some("no\u{202e}de"), 8), "a long … (the program node)");
    }
}
