use std::collections::HashSet;

use super::*;

/// The page that lists the table.
const PAGE: &str = include_str!("../../../../docs/hints.md");

fn named(status: Status, exit_code: i32, stderr: &str) -> Option<&'static str> {
    row(status, exit_code, stderr.as_bytes()).map(|row| row.name)
}

fn failed(stderr: &str) -> Option<&'static str> {
    named(Status::Failed, 1, stderr)
}

#[test]
fn no_row_speaks_of_a_run_that_went_well_or_was_cancelled() {
    assert!(ROWS.iter().all(|row| !row.verdicts.contains(&Status::Ok) && !row.verdicts.contains(&Status::Cancelled)));
    for status in [Status::Ok, Status::Cancelled] {
        assert_eq!(named(status, 153, "OSError: [Errno 30] Read-only file system"), None);
    }
}

#[test]
fn output_before_the_last_lines_gives_no_hint() {
    for stderr in [
        "",
        "Network is unreachable\none\ntwo\nthree",
        "Read-only file system\nTraceback (most recent call last):\n  File \"main.py\", line 1, in <module>\n    x('Read-only file system')\nKeyError: 'a'",
        "No space left on device\n\npanic: mine\n\ngoroutine 1 [running]:\nmain.main()\n\t./main.go:3 +0x1",
        "EROFS\n/sandbox/main.js:1\nthrow Error('a')\n^\n\nError: a\n    at main.js:1:1\n\nNode.js v22.1.0",
        "Network is unreachable\n\nthread 'main' (10) panicked at main.rs:1:5:\nmine\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
    ] {
        assert_eq!(failed(stderr), None, "{stderr}");
    }
    // Python ends in this way too if it reads from a pipe without data.
    assert_eq!(
        failed(
            "  File \"main.py\", line 1, in <module>\n    os.read(0, 1)\nBlockingIOError: [Errno 11] Resource temporarily unavailable"
        ),
        None
    );
    assert_eq!(failed("FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'"), None);
    assert_eq!(failed("FAILURE: Unable to open it"), None);
}

#[test]
fn the_verdict_has_to_match() {
    let unreachable = "OSError: [Errno 101] Network is unreachable";
    assert_eq!(failed(unreachable), Some("unreachable"));
    assert_eq!(named(Status::Timeout, 137, unreachable), Some("timeout"));
    assert_eq!(named(Status::OutputLimit, 137, unreachable), Some("output_limit"));
    assert_eq!(named(Status::OutOfMemory, 137, ""), Some("out_of_memory"));
    assert_eq!(named(Status::Failed, 153, ""), Some("file_size_signal"));
    assert_eq!(named(Status::Failed, 137, ""), None);
}

#[test]
fn messages_of_other_systems_and_languages_match_the_same_rows() {
    for (stderr, name) in [
        // As musl and macOS print it.
        ("wget: Name does not resolve", "names"),
        ("urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>", "names"),
        ("Error: getaddrinfo ENOTFOUND example.com", "names"),
        ("dial tcp: lookup example.com: no such host", "names"),
        ("dial tcp: lookup localhost on 0.0.0.0:53: read udp: connection refused", "localhost"),
        ("curl: (6) Could not resolve host: example.com", "names"),
        ("OSError: [Errno 113] No route to host", "unreachable"),
        ("main.sh: 3: Cannot fork", "processes"),
        ("main.sh: fork: retry: Resource temporarily unavailable", "processes"),
        ("runtime/cgo: pthread_create failed: Resource temporarily unavailable", "processes"),
        ("npm error code EAI_AGAIN\nnpm error A complete log of this run can be found in: /tmp/x", "packages"),
        ("E: Unable to locate package curl", "packages"),
        (
            "  File \"synchronize.py\", line 57, in __init__\n    sl = self._semlock = _multiprocessing.SemLock(\nOSError: [Errno 38] Function not implemented",
            "shared_memory",
        ),
        (
            "error[E0433]: failed to resolve: use of undeclared crate or module `serde`\n\nFor more information about this error, try `rustc --explain E0433`.",
            "modules",
        ),
    ] {
        assert_eq!(failed(stderr), Some(name), "{stderr}");
    }
}

#[test]
fn a_hint_is_one_sentence_and_each_row_has_its_name() {
    let names: HashSet<&str> = ROWS.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), ROWS.len());
    for Row { name, hint, evidence, .. } in ROWS {
        let small = |words: &[&str]| words.iter().all(|word| *word == word.to_ascii_lowercase());
        match evidence {
            Evidence::Words(lists) => assert!(lists.iter().all(|words| small(words)), "{name}"),
            Evidence::WordsNear { words, near } => {
                assert!(words.iter().all(|words| small(words)) && small(near), "{name}")
            }
            Evidence::Verdict | Evidence::Exit(_) => {}
        }
        assert!(hint.ends_with('.') && !hint.contains(". ") && hint.len() < 220, "{name}: {hint}");
    }
}

/// The time is a few searches through the end of the output, whatever a program prints.
#[test]
fn output_made_to_slow_the_search_does_not() {
    let begun = std::time::Instant::now();
    for piece in
        ["^\n", "panic: ", "\n\t", "\nfatal error: \n\ngoroutin", "  \n", "FATAL ERROR: \n1: 0x", "spawnEAGAI", "\n"]
    {
        let end = ["Node.js v1", "\t", "1: 0x", "error: aborting due to ", "."];
        for end in end {
            let stderr = format!("{}\n{end}", piece.repeat((4 << 20) / piece.len()));
            row(Status::Failed, 1, stderr.as_bytes());
            row(Status::OutputLimit, 137, stderr.as_bytes());
        }
    }
    // 80 searches. Without a bound on the length, each would take longer than all of them.
    assert!(begun.elapsed() < std::time::Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[test]
fn the_page_lists_the_table() {
    let cell = |text: &str| text.replace('|', "\\|");
    let of = |row: &Row| {
        let verdicts: Vec<String> = row.verdicts.iter().map(|status| format!("`{status}`")).collect();
        let words = |lists: &[&[&str]]| {
            let list = |words: &&[&str]| {
                words.iter().map(|word| format!("`{}`", word.trim())).collect::<Vec<_>>().join(" with ")
            };
            lists.iter().map(list).collect::<Vec<_>>().join(", ")
        };
        let evidence = match row.evidence {
            Evidence::Verdict => "the verdict alone".to_owned(),
            Evidence::Exit(code) => format!("exit code {code}"),
            Evidence::Words(lists) => words(lists),
            Evidence::WordsNear { words: lists, near } => {
                format!("{}; near them {}", words(lists), words(&[near]).replace(" with ", " or "))
            }
        };
        format!("| `{}` | {} | {} | {} |", row.name, verdicts.join(", "), cell(&evidence), cell(row.hint))
    };
    let expected: Vec<String> = ROWS.iter().map(of).collect();
    let listed: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(listed, expected, "docs/hints.md should have these rows:\n{}\n", expected.join("\n"));
}
