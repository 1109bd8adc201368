//! Cleans a program's output piece by piece: keeps text and colours, drops sequences that could do more than print.

use sandtray_core::text::is_hidden;

use super::looks::Looks;

/// More bytes than any colour sequence has; longer sequences are dropped.
const MAX_SEQUENCE: usize = 64;

/// Works on pieces: a sequence or a character may begin in one and end in the next.
#[derive(Debug)]
pub(crate) struct Cleaner {
    state: State,
    sequence: String,
    looks: Looks,
    coloured: bool,
    /// The first bytes of an incomplete character: 3 at most.
    partial: Vec<u8>,
    /// Whether a carriage return came, and nothing visible since.
    returned: bool,
    /// The last printed character: a line end at the start of a line.
    last: char,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    Escape,
    /// An escape with an intermediate byte; one more byte follows.
    EscapeMore,
    /// `ESC [`: cursor, colours, modes.
    Control,
    /// `ESC ]` and the like: titles, clipboard, hyperlinks; up to BEL or `ESC \`.
    Words,
    WordsEscape,
}

impl Default for Cleaner {
    fn default() -> Self {
        Self {
            state: State::Text,
            sequence: String::new(),
            looks: Looks::default(),
            coloured: false,
            partial: Vec::new(),
            returned: false,
            last: '\n',
        }
    }
}

impl Cleaner {
    pub(crate) fn clean(&mut self, bytes: &[u8]) -> String {
        let mut whole = std::mem::take(&mut self.partial);
        whole.extend_from_slice(bytes);
        self.partial = whole.split_off(whole.len() - unfinished(&whole));
        let mut out = String::with_capacity(whole.len());
        for c in String::from_utf8_lossy(&whole).chars() {
            self.step(c, &mut out);
        }
        out
    }

    /// The bytes held back, and the terminal's own colours if they were changed.
    pub(crate) fn end(&mut self) -> String {
        let mut out = String::new();
        for c in String::from_utf8_lossy(&std::mem::take(&mut self.partial)).chars() {
            self.step(c, &mut out);
        }
        if std::mem::take(&mut self.returned) {
            self.print('\n', &mut out);
        }
        if std::mem::take(&mut self.coloured) {
            out.push_str("\x1b[0m");
        }
        out
    }

    fn step(&mut self, c: char, out: &mut String) {
        self.state = match (self.state, c) {
            // A new line ends an unfinished sequence: it hides one line at most.
            (_, '\n') => {
                self.print(c, out);
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
                self.print(c, out);
                State::Text
            }
        };
    }

    /// A carriage return alone would let a line be overwritten: the text after it starts a new line, as in the window.
    fn print(&mut self, c: char, out: &mut String) {
        match c {
            '\r' => self.returned = self.last != '\n',
            '\n' => {
                out.push_str(if std::mem::take(&mut self.returned) { "\r\n" } else { "\n" });
                self.last = c;
            }
            _ if c == '\t' || !is_hidden(c) || is_joined(self.last, c) => {
                if std::mem::take(&mut self.returned) {
                    out.push('\n');
                }
                out.push(c);
                self.last = c;
            }
            _ => {}
        }
    }

