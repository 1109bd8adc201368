//! Parses points in time as engines write them: RFC 3339, to the nanosecond.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// `None` if the text is not a time, and for the year 1, which engines use for "never".
pub(super) fn parse(text: &str) -> Option<SystemTime> {
    let (date, time) = text.split_once(['T', 't'])?;
    let offset_at = time.find(['Z', 'z', '+', '-'])?;
    let (clock, offset) = time.split_at(offset_at);
    let [year, month, day] = numbers(date, '-')?;
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [hour, minute, second] = numbers(whole, ':')?;
    let plausible = year >= 1970 && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !plausible || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - shift(offset)?;
    let nanos: u32 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    UNIX_EPOCH.checked_add(Duration::new(u64::try_from(seconds).ok()?, nanos))
}

fn numbers<const N: usize>(text: &str, separator: char) -> Option<[i64; N]> {
    let parts: Option<Vec<i64>> =
        text.splitn(N + 1, separator).map(|part| part.parse::<u16>().ok().map(i64::from)).collect();
    parts?.try_into().ok()
}

/// The offset in seconds east of UTC.
fn shift(offset: &str) -> Option<i64> {
    if matches!(offset, "Z" | "z") {
        return Some(0);
    }
    let [hours, minutes] = numbers(offset.get(1..)?, ':')?;
    let seconds = hours * 3600 + minutes * 60;
    Some(if offset.starts_with('-') { -seconds } else { seconds })
}

/// The Gregorian calendar, counted from March so that the leap day comes last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, nanos: u32) -> Option<SystemTime> {
        Some(UNIX_EPOCH + Duration::new(seconds, nanos))
    }

    #[test]
    fn times_as_docker_and_podman_write_them() {
        assert_eq!(parse("1970-01-01T00:00:00Z"), at(0, 0));
        assert_eq!(parse("2000-02-29T23:59:59.5Z"), at(951_868_799, 500_000_000));
        assert_eq!(parse("2026-11-29T22:13:23.469858187Z"), at(1_795_990_403, 469_858_187));
        assert_eq!(parse("2026-11-29T23:13:23+01:00"), parse("2026-11-29T22:13:23Z"));
        assert_eq!(parse("2026-11-29T12:13:23-10:00"), parse("2026-11-29T22:13:23Z"));
    }

    #[test]
    fn never_and_nonsense_are_no_time() {
        for text in [
            "0001-01-01T00:00:00Z",
            "",
            "now",
            "2026-11-29",
            "2026-13-01T00:00:00Z",
            "2026-11-29T25:00:00Z",
            "2026-11-29T22:13:23",
            "-1-1-1T1:1:1Z",
            "2026-11-29T22:13:23.äZ",
            "99999999999-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
