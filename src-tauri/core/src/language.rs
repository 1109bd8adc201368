//! The table of languages: one row for each.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Language {
    Python,
    Javascript,
    Shell,
    Go,
    Rust,
}

/// The parts of a container that depend on the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    pub name: &'static str,
    pub title: &'static str,
    /// The version that an agent may rely on.
    pub version: &'static str,
    pub aliases: &'static [&'static str],
    pub default_image: &'static str,
    /// The name of the program's file in the working folder.
    pub program: &'static str,
    /// The command that runs in the working folder. The program's own arguments follow it.
    pub command: &'static [&'static str],
    /// `PATH` inside the container: where the language's official image keeps its tools.
    pub path: &'static str,
    /// Size of `/tmp`, in MiB. Compilers write there.
    pub tmp_mib: u32,
    /// Whether files in `/tmp` may be executed: a compiled program is.
    pub tmp_exec: bool,
    /// Whether the command can be started ahead of its program, because it opens the program only once it has started.
    pub preload: bool,
    /// The script that prepares the image once, as root and without a network. The result is an image of Sandtray's
    /// own.
    pub prepare: Option<&'static str>,
}

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Builds the folder as `go build` does: files for other systems, for tests or for another build are left out. If there
/// is no `go.mod`, one with the compiler's own version is assumed (an older version would forbid newer features). A
/// `main.go` alone is built by its name, whatever its build constraints say, as `go run` does.
///
/// Without `goindex` the compiler would write an index of a package whose files are older than two seconds into its
/// cache, which is read-only.
///
/// The compiler gets the variables that it needs. The program sees neither them nor those that the shell exports by
/// itself.
const GO: &str = r#"
c=/opt/sandtray/go-cache; [ -d $c ] || c=/tmp/go-cache
compiler() {
    env HOME=/tmp GOCACHE=$c GOTMPDIR=/tmp GOPATH=/tmp/go GOFLAGS=-trimpath GOPROXY=off GOSUMDB=off GOTELEMETRY=off \
        GOTOOLCHAIN=local GODEBUG=goindex=0 CGO_ENABLED=0 go "$@"
}
what=.
if ! [ -f go.mod ] && ! [ -f go.work ]; then
    what=main.go
    for file in *.go; do [ "$file" = main.go ] || what=.; done
    if [ $what = . ]; then
        version=$(compiler env GOVERSION) || exit
        version=${version##*go} version=${version%%[!0-9.]*} minor=${version#*.}
        printf 'module sandbox\ngo %s.%s\n' ${version%%.*} ${minor%%.*} >/tmp/.sandtray.mod
        printf '{"Replace": {"/sandbox/go.mod": "/tmp/.sandtray.mod"}}' >/tmp/.sandtray.overlay
        what='-mod=readonly -overlay=/tmp/.sandtray.overlay .'
    fi
fi
compiler build -o /tmp/program $what || exit
unset PWD OLDPWD SHLVL; exec /tmp/program "$@""#;

/// Builds the standard library into a cache, because the official image has none, and each call would compile it for
/// ten seconds. The cache is used read-only. The compiler ignores it unless the variables here are the same as at the
/// call.
const GO_PREPARE: &str = "\
mkdir -p /opt/sandtray && env HOME=/tmp GOCACHE=/opt/sandtray/go-cache GOTMPDIR=/tmp GOPATH=/tmp/go GOFLAGS=-trimpath GOPROXY=off \
GOSUMDB=off GOTELEMETRY=off GOTOOLCHAIN=local CGO_ENABLED=0 go build std && chmod -R a+rX /opt/sandtray && rm -rf /tmp/go";

/// The official image's rustc is a rustup proxy, which looks for its toolchain in RUSTUP_HOME.
const RUST: &str = "\
env RUSTUP_HOME=/usr/local/rustup CARGO_HOME=/tmp/cargo rustc --edition 2021 -O -o /tmp/program main.rs || exit
unset PWD OLDPWD SHLVL; exec /tmp/program \"$@\"";

const PYTHON: Recipe = Recipe {
    name: "python",
    title: "Python",
    version: "3.12",
    aliases: &["py", "python3"],
    default_image: "python:3.12-slim",
    program: "main.py",
    // -u: output before a kill is not lost in a buffer, and streams arrive as they are written.
    command: &["python3", "-u", "main.py"],
    path: PATH,
    tmp_mib: 16,
    tmp_exec: false,
    preload: true,
    prepare: None,
};

const JAVASCRIPT: Recipe = Recipe {
    name: "javascript",
    title: "JavaScript",
    version: "Node 22",
    aliases: &["js", "node"],
    default_image: "node:22-slim",
    program: "main.js",
    command: &["node", "main.js"],
    path: PATH,
    tmp_mib: 16,
    tmp_exec: false,
    preload: true,
    prepare: None,
};

const SHELL: Recipe = Recipe {
    name: "shell",
    title: "Shell",
    version: "POSIX sh on Alpine",
    aliases: &["sh"],
    default_image: "alpine:3.22",
    program: "main.sh",
    command: &["sh", "main.sh"],
    path: PATH,
    tmp_mib: 16,
    tmp_exec: false,
    preload: true,
    prepare: None,
};

const GO_RECIPE: Recipe = Recipe {
    name: "go",
    title: "Go",
    version: "1.21 or later",
    aliases: &[],
    default_image: "golang:1.24-bookworm",
    program: "main.go",
    command: &["sh", "-c", GO, "main.go"],
    path: "/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    // A cold build compiles the standard library into the cache: 41 MB, with work files beside it.
    tmp_mib: 192,
    tmp_exec: true,
    preload: false,
    prepare: Some(GO_PREPARE),
};

const RUST_RECIPE: Recipe = Recipe {
    name: "rust",
    title: "Rust",
    version: "1.75 or later, edition 2021",
    aliases: &[],
    default_image: "rust:1.90-slim-bookworm",
    program: "main.rs",
    command: &["sh", "-c", RUST, "main.rs"],
    path: "/usr/local/cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    tmp_mib: 128,
    tmp_exec: true,
    preload: false,
    prepare: None,
};

impl Language {
    pub const ALL: [Language; 5] =
        [Language::Python, Language::Javascript, Language::Shell, Language::Go, Language::Rust];

    pub fn recipe(self) -> &'static Recipe {
        match self {
            Language::Python => &PYTHON,
            Language::Javascript => &JAVASCRIPT,
            Language::Shell => &SHELL,
            Language::Go => &GO_RECIPE,
            Language::Rust => &RUST_RECIPE,
        }
    }

    pub fn name(self) -> &'static str {
        self.recipe().name
    }

    /// The list of names for a refusal.
    pub fn names() -> String {
        Self::ALL.map(Language::name).join(", ")
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(word: &str) -> Result<Self, UnknownLanguage> {
        Self::ALL
            .into_iter()
            .find(|language| language.name() == word || language.recipe().aliases.contains(&word))
            .ok_or(UnknownLanguage)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no such language; there are {}", Language::names())]
pub struct UnknownLanguage;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_and_aliases_lead_to_one_language_each() {
        let mut seen = HashSet::new();
        for language in Language::ALL {
            for word in std::iter::once(&language.name()).chain(language.recipe().aliases) {
                assert!(seen.insert(*word), "{word} stands twice");
                assert_eq!(word.parse(), Ok(language));
            }
        }
        for word in ["node", "js", "py", "python3", "sh"] {
            assert!(seen.contains(word), "the contract promises the alias {word}");
        }
    }

    #[test]
    fn an_unknown_language_names_those_there_are() {
        assert_eq!(
            "perl".parse::<Language>().unwrap_err().to_string(),
            "there is no such language; there are python, javascript, shell, go, rust"
        );
    }
}
