//! The title of a run without a label: the first comment of its program, or its first line. Pure. The text may be
//! hostile.

use crate::language::Language;

/// Bytes of the program's beginning that are searched.
const LOOKED_AT: usize = 4 << 10;
const LINES: usize = 60;
/// Characters of a title.
const CHARS: usize = 120;

/// `None` if the run has a label, which is then its title.
pub fn beside(label: Option<&str>, language: Language, code: &[u8]) -> Option<String> {
    if label.is_some_and(|label| !label.trim().is_empty()) { None } else { of(language, code) }
}

/// `None` if the program has no line that could be a title.
fn of(language: Language, code: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(&code[..code.len().min(LOOKED_AT)]);
    let lines: Vec<&str> = text.lines().take(LINES).map(str::trim).filter(|line| !line.is_empty()).collect();
    let comment = lines.iter().enumerate().find_map(|(at, line)| comment(language, line, lines.get(at + 1).copied()));
    let program = || lines.iter().copied().find(|line| !is_preamble(language, line));
    let any = || lines.iter().copied().find(|line| has_words(line) && !line.starts_with("#!"));
    comment.or_else(program).or_else(any).map(shortened)
}

/// The words of a comment. `next` is the line below, for a comment that begins with its marks alone.
fn comment<'a>(language: Language, line: &'a str, next: Option<&'a str>) -> Option<&'a str> {
    let words = match language {
        Language::Python | Language::Shell => match line.strip_prefix('#') {
            Some(rest) => rest.trim_matches('#'),
            None if language == Language::Python => docstring(line, next)?,
            None => return None,
        },
        Language::Javascript | Language::Go | Language::Rust => {
            if let Some(rest) = line.strip_prefix("//") {
                rest.trim_start_matches(['/', '!'])
            } else {
                let rest = line.strip_prefix("/*")?.trim_start_matches(['*', '!']).trim();
                let rest = if rest.is_empty() { next?.trim_start_matches('*') } else { rest };
                rest.split("*/").next().unwrap_or_default()
            }
        }
    };
    let words = words.trim();
    (has_words(words) && !is_directive(line, words)).then_some(words)
}

fn docstring<'a>(line: &'a str, next: Option<&'a str>) -> Option<&'a str> {
    let mark = ["\"\"\"", "'''"].into_iter().find(|mark| line.starts_with(mark))?;
    let rest = line[mark.len()..].trim();
    let rest = if rest.is_empty() { next? } else { rest };
    Some(rest.trim_end_matches(mark))
}

/// A comment for a tool, not for a reader.
fn is_directive(line: &str, words: &str) -> bool {
    let tools = [
        "-*-",
        "coding:",
        "coding=",
        "vim:",
        "type:",
        "noqa",
        "pylint",
        "flake8",
        "mypy",
        "ruff",
        "pragma",
        "shellcheck",
        "eslint",
        "prettier",
        "@ts-",
        "@flow",
        "+build",
        "/ script",
        "use strict",
        "SPDX-",
    ];
    line.starts_with("#!") || line.starts_with("//go:") || tools.iter().any(|tool| words.starts_with(tool))
}

/// A line that is usual above a program and tells little about it.
fn is_preamble(language: Language, line: &str) -> bool {
    let starts: &[&str] = match language {
        Language::Python => &["import ", "from ", "#"],
        Language::Javascript => &["import ", "'use strict'", "\"use strict\"", "//", "/*", "*"],
        Language::Shell => &["set -", "set +", "#"],
        Language::Go => &["package ", "import ", "\"", ")", "func main()", "//", "/*", "*"],
        Language::Rust => &["use ", "extern ", "#![", "#[", "fn main()", "//", "/*", "*"],
    };
    starts.iter().any(|start| line.starts_with(start))
        || (language == Language::Javascript && is_require(line))
        || !has_words(line)
}

fn is_require(line: &str) -> bool {
    ["const ", "let ", "var "].iter().any(|word| line.starts_with(word)) && line.contains("require(")
}

fn has_words(line: &str) -> bool {
    line.chars().any(char::is_alphanumeric)
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}\u{2026}", line[..end].trim_end()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(language: &str, code: &str) -> Option<String> {
        of(language.parse().unwrap(), code.as_bytes())
    }

    #[test]
    fn the_first_comment_names_a_program_and_otherwise_its_first_line() {
        for (language, code, expected) in [
            ("python", "import csv\n\n# Sum the sales by month.\nprint(1)", "Sum the sales by month."),
            ("python", "#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\n## Clean the data ##\n", "Clean the data"),
            ("python", "\"\"\"Draw a chart.\n\nMore.\"\"\"\nimport x", "Draw a chart."),
            ("python", "'''\nDraw a chart.\n'''", "Draw a chart."),
            ("python", "import csv\nfrom x import y\nprint(2 + 3)\n", "print(2 + 3)"),
            ("python", "import this\n", "import this"),
            ("python", "# ----\n# noqa\nx = 1", "x = 1"),
            ("shell", "#!/bin/sh\nset -eu\n\nls -l", "ls -l"),
            ("shell", "#!/bin/sh\n# Count the lines\nwc -l", "Count the lines"),
            ("javascript", "'use strict';\nconst fs = require('fs');\nconsole.log(1)", "console.log(1)"),
            ("javascript", "/**\n * Parse the log.\n */\nx()", "Parse the log."),
            ("javascript", "// eslint-disable\n/* Sort */ x()", "Sort"),
            (
                "go",
                "//go:build linux\npackage main\nimport (\n\t\"fmt\"\n)\nfunc main() {\nfmt.Println(1)\n}",
                "fmt.Println(1)",
            ),
            ("rust", "#![allow(x)]\nuse std::fs;\n/// Reads it.\nfn main() {}", "Reads it."),
        ] {
            assert_eq!(title(language, code).as_deref(), Some(expected), "{code}");
        }
    }

    #[test]
    fn what_says_nothing_has_no_title_and_a_long_line_is_cut_between_letters() {
        for code in ["", " \n\n", "#!/bin/sh\n", "{}\n--\n"] {
            assert_eq!(title("shell", code), None, "{code:?}");
        }
        let long = title("python", &format!("# {}", "\u{e9}".repeat(5000))).unwrap();
        assert_eq!(long, format!("{}\u{2026}", "\u{e9}".repeat(CHARS)));
        assert!(of(Language::Python, b"# \xff\xfe a").unwrap().ends_with('a'));
    }
}
