//! What a program printed, made fit for a terminal: colours stay, everything that could do more than print is left out.
//! Only for terminals; a file or a pipe gets the exact bytes.

/// Longer control sequences than any colour; what passes it is dropped.
const MAX_SEQUENCE: usize = 64;

/// Works on pieces: a sequence may begin in one and end in the next.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    state: State,
    sequence: String,
    coloured: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    /// An escape with an intermediate byte, which is followed by one more.
    EscapeMore,
    /// `ESC [`: cursor, colours, modes.
    Control,
    /// `ESC ]` and its kin: titles, clipboard, hyperlinks; up to BEL or `ESC \`.
    Words,
    WordsEscape,
}

impl Cleaner {
    pub(crate) fn clean(&mut self, bytes: &[u8]) -> String {
        let mut out = String::with_capacity(bytes.len());
        for c in String::from_utf8_lossy(bytes).chars() {
            self.step(c, &mut out);
        }
        out
    }

    /// Gives the terminal its own colours back, where they were changed.
    pub(crate) fn end(&mut self) -> &'static str {
        if std::mem::take(&mut self.coloured) { "\x1b[0m" } else { "" }
    }

    fn step(&mut self, c: char, out: &mut String) {
        self.state = match (self.state, c) {
            // A new line ends whatever was begun: an unfinished sequence hides one line at most.
            (_, '\n') => {
                out.push(c);
                State::Text
            }
            (State::Words, '\x1b') => State::WordsEscape,
            (State::Words, '\x07' | '\u{9c}') | (State::WordsEscape, '\\') => State::Text,
            (State::Words, _) => State::Words,
            (_, '\x1b') => State::Escape,
            (State::WordsEscape | State::Escape, _) => after_escape(c, &mut self.sequence),
            (State::EscapeMore, '\x20'..='\x2f') => State::EscapeMore,
            (State::EscapeMore, _) => State::Text,
            (State::Control, '\x20'..='\x3f') => {
                if self.sequence.len() < MAX_SEQUENCE {
                    self.sequence.push(c);
                }
                State::Control
            }
            (State::Control, _) => {
                self.finish(c, out);
                State::Text
            }
            (State::Text, '\u{9b}') => after_escape('[', &mut self.sequence),
            (State::Text, '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') => State::Words,
            (State::Text, _) => {
                if !c.is_control() || matches!(c, '\t' | '\r') {
                    out.push(c);
                }
                State::Text
            }
        };
    }

    fn finish(&mut self, last: char, out: &mut String) {
        let colour = last == 'm'
            && self.sequence.len() < MAX_SEQUENCE
            && self.sequence.chars().all(|c| c.is_ascii_digit() || matches!(c, ';' | ':'));
        if colour {
            self.coloured = true;
            out.push_str("\x1b[");
            out.push_str(&self.sequence);
            out.push('m');
        }
    }
}

fn after_escape(c: char, sequence: &mut String) -> State {
    sequence.clear();
    match c {
        '[' => State::Control,
        ']' | 'P' | 'X' | '^' | '_' => State::Words,
        '\x20'..='\x2f' => State::EscapeMore,
        _ => State::Text,
    }
}

/// One line of somebody else's words (a name, a label, a message), for a table or a sentence.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_direction(c) { '\u{fffd}' } else { c }).collect()
}

/// Marks that make a line read otherwise than it is.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(text: &str) -> String {
        Cleaner::default().clean(text.as_bytes())
    }

    #[test]
    fn text_and_colours_stay() {
        for text in ["plain ä 😀\tx\r\n", "\x1b[31mred\x1b[0m", "\x1b[38;2;1;2;3m\x1b[38:5:1m\x1b[m", ""] {
            assert_eq!(cleaned(text), text);
        }
    }

    #[test]
    fn what_does_more_than_print_is_left_out() {
        for hostile in [
            "\x1b]0;title\x07",
            "\x1b]52;c;cm0gLXJm\x1b\\",
            "\x1b[2J",
            "\x1b[1;1H",
            "\x1b[?1049h",
            "\x1b[6n",
            "\x1b[>4;1m",
            "\x1bc",
            "\x1b(0",
            "\x1b#8",
            "\x1bP+q544e\x1b\\",
            "\u{9b}2J",
            "\u{9d}0;title\u{9c}",
            "\x07\x08\x0e\x7f\u{85}",
            "\x1b\x1b[2J",
            "\x1b[",
            "\x1b",
        ] {
            assert_eq!(cleaned(&format!("a{hostile}")), "a", "{hostile:?}");
        }
        assert_eq!(cleaned(&format!("\x1b[{}mx", "1;".repeat(100))), "x");
    }

    #[test]
    fn a_sequence_cut_in_two_is_still_seen() {
        let text = "a\x1b]0;title\x07b\x1b[2Jc\x1b[1md";
        for cut in 0..text.len() {
            let mut cleaner = Cleaner::default();
            let (one, two) = text.as_bytes().split_at(cut);
            assert_eq!(cleaner.clean(one) + &cleaner.clean(two), "abc\x1b[1md", "{cut}");
            assert_eq!((cleaner.end(), cleaner.end()), ("\x1b[0m", ""));
        }
    }

    #[test]
    fn an_unfinished_sequence_ends_with_its_line() {
        assert_eq!(cleaned("\x1b]0;hidden\nshown"), "\nshown");
    }

    #[test]
    fn a_name_is_one_plain_line() {
        assert_eq!(plain("a\x1b[2J\nb\u{202e}c"), "a\u{fffd}[2J\u{fffd}b\u{fffd}c");
    }
}
