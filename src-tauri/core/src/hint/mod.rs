//! Explains a failed run if a wall of the container is the reason: one sentence for a model and a person. The sentences
//! and their conditions are data ([`ROWS`]); this file looks them up. Pure. The output is untrusted and read within
//! bounds.

mod table;
mod words;

use memchr::memmem;

use crate::run::{Outcome, Status};

pub use table::ROWS;
use words::{NEAR_BYTES, last_words};

/// A sentence and its conditions. The first row that matches is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub name: &'static str,
    /// The verdicts that the row applies to. Never [`Status::Ok`].
    pub verdicts: &'static [Status],
    pub evidence: Evidence,
    pub hint: &'static str,
}

/// The evidence that a run must show beside its verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// None: the verdict is enough.
    Verdict,
    /// This exit code.
    Exit(i32),
    /// All words of one of these lists, in the last lines of standard error. They are lower-case here and match any
    /// case. A word that begins with a line end matches at the beginning of a line.
    Words(&'static [&'static [&'static str]]),
    /// The same, and also one of `near` ahead of those lines, in the report that they end.
    WordsNear { words: &'static [&'static [&'static str]], near: &'static [&'static str] },
}

/// The hint of a run, if there is one.
pub fn of(outcome: &Outcome) -> Option<&'static str> {
    row(outcome.status, outcome.exit_code, &outcome.stderr.bytes).map(|row| row.hint)
}

/// The row that matches a run. Takes time linear in the length of the part of `stderr` that is read, whatever its
/// content.
pub fn row(status: Status, exit_code: i32, stderr: &[u8]) -> Option<&'static Row> {
    if matches!(status, Status::Ok | Status::Cancelled) {
        return None;
    }
    let last = &last_words(status, stderr).to_ascii_lowercase();
    let near = &stderr[stderr.len().saturating_sub(NEAR_BYTES)..].to_ascii_lowercase();
    ROWS.iter().filter(|row| row.verdicts.contains(&status)).find(|row| match row.evidence {
        Evidence::Verdict => true,
        Evidence::Exit(code) => code == exit_code,
        Evidence::Words(words) => says(last, words),
        Evidence::WordsNear { words, near: others } => says(last, words) && others.iter().any(|word| has(near, word)),
    })
}

fn says(text: &[u8], lists: &[&[&str]]) -> bool {
    lists.iter().any(|words| words.iter().all(|word| has(text, word)))
}

fn has(text: &[u8], word: &str) -> bool {
    match word.strip_prefix('\n') {
        Some(first) => text.starts_with(first.as_bytes()) || memmem::find(text, word.as_bytes()).is_some(),
        None => memmem::find(text, word.as_bytes()).is_some(),
    }
}

#[cfg(test)]
mod tests;
