//! Characters that are invisible or change the text around them: one table for all places that show foreign text.

/// Control characters, and characters that reverse the direction of a line, are invisible, or are blank and count as
/// letters. Line ends and tabs are control characters.
pub fn is_hidden(c: char) -> bool {
    c.is_control() || is_format(c) || is_blank_letter(c)
}

/// Direction marks, joiners, soft hyphens, line separators, variation selectors, tags: Unicode's "default ignorable"
/// characters, the two separators, and the marks of annotations.
fn is_format(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Filler letters of Hangul, which are blank.
fn is_blank_letter(c: char) -> bool {
    matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_in_the_table_and_visible_ones_are_not() {
        // A sample of each range: the first and the last.
        let hidden = "\u{0}\u{7}\n\r\u{1b}\u{7f}\u{80}\u{9b}\u{9f}\u{ad}\u{34f}\u{61c}\u{17b5}\u{180e}\u{200b}\u{200d}\u{200f}\
            \u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{206f}\u{fe00}\u{fe0f}\u{feff}\u{fff9}\u{fffb}\u{1bca0}\
            \u{1d17a}\u{e0001}\u{e007f}\u{e0100}\u{e01ef}\u{115f}\u{1160}\u{3164}\u{ffa0}";
        assert_eq!(hidden.chars().filter(|c| !is_hidden(*c)).collect::<String>(), "");
        let seen = "a ~\u{a0}äжא中😀\u{301}\u{2027}\u{202f}\u{205f}\u{2070}\u{fffd}\u{e000}";
        assert_eq!(seen.chars().filter(|c| is_hidden(*c)).collect::<String>(), "");
    }
}
