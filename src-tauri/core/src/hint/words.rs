//! Finds the last words of a failed program: the few lines that give the reason, without those that its runtime prints
//! around them.

use memchr::{memchr, memmem, memrchr};

use crate::run::Status;

/// Bytes at the end of standard error in which a report may begin. Go prints the stacks of all goroutines after the
/// reason.
const REPORT_BYTES: usize = 64 << 10;
/// Bytes at the end of standard error in which a traceback names the failed call.
pub(super) const NEAR_BYTES: usize = 2 << 10;
/// Bound on the bytes that are searched for words.
const LAST_BYTES: usize = 4 << 10;
/// Number of non-blank lines, if no runtime reports.
const LAST_LINES: usize = 3;

/// Every step is one search through the rest of the text, so the time is linear.
pub(super) fn last_words(status: Status, stderr: &[u8]) -> &[u8] {
    let text = end(stderr, REPORT_BYTES).trim_ascii_end();
    match status {
        // The output was cut off in the middle, so only a report longer than the cap tells the reason.
        Status::OutputLimit => of_go(text).unwrap_or_default(),
        Status::Ok | Status::Failed | Status::Timeout | Status::OutOfMemory | Status::Cancelled => {
            let last = &text[memrchr(b'\n', text).map_or(0, |at| at + 1)..];
            if last.starts_with(b"Node.js v") {
                of_node(text)
            } else if is_of_rustc(last) {
                end(text, LAST_BYTES)
            } else if is_native_frame(last) {
                beginning(after(text, b"FATAL ERROR: ").unwrap_or_default())
            } else if last.starts_with(b"\t") {
                of_go(text).unwrap_or_else(|| last_lines(text))
            } else if last == b"}" || last.starts_with(b"    at ") {
                of_logged_error(text)
            } else {
                last_lines(text)
            }
        }
    }
}

/// Node shows the program's line with a mark below it, then the error with its properties.
fn of_node(text: &[u8]) -> &[u8] {
    let mut rest = text;
    while let Some(at) = memrchr(b'^', rest) {
        let line_start = memrchr(b'\n', &rest[..at]).map_or(0, |at| at + 1);
        let line_end = memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length);
        if text[line_start..line_end].iter().all(|byte| matches!(byte, b' ' | b'\t' | b'^')) {
            return beginning(&text[line_end..]);
        }
        rest = &text[..line_start];
    }
    last_lines(text)
}

/// An error that a Node program caught and printed: a message, frames, and perhaps properties in braces. None of its
/// lines quotes the program.
fn of_logged_error(text: &[u8]) -> &[u8] {
    let (mut from, mut heads) = (memrchr(b'\n', text).map_or(0, |at| at + 1), 0);
    while from > 0 && heads < LAST_LINES {
        from = memrchr(b'\n', &text[..from - 1]).map_or(0, |at| at + 1);
        heads += usize::from(!text[from..].starts_with(b" "));
    }
    beginning(&text[from..])
}

/// rustc's errors end with their number and where to read about them.
fn is_of_rustc(last: &[u8]) -> bool {
    last.starts_with(b"For more information about ")
        || last.starts_with(b"Some errors have detailed explanations")
        || last.starts_with(b"error: aborting due to ")
}

/// Matches ` 8: 0x1cfd6e1  [node]`.
fn is_native_frame(last: &[u8]) -> bool {
    let line = last.trim_ascii_start();
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && line[digits..].starts_with(b": 0x")
}

/// The report of Go, whose reason is ahead of the first stack. `None` if there is no such report.
fn of_go(text: &[u8]) -> Option<&[u8]> {
    let reason = [&b"fatal error: "[..], b"panic: "].into_iter().filter_map(|start| after(text, start));
    let reason = reason.min_by_key(|rest| rest.len())?;
    let stacks = [&b"\n\ngoroutine "[..], b"\n\nruntime stack:"].into_iter();
    let end = stacks.filter_map(|start| memmem::find(reason, start)).min()?;
    Some(beginning(&reason[..end]))
}

/// The text from the last line that starts with `start`, if there is one.
fn after<'a>(text: &'a [u8], start: &[u8]) -> Option<&'a [u8]> {
    let found = memmem::rfind_iter(text, start).find(|at| *at == 0 || text[at - 1] == b'\n')?;
    Some(&text[found..])
}

