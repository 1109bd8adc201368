//! The delivery of a program to its interpreter: as lines after the header if it is short, and through a pipe if the
//! interpreter was started ahead of the call.

use crate::language::Language;
use crate::run::RunSpec;

/// Bound on a program sent in lines. PID 1 reads lines byte by byte, so a longer one takes more time than starting
/// `tar`. Also the size that a pipe takes in one write.
const MAX_IN_LINES: usize = 4096;

/// A program that is short enough to be sent in lines, and that a shell can keep in a variable.
pub(super) struct Lines<'a>(&'a [u8]);

impl<'a> Lines<'a> {
    pub(super) fn of(code: &'a [u8]) -> Option<Self> {
        (code.len() < MAX_IN_LINES && !code.is_empty() && !code.contains(&0)).then_some(Self(code))
    }

    /// The lines of an argument, of any length. An empty argument has no lines.
    pub(super) fn of_argument(arg: &'a str) -> Self {
        Self(arg.as_bytes())
    }

    /// The number of lines. A `-` after it means that the last newline is not the program's.
    pub(super) fn count(&self) -> String {
        let ends = memchr::memchr_iter(b'\n', self.0).count();
        if self.is_closed() { ends.to_string() } else { format!("{}-", ends + 1) }
    }

    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0);
        if !self.is_closed() {
            out.push(b'\n');
        }
    }

    fn is_closed(&self) -> bool {
        self.0.is_empty() || self.0.ends_with(b"\n")
    }
}

/// Whether an interpreter that was started ahead, and reads the program from a pipe, behaves just like one that is
/// started after the program and its files are in place. If not, it is started anew.
pub fn may_be_fed(spec: &RunSpec) -> bool {
    // The interpreter was started without arguments.
    if !spec.args.is_empty() {
        return false;
    }
    match spec.language {
        // An archive with a program in it is run like a program, but an archive cannot be a pipe. It always has NUL
        // bytes.
        Language::Python | Language::Javascript if spec.code.contains(&0) => false,
        // Python reopens a file that declares another encoding, and a pipe cannot be reopened.
        Language::Python => !first_lines(&spec.code).any(names_an_encoding),
        // Node looks up whether this file makes the program a module before it opens the program.
        Language::Javascript => !spec.files.iter().any(|file| file.name.as_str() == "package.json"),
        // The shell runs while it reads: a longer program would keep PID 1 busy, which has to watch. The program would
        // also see its own writes to its file.
        Language::Shell => Lines::of(&spec.code).is_some() && !may_change_itself(&spec.code),
        Language::Go | Language::Rust => false,
    }
}

/// Whether a comment declares an encoding other than `utf-8`, in exactly this spelling: only for it Python does not
/// reopen the file.
fn names_an_encoding(line: &[u8]) -> bool {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    let starts = line.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\x0c'));
    starts == Some(&b'#')
        && memchr::memmem::find_iter(line, b"coding").any(|at| {
            let rest = &line[at + b"coding".len()..];
            let Some((b':' | b'=', name)) = rest.split_first() else { return false };
            let name = name.trim_ascii_start();
            let end = name.iter().position(|byte| !(byte.is_ascii_alphanumeric() || b"-_.".contains(byte)));
            &name[..end.unwrap_or(name.len())] != b"utf-8"
        })
}

fn may_change_itself(code: &[u8]) -> bool {
    let has = |word: &str| memchr::memmem::find(code, word.as_bytes()).is_some();
    has(">") && (has("$0") || has("${0") || has(Language::Shell.recipe().program))
}

/// Covers the first two lines, in which a program may declare its encoding. With CRLF, each line gives two pieces.
fn first_lines(code: &[u8]) -> impl Iterator<Item = &[u8]> {
    code.split(|byte| matches!(byte, b'\n' | b'\r')).take(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::FileName;
    use crate::run::{InputFile, Overflow, RunId};
    use crate::settings::Settings;

    fn spec(language: Language, code: &str, file: &str) -> RunSpec {
        RunSpec {
            id: RunId::generate(),
            language,
            code: code.to_owned().into(),
            args: Vec::new(),
            files: vec![InputFile { name: FileName::parse(file).unwrap(), bytes: "{}".into() }],
            stdin: "".into(),
            limits: Settings::default().limits(),
            overflow: Overflow::Kill,
            label: None,
        }
    }

    #[test]
    fn a_program_that_would_notice_gets_an_interpreter_of_its_own() {
        let long = "x".repeat(MAX_IN_LINES);
        for (language, code, file, fed) in [
            (Language::Python, "print(1)", "coding.txt", true),
            (Language::Python, "# -*- coding: latin-1 -*-\n", "a", false),
            (Language::Python, "#!/usr/bin/python\r\n# vim: fileencoding=koi8-r\r\n", "a", false),
            (Language::Python, "\u{feff} # coding=utf8", "a", false),
            (Language::Python, "# -*- coding: utf-8 -*-\n", "a", true),
            (Language::Python, "open('x', encoding='latin-1')  # coding: none\n", "a", true),
            (Language::Python, "print('PK')\0", "a", false),
            (Language::Javascript, "1;\0", "a", false),
            (Language::Shell, "echo 'echo again' >>\"$0\"", "a", false),
            (Language::Shell, "echo $0; cat main.sh", "a", true),
            (Language::Python, "\n\n\n\n# a third line names no coding: x", "a", true),
            (Language::Python, &long, "a", true),
            (Language::Javascript, "import 'fs'", "sub/package.json", true),
            (Language::Javascript, "import 'fs'", "package.json", false),
            (Language::Shell, "echo", "a", true),
            (Language::Shell, &long, "a", false),
            (Language::Go, "package main", "a", false),
            (Language::Rust, "fn main() {}", "a", false),
        ] {
            assert_eq!(may_be_fed(&spec(language, code, file)), fed, "{language}, {file}: {:.40}", code);
        }
    }

    #[test]
    fn arguments_need_an_interpreter_of_its_own() {
        let spec = spec(Language::Shell, "echo $1", "a");
        assert!(may_be_fed(&spec) && !may_be_fed(&RunSpec { args: vec!["x".into()], ..spec }));
    }

    #[test]
    fn lines_are_counted_with_the_last_one_open_or_closed() {
        for (code, count, sent) in
            [("a", "1-", "a\n"), ("a\n", "1", "a\n"), ("\n\n", "2", "\n\n"), ("a\n\nb", "3-", "a\n\nb\n")]
        {
            let lines = Lines::of(code.as_bytes()).unwrap();
            let mut out = Vec::new();
            lines.append_to(&mut out);
            assert_eq!((lines.count().as_str(), out.as_slice()), (count, sent.as_bytes()));
        }
    }

    #[test]
    fn what_a_shell_cannot_hold_goes_into_the_tar() {
        let (longest, longer) = (vec![b'x'; MAX_IN_LINES - 1], vec![b'x'; MAX_IN_LINES]);
        assert!(Lines::of(&longest).is_some());
        for code in [&longer[..], b"", b"a\0b"] {
            assert!(Lines::of(code).is_none());
        }
    }
}
