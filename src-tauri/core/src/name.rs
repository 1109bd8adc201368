//! Names of files that go into or come out of a container: relative paths of plain components.

use std::fmt;

use serde::Serialize;

pub const MAX_COMPONENT_BYTES: usize = 255;
pub const MAX_DEPTH: usize = 16;

/// A relative path that cannot leave its folder on any system. No `..`, no `.`, no leading `/`, no NUL, no backslash.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct FileName(String);

/// The reason why a name was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    #[error("is empty")]
    Empty,
    #[error("starts with a slash; names are relative to the program's folder")]
    Absolute,
    #[error("holds a component that is empty, `.` or `..`")]
    DotComponent,
    #[error("holds a NUL character")]
    Nul,
    #[error("holds a backslash; use `/` between folders")]
    Backslash,
    #[error("has a component longer than 255 bytes")]
    LongComponent,
    #[error("is more than 16 components deep")]
    TooDeep,
}

impl FileName {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// If the name could leave its folder, is empty, too long or too deep, or holds a forbidden character.
    pub fn parse(text: &str) -> Result<Self, NameFault> {
        if text.is_empty() {
            return Err(NameFault::Empty);
        }
        if text.starts_with('/') {
            return Err(NameFault::Absolute);
        }
        if text.contains('\0') {
            return Err(NameFault::Nul);
        }
        if text.contains('\\') {
            return Err(NameFault::Backslash);
        }
        let mut depth = 0;
        for component in text.split('/') {
            depth += 1;
            if matches!(component, "" | "." | "..") {
                return Err(NameFault::DotComponent);
            }
            if component.len() > MAX_COMPONENT_BYTES {
                return Err(NameFault::LongComponent);
            }
        }
        if depth > MAX_DEPTH {
            return Err(NameFault::TooDeep);
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn first_component(&self) -> &str {
        self.0.split('/').next().unwrap_or(&self.0)
    }

    /// The folders above the file, outermost first: `a/b/c` gives `a`, `a/b`.
    pub fn parents(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').map(|(at, _)| &self.0[..at])
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_relative_names_pass() {
        let longest = "x".repeat(255);
        let deepest = ["d"; 16].join("/");
        for name in ["a", "a..b.txt", "..a", "-rf", "new\nline", "ä/ö.csv", "a b/c", &longest, &deepest] {
            assert_eq!(FileName::parse(name).map(|n| n.as_str().to_owned()), Ok(name.to_owned()));
        }
    }

    #[test]
    fn names_that_could_leave_the_folder_are_refused() {
        let long = "x".repeat(256);
        let deep = ["d"; 17].join("/");
        for (name, fault) in [
            ("", NameFault::Empty),
            ("/etc/passwd", NameFault::Absolute),
            ("../x", NameFault::DotComponent),
            ("a/../../x", NameFault::DotComponent),
            (".", NameFault::DotComponent),
            ("a//b", NameFault::DotComponent),
            ("a/", NameFault::DotComponent),
            ("a\0b", NameFault::Nul),
            ("..\\x", NameFault::Backslash),
            (&long, NameFault::LongComponent),
            (&deep, NameFault::TooDeep),
        ] {
            assert_eq!(FileName::parse(name), Err(fault), "{name:?}");
        }
    }

    #[test]
    fn parents_are_listed_outermost_first() {
        let name = FileName::parse("a/b/c").unwrap();
        assert_eq!(name.parents().collect::<Vec<_>>(), ["a", "a/b"]);
        assert_eq!(name.first_component(), "a");
    }
}
