//! Formats figures for people.

/// "512 B", "84 KB", "1.5 MB". A KB is 1024 bytes and an MB 1024 KB, as in the limits and in the window.
pub(crate) fn bytes(count: u64) -> String {
    const STEP: f64 = 1024.0;
    if (count as f64) < STEP {
        return format!("{count} B");
    }
    let (mut value, mut unit) = (count as f64, "B");
    for next in ["KB", "MB", "GB", "TB"] {
        (value, unit) = (value / STEP, next);
        if value < 999.5 {
            break;
        }
    }
    let digits = if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") };
    format!("{} {unit}", digits.strip_suffix(".0").unwrap_or(&digits))
}

/// "0.02 s", "1.5 s", "2 min".
pub(crate) fn seconds(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{seconds:.2} s")
    } else if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{:.0} min", seconds / 60.0)
    }
}

/// "just now", "5 min ago", "3 d ago".
pub(crate) fn ago(then_millis: u64, now_millis: u64) -> String {
    let seconds = now_millis.saturating_sub(then_millis) / 1000;
    match seconds {
        0..10 => "just now".into(),
        10..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86400),
    }
}

/// "1 file", "2 files".
pub(crate) fn count(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Aligns columns to their widest cell. The last is not padded.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut out = String::new();
    for row in rows {
        let line: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        out.push_str(line.join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(
            [0, 512, 1536, 84 << 20, 137_782_886, (1 << 20) - 102, 512 << 20, 1 << 40].map(bytes),
            ["0 B", "512 B", "1.5 KB", "84 MB", "131 MB", "1 MB", "512 MB", "1 TB"],
            "the same figures as in the window's test"
        );
        assert_eq!([0.016, 1.25, 120.0].map(seconds), ["0.02 s", "1.2 s", "2 min"]);
        assert_eq!(
            [0, 59, 60, 7200, 90_000].map(|s| ago(0, s * 1000)),
            ["just now", "59 s ago", "1 min ago", "2 h ago", "1 d ago"]
        );
        assert_eq!(ago(10, 0), "just now");
        let rows = [vec!["a".to_owned(), "bb".into()], vec!["ccc".into(), "d".into()]];
        assert_eq!(table(&rows), "a    bb\nccc  d\n");
    }
}
