//! Holds the shape of the code: which module of the core may know which, and what is named in one place only.
//!
//! It reads the sources as text, so it knows `use crate::x` and `crate::x::y`, not what a macro makes of them. Tests and
//! comments are left out: they may name anything.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail it by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Every module of the core and all that it names of the others. In this order a module knows only those above it.
/// A new module is a new row; a row that says more than is true fails too.
const MODULES: &[(&str, &[&str])] = &[
    ("budget", &[]),
    ("codec", &["budget"]),
    ("language", &[]),
    ("name", &[]),
    ("text", &[]),
    ("time", &[]),
    ("traffic", &[]),
    ("visitors", &[]),
    ("run", &["language", "name"]),
    ("disk", &["time"]),
    ("paths", &["disk"]),
    ("settings", &["disk", "language", "run"]),
    ("collector", &["run"]),
    ("hint", &["run"]),
    ("queue", &[]),
    ("title", &["language"]),
    ("launcher", &["language", "name", "run", "time"]),
    ("engine", &["language", "launcher", "run"]),
    ("event", &["engine", "language", "run", "time"]),
    ("error", &["engine", "run"]),
    ("instance", &["disk", "engine", "paths"]),
    ("history", &["disk", "error", "run", "settings", "time", "title"]),
    ("protocol", &["codec", "engine", "error", "event", "hint", "history", "language", "run"]),
    ("policy", &["error", "language", "name", "protocol", "run"]),
    ("janitor", &["engine", "traffic"]),
    ("lease", &["engine", "janitor", "launcher"]),
    ("pool", &["engine", "janitor", "language", "lease", "run", "traffic"]),
    ("leases", &["engine", "janitor", "lease", "pool", "run", "traffic"]),
    ("tap", &["lease", "run"]),
    ("executor", &["budget", "collector", "engine", "error", "launcher", "lease", "run", "tap"]),
    (
        "supervisor",
        &[
            "budget", "engine", "error", "event", "executor", "janitor", "language", "lease", "leases", "pool",
            "queue", "run", "settings", "tap", "title",
        ],
    ),
    ("owner", &["engine", "history", "settings", "supervisor"]),
    ("recorder", &["error", "history", "settings", "supervisor"]),
    ("wall_check", &["engine", "error", "executor", "language", "leases", "run", "supervisor"]),
    (
        "ipc",
        &[
            "budget",
            "codec",
            "error",
            "event",
            "history",
            "language",
            "policy",
            "protocol",
            "run",
            "supervisor",
            "visitors",
        ],
    ),
    (
        "service",
        &[
            "budget",
            "engine",
            "history",
            "instance",
            "ipc",
            "janitor",
            "leases",
            "owner",
            "paths",
            "recorder",
            "settings",
            "supervisor",
            "visitors",
            "wall_check",
        ],
    ),
];

/// Words, and the only files of the app that may hold them. Tauri brings a browser's libraries with it: the window has it, and the
/// app, which lives as long as its owner is logged in, has not.
const APP_PLACES: &[(&str, &[&str])] = &[
    ("tauri", &[]),
    ("ksni", &["tray/linux.rs"]),
    ("zbus", &["lib.rs", "notify/linux.rs"]),
    ("notify_rust", &["notify/native.rs"]),
    ("tray_icon", &["tray/native.rs"]),
    ("tao", &["tray/native.rs"]),
    ("arboard", &["clipboard.rs"]),
    ("x11rb", &["screen.rs"]),
    ("auto_launch", &["login.rs"]),
    ("image_webp", &["thumbnail/formats.rs"]),
    ("zune_jpeg", &["thumbnail/formats.rs"]),
    ("Command", &["remedy/links.rs", "thumbnail/process.rs", "window/process.rs"]),
];

/// The same of the window. All that it has of the app is what the two say to each other.
const WINDOW_PLACES: &[(&str, &[&str])] = &[
    ("fs", &["save.rs", "save_all.rs", "stdio.rs"]),
    ("tempfile", &["save.rs"]),
    ("png", &[]),
    ("tauri_plugin_dialog", &["main.rs", "save.rs", "save_all.rs"]),
    ("rustix", &["stdio.rs"]),
    ("service", &[]),
    ("supervisor", &[]),
    ("history", &[]),
    ("Command", &[]),
];