/// The last lines, up to an indented one: that is part of a traceback, and quotes the program.
fn last_lines(text: &[u8]) -> &[u8] {
    let text = without_frame(text);
    let (mut from, mut lines) = (text.len(), 0);
    while from > 0 && lines < LAST_LINES && text.len() - from < LAST_BYTES {
        let start = memrchr(b'\n', &text[..from - 1]).map_or(0, |at| at + 1);
        let line = &text[start..from];
        if line.starts_with(b"  ") && lines > 0 {
            break;
        }
        lines += usize::from(!line.trim_ascii().is_empty());
        from = start;
    }
    end(&text[from..], LAST_BYTES)
}

/// Python draws a frame around a group of errors, whose last line is its lower edge: `    +------`.
fn without_frame(text: &[u8]) -> &[u8] {
    let start = memrchr(b'\n', text).map_or(0, |at| at + 1);
    let is_edge =
        text[start..].trim_ascii().strip_prefix(b"+-").is_some_and(|edge| edge.iter().all(|byte| *byte == b'-'));
    if is_edge { text[..start].trim_ascii_end() } else { text }
}

fn beginning(text: &[u8]) -> &[u8] {
    &text[..text.len().min(LAST_BYTES)]
}

fn end(text: &[u8], most: usize) -> &[u8] {
    &text[text.len().saturating_sub(most)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stderr: &str) -> &str {
        std::str::from_utf8(last_words(Status::Failed, stderr.as_bytes())).unwrap()
    }

    #[test]
    fn a_traceback_is_read_without_the_lines_it_quotes() {
        let traceback = "Network is unreachable\nTraceback (most recent call last):\n  File \"/sandbox/main.py\", line 1, in <module>\n    raise ValueError('a') # Read-only file system\nValueError: a\n";
        assert_eq!(of(traceback), "ValueError: a");
    }

    #[test]
    fn nodes_error_is_below_the_mark() {
        let error = "Read-only\n/sandbox/main.js:1\nthrow new Error('a ^ b')\n^\n\nError: a ^ b\n    at main.js {\n  code: 'X'\n}\n\nNode.js v22.1.0\n";
        assert_eq!(of(error).trim_start(), "Error: a ^ b\n    at main.js {\n  code: 'X'\n}\n\nNode.js v22.1.0");
        assert_eq!(of("a\nb\nc\nNode.js v22.1.0"), "b\nc\nNode.js v22.1.0");
    }

    #[test]
    fn an_error_that_was_caught_and_printed_is_read_from_its_message_on() {
        let error = "one\ntwo\nthree\nTypeError: fetch failed\n    at node:x\n  [cause]: Error: connect\n      at y {\n    errno: -101\n  }\n}";
        assert_eq!(of(error), &error[4..]);
        assert_eq!(of("Error: a\n    at b\n    at c\n"), "Error: a\n    at b\n    at c");
        assert_eq!(of("}"), "}");
    }

    #[test]
    fn gos_error_is_ahead_of_its_stacks() {
        let stacks = "\n\ngoroutine 1 [running]:\nmain.main()\n\t./main.go:3 +0x45\n";
        assert_eq!(
            of(&format!("permission denied\npanic: open /x: no{stacks}exit status 2\n\t.")),
            "panic: open /x: no"
        );
        assert_eq!(of("usage:\n\tpanic: x"), "usage:\n\tpanic: x");
        let cut =
            format!("runtime: out\nfatal error: newosproc\n\nruntime stack:\nruntime.throw(){}", "x".repeat(100_000));
        assert_eq!(last_words(Status::OutputLimit, &cut.as_bytes()[..60_000]), b"fatal error: newosproc");
        assert_eq!(last_words(Status::OutputLimit, b"fatal error: newosproc\nand on"), b"");
    }

    #[test]
    fn compiler_errors_are_read_whole_and_a_full_heap_at_its_head() {
        let errors = "error[E0432]: unresolved import\n  |\n1 | use rand;\n  |     ^^^^\n\nerror: aborting due to 1 previous error";
        assert_eq!(of(errors), errors);
        assert_eq!(
            of("before\nFATAL ERROR: full\n----- Native -----\n\n 1: 0xab node [node]\n12: 0xcd  [node]"),
            "FATAL ERROR: full\n----- Native -----\n\n 1: 0xab node [node]\n12: 0xcd  [node]"
        );
    }

    #[test]
    fn without_a_report_the_last_three_lines_are_read() {
        assert_eq!(of("a\nb\n\nc\nd\n"), "b\n\nc\nd");
        assert_eq!(of("  indented alone"), "  indented alone");
        assert_eq!(of("a\n    |     raise E\n    | E: why\n    +------------"), "    | E: why");
        assert_eq!(of(""), "");
        assert_eq!(of(&"x".repeat(100_000)).len(), LAST_BYTES);
    }
}
