//! Checks a call: a decoded request and the owner's limits make a [`RunSpec`], or a refusal that names the field. Pure.
//! Later stages accept only a [`RunSpec`], so each check is done once.

use std::collections::HashSet;

use bytes::Bytes;

use crate::error::RunError;
use crate::language::Language;
use crate::name::FileName;
use crate::protocol::request::{GivenFile, GivenLimits, RunRequest};
use crate::protocol::{error::quote, file_field};
use crate::run::{
    InputFile, Limits, MAX_ARGS, MAX_ARGS_BYTES, MAX_CODE_BYTES, MAX_FILES, MAX_STDIN_BYTES, RunId, RunSpec,
};

pub const MAX_LABEL_CHARS: usize = 200;

/// Below these, an engine sets no limit at all, or cannot start a container.
pub const MIN_SECONDS: f64 = 0.1;
pub const MIN_MEMORY_MB: f64 = 32.0;
pub const MIN_CPUS: f64 = 0.05;

/// The folder of the program's results. The launcher makes it, so no input may be placed there.
const OUT: &str = "out";
const BOM: char = '\u{feff}';

/// Checks a request against the owner's limits.
///
/// # Errors
///
/// If a field is invalid or too large. The error names the field.
pub fn spec(request: RunRequest, owner: &Limits, id: RunId) -> Result<RunSpec, RunError> {
    let RunRequest { language, code, args, files, stdin, limits, overflow, stream: _, label } = request;
    if stdin.len() > MAX_STDIN_BYTES {
        return Err(too_large("stdin", stdin.len() as u64, MAX_STDIN_BYTES as u64));
    }
    Ok(RunSpec {
        id,
        language,
        code: program(language, code)?,
        args: arguments(args)?,
        files: place(language, files, owner.file_bytes)?,
        stdin,
        limits: lower(limits, owner)?,
        overflow,
        label: checked_label(label)?,
    })
}

/// An empty program is valid: `python3 -c ''` exits with 0 everywhere.
fn program(language: Language, code: String) -> Result<Bytes, RunError> {
    if code.len() > MAX_CODE_BYTES {
        return Err(too_large("code", code.len() as u64, MAX_CODE_BYTES as u64));
    }
    // A byte order mark before a shebang is a syntax error for Node, and part of the first word for a shell.
    let code = code.strip_prefix(BOM).map_or(code.as_str(), |rest| rest);
    Ok(match language {
        // dash reads `set -eu\r` as an option `\r`.
        Language::Shell => Bytes::from(code.replace("\r\n", "\n")),
        Language::Python | Language::Javascript | Language::Go | Language::Rust => {
            Bytes::copy_from_slice(code.as_bytes())
        }
    })
}

fn arguments(args: Vec<String>) -> Result<Vec<String>, RunError> {
    if args.len() > MAX_ARGS {
        return Err(RunError::invalid("args", format!("`args` holds {} arguments; at most {MAX_ARGS}.", args.len())));
    }
    let bytes: usize = args.iter().map(String::len).sum();
    if bytes > MAX_ARGS_BYTES {
        let message = format!("`args` holds {bytes} bytes; at most {MAX_ARGS_BYTES}. Use `stdin` or `files` for more.");
        return Err(RunError::invalid("args", message));
    }
    if let Some(index) = args.iter().position(|arg| arg.contains('\0')) {
        let field = format!("args[{index}]");
        let message = format!("`{field}` holds a NUL, which no argument of a program can.");
        return Err(RunError::Invalid { field, message });
    }
    Ok(args)
}

fn place(language: Language, files: Vec<GivenFile>, most_bytes: u64) -> Result<Vec<InputFile>, RunError> {
    if files.len() > MAX_FILES {
        return Err(RunError::invalid("files", format!("`files` holds {} files; at most {MAX_FILES}.", files.len())));
    }
    let total: u64 = files.iter().map(|file| file.bytes.len() as u64).sum();
    if total > most_bytes {
        return Err(too_large("files", total, most_bytes));
    }
    let files = files.into_iter().map(|file| named(language, file)).collect::<Result<Vec<_>, _>>()?;
    let mut names = HashSet::new();
    for file in &files {
        if !names.insert(file.name.as_str()) {
            return Err(bad_name(file.name.as_str(), "stands there twice"));
        }
    }
    for file in &files {
        if let Some(parent) = file.name.parents().find(|parent| names.contains(parent)) {
            let why = format!("lies in `{}`, which is a file itself", quote(parent));
            return Err(bad_name(file.name.as_str(), &why));
        }
    }
    Ok(files)
}

fn named(language: Language, file: GivenFile) -> Result<InputFile, RunError> {
    let name = FileName::parse(&file.name).map_err(|fault| bad_name(&file.name, &fault.to_string()))?;
    if name.first_component() == OUT {
        return Err(bad_name(&file.name, "is in the way of `out/`, which the program's results go to"));
    }
    if name.first_component() == language.recipe().program {
        return Err(bad_name(&file.name, "is in the way of the program's own file"));
    }
    Ok(InputFile { name, bytes: file.bytes })
}

/// A request lowers the owner's limits. A request for more gets the owner's limit, and its reply says so.
fn lower(given: GivenLimits, owner: &Limits) -> Result<Limits, RunError> {
    let seconds = at_least("limits.seconds", given.seconds, MIN_SECONDS)?;
    let memory_mb = at_least("limits.memory_mb", given.memory_mb, MIN_MEMORY_MB)?;
    let cpus = at_least("limits.cpus", given.cpus, MIN_CPUS)?;
    // A float beyond the integer's range becomes the greatest integer, and the owner's limit is lower.
    Ok(Limits {
        millis: seconds.map_or(owner.millis, |s| owner.millis.min((s * 1000.0).round() as u64)),
        memory_bytes: memory_mb
            .map_or(owner.memory_bytes, |mb| owner.memory_bytes.min((mb * f64::from(1 << 20)).round() as u64)),
        milli_cpus: cpus.map_or(owner.milli_cpus, |c| owner.milli_cpus.min((c * 1000.0).round() as u32)),
        ..*owner
    })
}

fn at_least(field: &str, given: Option<f64>, floor: f64) -> Result<Option<f64>, RunError> {
    match given {
        // Written so that NaN is refused too.
        Some(number) if !(number.is_finite() && number >= floor) => {
            Err(RunError::invalid(field, format!("`{field}` must be at least {floor}.")))
        }
        fine => Ok(fine),
    }
}

fn checked_label(label: Option<String>) -> Result<Option<String>, RunError> {
    let Some(label) = label.filter(|label| !label.is_empty()) else {
        return Ok(None);
    };
    let count = label.chars().count();
    if count > MAX_LABEL_CHARS {
        let message = format!("`label` has {count} characters; at most {MAX_LABEL_CHARS}.");
        return Err(RunError::invalid("label", message));
    }
    Ok(Some(label))
}

fn bad_name(name: &str, why: &str) -> RunError {
    RunError::invalid(file_field(name), format!("The file name `{}` {why}.", quote(name)))
}

fn too_large(field: &str, bytes: u64, most: u64) -> RunError {
    RunError::invalid(field, format!("`{field}` is {bytes} bytes; at most {most} ({} MB).", most >> 20))
}

#[cfg(test)]
mod tests;