/// Words, and the only places of the core that may hold them.
const PLACES: &[(&str, &[&str], &[&str])] = &[
    ("the engine's client", &["bollard"], &["engine/container.rs", "engine/docker/"]),
    (
        "sockets",
        &["tokio::net", "std::net", "std::os::unix::net", "UnixStream", "UnixListener", "TcpStream", "TcpListener"],
        &["ipc/unix.rs", "ipc/windows.rs"],
    ),
    (
        "the disk",
        &["std::fs", "tokio::fs", "rustix::fs", "File::open", "File::create", "OpenOptions"],
        &[
            "disk.rs",
            "history/reserve.rs",
            "history/schema.rs",
            "history/worker.rs",
            "instance.rs",
            "engine/discovery.rs",
            // Tells a socket that is missing from one that may not be looked at.
            "engine/docker/errors.rs",
            // The folder of the socket, its lock, and the socket itself.
            "ipc/unix.rs",
            // Facts about a peer from the kernel, in /proc.
            "ipc/process.rs",
        ],
    ),
    ("the environment", &["std::env", "env::var"], &["paths.rs", "engine/discovery.rs"]),
    ("SQLite", &["rusqlite"], &["history/"]),
    ("printing", &["println!", "print!", "eprintln!", "eprint!", "dbg!"], &[]),
    ("the desktop", &["tauri", "notify_rust"], &[]),
];

#[test]
fn every_module_knows_only_what_it_may() {
    let allowed: BTreeMap<&str, BTreeSet<&str>> =
        MODULES.iter().map(|(module, others)| (*module, others.iter().copied().collect())).collect();
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for Source { place, text } in core() {
        let module = module_of(&place);
        // lib.rs is the list of modules.
        if module == "lib" {
            continue;
        }
        let names = named.entry(module.to_owned()).or_default();
        names.extend(siblings(&text, &place).into_iter().filter(|other| other != module));
    }
    for (module, others) in &named {
        let row = allowed.get(module.as_str()).unwrap_or_else(|| panic!("`{module}` has no row in the table"));
        let others: BTreeSet<&str> = others.iter().map(String::as_str).collect();
        let new: Vec<_> = others.difference(row).collect();
        let gone: Vec<_> = row.difference(&others).collect();
        assert!(new.is_empty(), "`{module}` names {new:?}, which its row does not allow");
        assert!(gone.is_empty(), "the row of `{module}` allows {gone:?}, which it does not name");
    }
    let missing: Vec<_> = allowed.keys().filter(|module| !named.contains_key(**module)).collect();
    assert!(missing.is_empty(), "the table has rows for modules that are not there: {missing:?}");
}

#[test]
fn dependencies_point_one_way() {
    let place = |module: &str| MODULES.iter().position(|(name, _)| *name == module);
    for (at, (module, others)) in MODULES.iter().enumerate() {
        for other in *others {
            assert!(place(other).is_some_and(|other| other < at), "`{module}` knows `{other}`, which is not above it");
        }
    }
}

