//! Other people's words on the owner's desktop: a client may call itself anything.

use sandtray_core::text::is_hidden;

/// One line of at most so many characters, without anything that moves, hides or reverses what stands beside it.
pub fn plain(text: &str, most: usize) -> String {
    let shown: Vec<char> =
        text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| !is_hidden(*c)).collect();
    match shown.len() {
        length if length > most => shown[..most.saturating_sub(1)].iter().chain(&['…']).collect(),
        _ => shown.into_iter().collect(),
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
}
