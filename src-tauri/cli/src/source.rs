//! Reads a program and its files, and detects the language.

use std::io::Read;
use std::path::Path;

use sandtray_core::language::Language;
use sandtray_core::protocol::reply::Content;
use serde_json::{Map, Value, json};

use crate::failure::Failure;

/// Most bytes read. The service accepts far less. A wrong path (a disk image, /dev/zero) must not fill the memory.
const MAX_READ: u64 = 16 << 20;

/// The program's text and its language.
pub(crate) fn program(
    file: Option<&Path>,
    code: Option<String>,
    language: Option<Language>,
) -> Result<(Language, String), Failure> {
    let (code, file) = match (code, file) {
        (Some(code), _) => (code, None),
        (None, Some(file)) => (text(file)?, Some(file)),
        (None, None) => {
            return Err(Failure::with_hint("There is no program to run.", "Name a file, or use -l LANGUAGE -c CODE."));
        }
    };
    let language = language.or_else(|| file.and_then(by_extension)).or_else(|| by_shebang(&code));
    let language = language.ok_or_else(|| {
        let what = file.map_or_else(|| "of the program".into(), |file| format!("of {}", file.display()));
        Failure::with_hint(
            format!("The language {what} can't be told."),
            format!("Say it with -l; there are {}.", Language::names()),
        )
    })?;
    Ok((language, code))
}

/// `NAME=PATH`, or a path alone, which keeps its file name.
pub(crate) fn files(given: &[String]) -> Result<Value, Failure> {
    let mut files = Map::new();
    for entry in given {
        let (name, path) = match entry.split_once('=') {
            Some((name, path)) => (name.to_owned(), Path::new(path)),
            None => {
                let path = Path::new(entry);
                let name = path.file_name().ok_or_else(|| Failure::new(format!("`{entry}` names no file.")))?;
                (name.to_string_lossy().into_owned(), path)
            }
        };
        let content = content(&bytes(path)?)?;
        if files.insert(name.clone(), content).is_some() {
            return Err(Failure::new(format!("Two files have the name `{name}`.")));
        }
    }
    Ok(Value::Object(files))
}

pub(crate) fn stdin(path: &Path) -> Result<Value, Failure> {
    content(&bytes(path)?)
}

fn content(bytes: &[u8]) -> Result<Value, Failure> {
    serde_json::to_value(Content::of(bytes)).map_err(|error| Failure::new(format!("A file has no JSON form: {error}.")))
}

fn text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(bytes(path)?).map_err(|_| {
        let hint = "A program is text; send binary data with --file or --stdin.";
        Failure::with_hint(format!("{} is not UTF-8 text.", path.display()), hint)
    })
}

/// Reads a file. `-` is standard input.
fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("{} can't be read: {error}.", path.display()));
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        std::io::stdin().lock().take(MAX_READ + 1).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(MAX_READ + 1).read_to_end(&mut bytes).map_err(failed)?;
    }
    if bytes.len() as u64 > MAX_READ {
        return Err(Failure::new(format!("{} is too large: at most {} MB.", path.display(), MAX_READ >> 20)));
    }
    Ok(bytes)
}

fn by_extension(path: &Path) -> Option<Language> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "py" => Some(Language::Python),
        "js" | "mjs" | "cjs" => Some(Language::Javascript),
        "sh" => Some(Language::Shell),
        "go" => Some(Language::Go),
        "rs" => Some(Language::Rust),
        _ => None,
    }
}

/// The language of `#!/usr/bin/env -S python3 -u` and the like. Bash is not accepted, because its scripts may fail in a
/// POSIX shell.
fn by_shebang(code: &str) -> Option<Language> {
    let line = code.trim_start_matches('\u{feff}').lines().next()?.strip_prefix("#!")?;
    let mut words = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    let mut word = words.next()?;
    if word == "env" {
        word = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    }
    match word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "python" => Some(Language::Python),
        "node" | "nodejs" => Some(Language::Javascript),
        "sh" | "dash" | "ash" => Some(Language::Shell),
        _ => None,
    }
}

/// Parses a language for clap: its name or an alias.
pub(crate) fn language(word: &str) -> Result<Language, String> {
    word.parse().map_err(|error: sandtray_core::language::UnknownLanguage| error.to_string())
}

/// Sets a field of the request, if there is a value.
pub(crate) fn put(request: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        request[name] = value.into();
    }
}

pub(crate) fn request(language: Language, code: String) -> Value {
    json!({ "language": language.name(), "code": code, "stream": true })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language_of(name: &str, code: &str) -> Option<Language> {
        by_extension(Path::new(name)).or_else(|| by_shebang(code))
    }

    #[test]
    fn the_language_is_read_from_the_name_and_then_from_the_first_line() {
        for (name, code, language) in [
            ("a.py", "", Some(Language::Python)),
            ("a.MJS", "", Some(Language::Javascript)),
            ("a.sh", "#!/usr/bin/env python3", Some(Language::Shell)),
            ("dir.py/a", "", None),
            (".py", "", None),
            ("a", "#!/usr/bin/env python3\n", Some(Language::Python)),
            ("a", "\u{feff}#!/usr/bin/python3.12 -u\r\n", Some(Language::Python)),
            ("a", "#!/usr/bin/env -S A=b node --x\n", Some(Language::Javascript)),
            ("a", "#! /bin/sh\n", Some(Language::Shell)),
            ("a", "#!/bin/bash\n", None),
            ("a", "#!\n", None),
            ("a", "print(1)", None),
        ] {
            assert_eq!(language_of(name, code), language, "{name} {code:?}");
        }
    }

    #[test]
    fn files_are_named_and_carried_exactly() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("a.txt");
        let binary = folder.path().join("b=c");
        std::fs::write(&text, "ä\n").unwrap();
        std::fs::write(&binary, b"\x00\xff").unwrap();
        let given = [text.display().to_string(), format!("d/e={}", binary.display())];
        assert_eq!(files(&given).unwrap(), json!({ "a.txt": "ä\n", "d/e": { "base64": "AP8=" } }));
        assert!(files(&["x=/no/such/file".into()]).unwrap_err().message.contains("/no/such/file can't be read"));
        assert!(files(&[given[0].clone(), given[0].clone()]).unwrap_err().message.contains("Two files"));
        assert!(files(&["z=/dev/zero".into()]).unwrap_err().message.contains("too large"));
    }

    #[test]
    fn a_program_that_is_not_text_is_refused() {
        let file = tempfile::NamedTempFile::with_suffix(".py").unwrap();
        std::fs::write(file.path(), b"\xff").unwrap();
        assert!(program(Some(file.path()), None, None).unwrap_err().message.contains("not UTF-8"));
        assert!(program(None, Some("x".into()), None).unwrap_err().message.contains("can't be told"));
        assert_eq!(program(None, Some("x".into()), Some(Language::Go)).unwrap(), (Language::Go, "x".into()));
    }
}
