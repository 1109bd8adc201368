use super::*;
use crate::run::Overflow;
use crate::settings::Settings;

fn owner() -> Limits {
    Settings::default().limits()
}

fn request(language: Language, code: &str) -> RunRequest {
    RunRequest {
        language,
        code: code.into(),
        args: Vec::new(),
        files: Vec::new(),
        stdin: Bytes::new(),
        limits: GivenLimits::default(),
        overflow: Overflow::Kill,
        stream: false,
        label: None,
    }
}

fn with_files(files: &[(&str, usize)]) -> RunRequest {
    let files = files.iter().map(|(name, size)| GivenFile { name: (*name).into(), bytes: vec![0; *size].into() });
    RunRequest { files: files.collect(), ..request(Language::Python, "") }
}

fn refused(request: RunRequest) -> (String, String) {
    match spec(request, &owner(), RunId::generate()) {
        Err(RunError::Invalid { field, message }) => (field, message),
        other => panic!("{other:?}"),
    }
}

fn accepted(request: RunRequest) -> RunSpec {
    spec(request, &owner(), RunId::generate()).unwrap()
}

#[test]
fn a_byte_order_mark_is_dropped_and_shell_gets_its_own_line_ends() {
    let code = |language, code| accepted(request(language, code)).code;
    assert_eq!(code(Language::Javascript, "\u{feff}#!/usr/bin/env node\r\n"), "#!/usr/bin/env node\r\n");
    assert_eq!(code(Language::Shell, "\u{feff}set -eu\r\necho a\rb\r\n"), "set -eu\necho a\rb\n");
    assert_eq!(code(Language::Python, "a\u{feff}"), "a\u{feff}");
    assert_eq!(code(Language::Python, ""), "");
    let mut with_stdin = request(Language::Shell, "");
    with_stdin.stdin = Bytes::from_static("\u{feff}a\r\n".as_bytes());
    assert_eq!(accepted(with_stdin).stdin, "\u{feff}a\r\n");
}

#[test]
fn sizes_are_bounded_to_the_byte() {
    accepted(request(Language::Python, &"x".repeat(MAX_CODE_BYTES)));
    let (field, message) = refused(request(Language::Python, &"x".repeat(MAX_CODE_BYTES + 1)));
    assert_eq!((field.as_str(), message.as_str()), ("code", "`code` is 1048577 bytes; at most 1048576 (1 MB)."));

    let stdin = |bytes| RunRequest { stdin: vec![0; bytes].into(), ..request(Language::Python, "") };
    accepted(stdin(MAX_STDIN_BYTES));
    assert_eq!(refused(stdin(MAX_STDIN_BYTES + 1)).0, "stdin");

    accepted(with_files(&[("a", 5 << 20), ("b", 0)]));
    assert_eq!(refused(with_files(&[("a", 5 << 20), ("b", 1)])).0, "files");

    let label = |count| RunRequest { label: Some("ä".repeat(count)), ..request(Language::Python, "") };
    assert_eq!(accepted(label(200)).label, Some("ä".repeat(200)));
    assert_eq!(refused(label(201)).0, "label");
    assert_eq!(accepted(label(0)).label, None);
}

#[test]
fn names_in_the_way_are_refused_and_named() {
    for (names, field, why) in [
        (vec!["../x"], "../x", "holds a component"),
        (vec!["main.py"], "main.py", "the program's own file"),
        (vec!["main.py/x"], "main.py/x", "the program's own file"),
        (vec!["out"], "out", "in the way of `out/`"),
        (vec!["out/x"], "out/x", "in the way of `out/`"),
        (vec!["a/b", "a"], "a/b", "lies in `a`, which is a file itself"),
        (vec!["a", "a/b/c"], "a/b/c", "lies in `a`, which is a file itself"),
        (vec!["a", "a"], "a", "twice"),
    ] {
        let files: Vec<_> = names.iter().map(|name| (*name, 0)).collect();
        let (got, message) = refused(with_files(&files));
        assert_eq!(got, format!("files[\"{field}\"]"));
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn names_that_only_look_alike_are_different() {
    let names = ["Main.py", "main.js", "Out/x", "output", "a", "A", "a.b/c", "sub/main.py", "sub/out/x"];
    let files: Vec<_> = names.iter().map(|name| (*name, 1)).collect();
    let spec = accepted(with_files(&files));
    assert_eq!(spec.files.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), names);
}

#[test]
fn limits_are_lowered_and_never_raised() {
    let limits = |seconds, memory_mb, cpus| {
        let limits = GivenLimits { seconds, memory_mb, cpus };
        spec(RunRequest { limits, ..request(Language::Python, "") }, &owner(), RunId::generate()).map(|s| s.limits)
    };
    assert_eq!(limits(None, None, None), Ok(owner()));
    assert_eq!(limits(Some(1e300), Some(1e300), Some(1e300)), Ok(owner()));
    assert_eq!(
        limits(Some(1.5), Some(64.0), Some(0.25)),
        Ok(Limits { millis: 1500, memory_bytes: 64 << 20, milli_cpus: 250, ..owner() })
    );
    assert_eq!(limits(Some(0.1), Some(32.0), Some(0.05)).map(|l| (l.millis, l.milli_cpus)), Ok((100, 50)));
    for bad in [0.0, -1.0, -0.0, 0.04, f64::NAN, f64::NEG_INFINITY, f64::INFINITY, 1e-9] {
        assert!(limits(Some(bad), None, None).is_err(), "{bad} seconds");
        assert!(limits(None, Some(bad), None).is_err(), "{bad} MB");
        assert!(limits(None, None, Some(bad)).is_err(), "{bad} CPUs");
    }
    assert!(limits(None, Some(31.9), None).is_err());
}

#[test]
fn an_owner_below_the_floor_stays_there() {
    let owner = Limits { millis: 50, ..owner() };
    let limits = GivenLimits { seconds: Some(0.1), ..GivenLimits::default() };
    let spec = spec(RunRequest { limits, ..request(Language::Python, "") }, &owner, RunId::generate()).unwrap();
    assert_eq!(spec.limits.millis, 50);
}