    fn finish(&mut self, last: char, out: &mut String) {
        let is_colour = self.sequence.bytes().all(|byte| matches!(byte, b'0'..=b';'));
        if last != 'm' || !is_colour || self.sequence.len() >= MAX_SEQUENCE {
            return;
        }
        if let Some(looks) = self.looks.change(&self.sequence) {
            self.coloured = true;
            out.push_str("\x1b[");
            out.push_str(&looks);
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

/// The number of bytes at the end that begin a character that may still be completed.
fn unfinished(bytes: &[u8]) -> usize {
    let length = |lead: u8| match lead {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let lead = bytes.iter().rev().take(3).position(|byte| !matches!(byte, 0x80..=0xbf));
    match lead.map(|back| (back + 1, length(bytes[bytes.len() - back - 1]))) {
        Some((there, whole)) if there < whole => there,
        _ => 0,
    }
}

/// Emoji and some scripts need joiners and variation selectors. Between Latin letters they only hide text.
fn is_joined(before: char, c: char) -> bool {
    let base = before >= '\u{590}' && !is_hidden(before);
    match c {
        '\u{fe00}'..='\u{fe0f}' => base,
        '\u{200c}' | '\u{200d}' => base || before == '\u{fe0f}',
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(text: &str) -> String {
        Cleaner::default().clean(text.as_bytes())
    }

    #[test]
    fn text_and_colours_stay() {
        for text in [
            "plain ä 😀\tx\r\n",
            "\x1b[31mred\x1b[0m",
            "\x1b[38;2;1;2;3m\x1b[38:5:1m\x1b[m",
            "\x1b[1;4;38;5;8;48;2;8;8;8;97m\x1b[4:3m\x1b[58:2::1:2:3m\x1b[;7m",
            "👩‍💻 ❤️ ❤️‍🔥 می‌خواهم",
            "",
        ] {
            assert_eq!(cleaned(text), text);
        }
    }

    #[test]
    fn sequences_that_do_more_than_print_are_left_out() {
        for hostile in [
            "\x1b]0;title\x07",
            "\x1b]52;c;cm0gLXJm\x1b\\",
            "\x1b]8;;http://x\x1b\\",
            "\x1b[2J",
            "\x1b[1;1H",
            "\x1b[?1049h",
            "\x1b[6n",
            "\x1b[>4;1m",
            "\x1bc",
            "\x1b(0",
            "\x1b#8",
            "\x1bP+q544e\x1b\\",
            "\x1b_G;x\x1b\\",
            "\x1b^x\x1b\\",
            "\x1bXx\x1b\\",
            "\u{9b}2J",
            "\u{9d}0;title\u{9c}",
            "\u{90}q\u{9c}",
            "\u{9f}x\x1b\\",
            "\x07\x08\x0e\x7f\u{85}",
            "\x1b\x1b[2J",
            "\x1b[",
            "\x1b",
            "\u{202e}\u{2066}\u{200b}\u{2060}\u{feff}\u{ad}\u{e0041}\u{2028}",
            "\u{200d}\u{200c}\u{fe0f}",
        ] {
            assert_eq!(cleaned(&format!("a{hostile}")), "a", "{hostile:?}");
        }
        assert_eq!(cleaned(&format!("\x1b[{}mx", "1;".repeat(100))), "x");
        assert_eq!(Cleaner::default().clean(b"a\x9b2Jb\x9d0;x\x9c"), "a\u{fffd}2Jb\u{fffd}0;x\u{fffd}");
    }

    #[test]
    fn a_carriage_return_overwrites_nothing() {
        for (given, shown) in [
            ("secret\rpublic", "secret\npublic"),
            ("10%\r20%\r\n", "10%\n20%\r\n"),
            ("\rfirst", "first"),
            ("a\r\r\rb", "a\nb"),
            ("a\r\r\nb", "a\r\nb"),
            ("a\r\x1b[31mb", "a\x1b[31m\nb"),
            ("a\r\u{200b}\u{202e}b", "a\nb"),
        ] {
            assert_eq!(cleaned(given), shown, "{given:?}");
            let mut cleaner = Cleaner::default();
            let pieces: String = given.bytes().map(|byte| cleaner.clean(&[byte])).collect();
            assert_eq!(pieces, shown, "{given:?}");
        }
        let mut cleaner = Cleaner::default();
        assert_eq!(cleaner.clean(b"\x1b[1m100%\r") + &cleaner.end(), "\x1b[1m100%\n\x1b[0m");
    }

    #[test]
    fn a_sequence_cut_in_two_is_still_seen() {
        let text = "a\x1b]0;title\x07b\x1b[2Jc\x1b[1md";
        for cut in 0..text.len() {
            let mut cleaner = Cleaner::default();
            let (one, two) = text.as_bytes().split_at(cut);
            assert_eq!(cleaner.clean(one) + &cleaner.clean(two), "abc\x1b[1md", "{cut}");
            assert_eq!((cleaner.end().as_str(), cleaner.end().as_str()), ("\x1b[0m", ""));
        }
    }

    #[test]
    fn a_character_cut_in_two_is_joined_and_half_a_character_is_replaced() {
        let text = "ä€😀\u{9b}2J\u{9d}x\u{9c}z".as_bytes();
        for cut in 0..text.len() {
            let mut cleaner = Cleaner::default();
            assert_eq!(cleaner.clean(&text[..cut]) + &cleaner.clean(&text[cut..]), "ä€😀z", "{cut}");
        }
        let mut cleaner = Cleaner::default();
        assert_eq!((cleaner.clean(b"a\xf0\x9f"), cleaner.end()), ("a".into(), "\u{fffd}".into()));
        assert_eq!(cleaner.clean(b"\x80\x80\x80\x80"), "\u{fffd}".repeat(4));
    }

    #[test]
    fn an_unfinished_sequence_ends_with_its_line() {
        assert_eq!(cleaned("\x1b]0;hidden\nshown"), "\nshown");
    }

    #[test]
    fn any_input_in_any_pieces_gives_the_same_text_and_colours_only() {
        let parts = [
            "a", "text", "\n", "\r", "\t", "\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b\\", "[", "m", "1;31", "8", ";",
            "38;5;", ":", "\x07", "\u{9b}", "\u{9d}", "\u{9c}", "\u{85}", "\u{202e}", "\u{200b}", "\u{200d}",
            "\u{fe0f}", "😀", "ä", "\0", "J", "?25l",
        ];
        for seed in 0..20_000 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let text: String = (0..rng.usize(..20)).map(|_| parts[rng.usize(..parts.len())]).collect();
            let mut bytes = text.into_bytes();
            if !bytes.is_empty() && rng.bool() {
                let at = rng.usize(..bytes.len());
                bytes[at] = rng.u8(..);
            }
            let (mut whole, mut cut) = (Cleaner::default(), Cleaner::default());
            let shown = whole.clean(&bytes) + &whole.end();
            let mut pieces = String::new();
            for piece in bytes.chunks(rng.usize(1..5)) {
                pieces += &cut.clean(piece);
            }
            assert_eq!(pieces + &cut.end(), shown, "seed {seed}: {bytes:?}");
            let rest: String = shown.replace("\r\n", "\n").replace(['\n', '\t', '\u{200d}', '\u{fe0f}'], "");
            let colours = rest.split("\x1b[").skip(1).all(|rest| {
                let end = rest.find('m').expect("it ends");
                rest[..end].bytes().all(|byte| matches!(byte, b'0'..=b';'))
            });
            assert!(colours, "seed {seed}: {shown:?}");
            let hidden = rest.replace("\x1b[", "").chars().find(|c| is_hidden(*c));
            assert_eq!(hidden, None, "seed {seed}: {shown:?}");
        }
    }
}