#[test]
fn what_has_one_place_is_named_there_only() {
    for Source { place, text } in core() {
        for (what, words, places) in PLACES {
            let found: Vec<_> = words.iter().filter(|word| holds(&text, word)).collect();
            let here = places.iter().any(|allowed| place.starts_with(allowed));
            assert!(found.is_empty() || here, "{what} ({found:?}) in {place}; its places are {places:?}");
        }
    }
    for Source { place, text } in sources(&root().join("src-tauri/cli/src")) {
        for word in ["bollard", "rusqlite", "tauri", "notify_rust"] {
            assert!(!holds(&text, word), "`{word}` in the command line's {place}");
        }
    }
    for Source { place, text } in sources(&root().join("src-tauri/src")) {
        for word in ["bollard", "rusqlite"] {
            assert!(!holds(&text, word), "`{word}` in the app's {place}");
        }
        for (word, only) in APP_PLACES {
            assert!(!holds(&text, word) || only.contains(&place.as_str()), "`{word}` in the app's {place}");
        }
    }
    for Source { place, text } in sources(&root().join("src-tauri/window")) {
        for (word, only) in WINDOW_PLACES {
            assert!(!holds(&text, word) || only.contains(&place.as_str()), "`{word}` in the window's {place}");
        }
    }
    for manifest in ["src-tauri/core/Cargo.toml", "src-tauri/cli/Cargo.toml"] {
        let text = fs::read_to_string(root().join(manifest)).unwrap();
        assert!(!text.contains("tauri") && !text.contains("notify-rust"), "the desktop in {manifest}");
    }
}

#[test]
fn nothing_unwraps_outside_tests_and_every_file_says_what_it_owns() {
    for folder in ["src-tauri/core/src", "src-tauri/cli/src", "src-tauri/src", "src-tauri/window"] {
        for Source { place, text } in sources(&root().join(folder)) {
            assert!(!text.contains(".unwrap()"), "`.unwrap()` in {folder}/{place}");
            let file = fs::read_to_string(root().join(folder).join(&place)).unwrap();
            assert!(file.starts_with("//! "), "{folder}/{place} does not begin by saying what it owns");
        }
    }
}

/// The reader of this test sees what it is meant to see.
#[test]
fn names_are_found_whole_and_comments_are_not_read() {
    let text = code(
        "//! crate::not\nuse crate::run::Limits;\nfn f(x: &crate::engine::Exit) {} // crate::nor\n#[cfg(test)]\nmod tests { use crate::never; }\n",
    );
    let names: BTreeSet<String> = ["run", "engine"].map(str::to_owned).into();
    assert_eq!(siblings(&text, "a file"), names);
    assert!(holds("use bollard::Docker;", "bollard") && !holds("let tauriform = 1;", "tauri"));
    assert!(holds("print!(1)", "print!") && !holds("eprint!(1)", "print!"));
}

struct Source {
    /// Below the folder that was read, with `/` between folders.
    place: String,
    /// Without comments and tests.
    text: String,
}

fn core() -> Vec<Source> {
    sources(&root().join("src-tauri/core/src"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the repository").to_owned()
}

fn sources(folder: &Path) -> Vec<Source> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    assert!(!files.is_empty(), "no sources in {}", folder.display());
    let read = |path: PathBuf| {
        let place = path.strip_prefix(folder).unwrap().components().map(|part| part.as_os_str().to_string_lossy());
        Source { place: place.collect::<Vec<_>>().join("/"), text: code(&fs::read_to_string(&path).unwrap()) }
    };
    files.into_iter().map(read).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "tests") {
                collect(&path, files);
            }
        } else if path.extension().is_some_and(|kind| kind == "rs")
            && path.file_name().is_some_and(|name| name != "tests.rs")
        {
            files.push(path);
        }
    }
}

/// Up to the module of tests, which is always last, and without comments. (`//` in a string ends its line here too.)
fn code(file: &str) -> String {
    let only = ["test", "all(test, unix)", "all(test, target_os = \"linux\")"];
    let starts = only.map(|when| format!("#[cfg({when})]\nmod tests"));
    let end = starts.iter().filter_map(|start| file.find(start.as_str())).min().unwrap_or(file.len());
    file[..end].lines().map(|line| line.split("//").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

fn module_of(place: &str) -> &str {
    let first = place.split('/').next().unwrap_or(place);
    first.strip_suffix(".rs").unwrap_or(first)
}

/// What follows each `crate::`.
fn siblings(text: &str, place: &str) -> BTreeSet<String> {
    let after = text.split("crate::").skip(1);
    after
        .map(|rest| {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            assert!(!name.is_empty(), "{place}: name each module in a `use` of its own, not as `crate::{{...}}`");
            name
        })
        .collect()
}

/// Whether the word stands there whole.
fn holds(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}
