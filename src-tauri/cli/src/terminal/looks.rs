//! Decides which parameters of a colour sequence (SGR) reach the terminal. Pure.

/// The terminal's colours as the program has set them.
#[derive(Debug, Default)]
pub(super) struct Looks {
    text: Option<Colour>,
    ground: Option<Colour>,
}

/// A comparable colour: one of the sixteen, whose shades the terminal chooses, or any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colour {
    Named(u8),
    Mixed([u8; 3]),
}

impl Looks {
    /// Keeps the parameters of a colour sequence that change how text looks, and drops those that hide it: 8, which
    /// conceals, and 5 and 6, which blink. Text in the colour of its background gets the terminal's own. None if
    /// nothing is left.
    pub(super) fn change(&mut self, sequence: &str) -> Option<String> {
        let given: Vec<&str> = sequence.split(';').collect();
        let mut kept = Vec::new();
        let mut at = 0;
        while at < given.len() {
            let taken = match colour(&given[at..]) {
                Some(0) => break,
                Some(taken) => taken,
                None if is_plain_look(given[at]) => 1,
                None => {
                    at += 1;
                    continue;
                }
            };
            kept.extend_from_slice(&given[at..at + taken]);
            self.note(&given[at..at + taken]);
            at += taken;
        }
        if self.text.zip(self.ground).is_some_and(|(text, ground)| text.is_like(ground)) {
            *self = Self::default();
            kept.push("39;49");
        }
        (!kept.is_empty()).then(|| kept.join(";"))
    }

    fn note(&mut self, params: &[&str]) {
        let numbers: Vec<u8> =
            params.iter().flat_map(|param| param.split(':')).filter_map(|n| n.parse::<u8>().ok()).collect();
        match numbers[..] {
            [] | [0] => *self = Self::default(),
            [39] => self.text = None,
            [49] => self.ground = None,
            [n @ 30..=37] => self.text = Some(Colour::Named(n - 30)),
            [n @ 90..=97] => self.text = Some(Colour::Named(n - 82)),
            [n @ 40..=47] => self.ground = Some(Colour::Named(n - 40)),
            [n @ 100..=107] => self.ground = Some(Colour::Named(n - 92)),
            [38, ref of @ ..] => self.text = Colour::of(of),
            [48, ref of @ ..] => self.ground = Colour::of(of),
            _ => {}
        }
    }
}

impl Colour {
    fn of(numbers: &[u8]) -> Option<Self> {
        match *numbers {
            [5, n @ 0..=15] => Some(Self::Named(n)),
            [5, n @ 16..=231] => {
                let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
                let n = n - 16;
                Some(Self::Mixed([level(n / 36), level(n / 6 % 6), level(n % 6)]))
            }
            [5, n] => Some(Self::Mixed([8 + 10 * (n - 232); 3])),
            // With colons, the colour space may come before them.
            [2, r, g, b] | [2, _, r, g, b] => Some(Self::Mixed([r, g, b])),
            _ => None,
        }
    }

    /// Too similar to be told apart by eye.
    fn is_like(self, other: Self) -> bool {
        const NEAR: u8 = 24;
        match (self, other) {
            (Self::Named(one), Self::Named(other)) => one == other,
            (Self::Mixed(one), Self::Mixed(other)) => {
                one.iter().zip(other).all(|(one, other)| one.abs_diff(other) < NEAR)
            }
            _ => false,
        }
    }
}

/// The number of parameters of a 256-colour or true-colour value; 0 if it is malformed.
fn colour(params: &[&str]) -> Option<usize> {
    let numbers = |params: &[&str]| params.iter().all(|param| param.parse::<u8>().is_ok());
    let (first, parts) = params[0].split_once(':').map_or((params[0], None), |(first, parts)| (first, Some(parts)));
    match (first.parse::<u16>(), parts) {
        (Ok(38 | 48 | 58), None) => {
            let taken = match params.get(1).and_then(|kind| kind.parse::<u8>().ok()) {
                Some(5) => 3,
                Some(2) => 5,
                _ => 0,
            };
            Some(if params.get(1..taken.max(1)).is_some_and(numbers) { taken } else { 0 })
        }
        // With colons; 4 is the style of underline.
        (Ok(4 | 38 | 48 | 58), Some(parts)) => {
            let fine = parts.split(':').all(|part| part.is_empty() || part.parse::<u8>().is_ok());
            Some(usize::from(fine))
        }
        _ => None,
    }
}

fn is_plain_look(param: &str) -> bool {
    let number = if param.is_empty() { Ok(0) } else { param.parse::<u16>() };
    matches!(number, Ok(0..=4 | 7 | 9 | 21..=25 | 27..=37 | 39..=47 | 49 | 53 | 55 | 59 | 90..=97 | 100..=107))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concealing_parameters_are_left_out() {
        for (given, left) in [
            ("8", None),
            ("08", None),
            ("5", None),
            ("1;8", Some("1")),
            ("8;31", Some("31")),
            ("31;00008;4", Some("31;4")),
            ("38;5;8", Some("38;5;8")),
            ("38;5;1;8", Some("38;5;1")),
            ("38;8", None),
            ("1;38;5", Some("1")),
            ("38;2;1;2;8", Some("38;2;1;2;8")),
            ("38;2;1;2;;8", None),
            ("8:1", None),
            ("99999999;8", None),
        ] {
            assert_eq!(Looks::default().change(given).as_deref(), left, "{given}");
        }
    }

    #[test]
    fn text_in_the_colour_of_its_background_gets_the_terminals_own() {
        for (given, left) in [
            (&["30;40"][..], "30;40;39;49"),
            (&["37", "107"], "107"),
            (&["97", "107"], "107;39;49"),
            (&["41", "1", "38;5;1"], "38;5;1;39;49"),
            (&["48;5;16", "38;2;0;0;9"], "38;2;0;0;9;39;49"),
            (&["48;5;231", "38:2::255:255:255"], "38:2::255:255:255;39;49"),
            (&["48;2;0;0;0", "38;2;0;0;24"], "38;2;0;0;24"),
            (&["30", "0", "40"], "40"),
            (&["30", "39", "40"], "40"),
            (&["30", "", "40"], "40"),
            (&["30;47", "40", "30"], "30"),
        ] {
            let mut looks = Looks::default();
            let last = given.iter().map(|sequence| looks.change(sequence)).last();
            assert_eq!(last.flatten().as_deref(), Some(left), "{given:?}");
        }
    }
}
