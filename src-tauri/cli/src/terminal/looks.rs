//! Which parameters of a colour sequence (SGR) reach the terminal. Pure.

/// Of a colour sequence's parameters those that change how text looks, and not whether it is seen: not 8, which conceals, nor
/// 5 and 6, which blink. None where nothing is left.
pub(super) fn looks(sequence: &str) -> Option<String> {
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
        at += taken;
    }
    (!kept.is_empty()).then(|| kept.join(";"))
}

/// How many parameters a colour of 256 or of millions takes: 0 where it is not one as it should be.
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
        // With colons; 4 is the kind of line below the text.
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
    fn what_conceals_is_left_out() {
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
            assert_eq!(looks(given).as_deref(), left, "{given}");
        }
    }
}
