//! The built program against a scripted service on a real socket.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests, though no test stands in them")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use sandtray_core::codec::MAX_FRAME;
use sandtray_core::event::{ImageState, ImageStatus};
use sandtray_core::ipc::{self, Listener};
use sandtray_core::language::Language;
use sandtray_tests::scripted::{BINARY, PATIENCE, Scripted, live};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

struct Desk {
    folder: tempfile::TempDir,
    product: Scripted,
    _serving: ipc::Serving,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let product = Scripted::new();
        let listener = Listener::bind(&folder.path().join("s")).unwrap();
        Self { folder, _serving: ipc::serve(listener, product.clone()), product }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = sandtray(&["--socket"]);
        command.arg(self.path("s")).args(args).current_dir(self.folder.path());
        command
    }

    async fn call(&self, args: &[&str]) -> Output {
        finish(self.command(args)).await
    }

    /// Everything shown if both streams are a terminal, which puts a carriage return before each line end.
    async fn on_a_terminal(&self, args: &[&str]) -> String {
        let quoted = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
        let mut words = vec![quoted(env!("CARGO_BIN_EXE_sandtray"))];
        words.extend(args.iter().map(|word| quoted(word)));
        words.extend(["--socket".into(), quoted(self.path("s").to_str().unwrap())]);
        let mut command = Command::new("script");
        command.args(["-qefc", &words.join(" "), "/dev/null"]).current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let shown = finish(command).await.stdout;
        // A line that a program ended with both has two of them.
        let shown = String::from_utf8(shown).expect("UTF-8 on the terminal");
        let lines = shown.replace("\r\r\n", "\n").replace("\r\n", "\n");
        assert!(!lines.contains('\r'), "{lines:?}");
        lines
    }

    async fn python(&self, code: &str) -> Output {
        self.call(&["run", "-l", "python", "-c", code]).await
    }
}

fn sandtray(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandtray"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

async fn finish(mut command: Command) -> Output {
    timeout(PATIENCE, command.output()).await.expect("it ends in time").unwrap()
}

fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON on stdout")
}

#[tokio::test]
async fn a_programs_output_and_exit_code_are_its_own() {
    let desk = Desk::new();
    assert_eq!(said(&desk.python("say hi").await), (0, "hi".into(), String::new()));
    assert_eq!(said(&desk.python("exit 3").await).0, 3);
    assert_eq!(said(&desk.python("exit 255").await).0, 255);
    let binary = desk.python("binary").await;
    assert_eq!((binary.stdout.as_slice(), binary.stderr.as_slice()), (BINARY, b"\x1b[2J\x00err".as_slice()));
    assert_eq!(desk.product.clients()[0].name, "sandtray run");
}

#[tokio::test]
async fn a_run_that_was_cut_off_shows_its_output_then_why_and_has_an_exit_code_of_its_own() {
    let desk = Desk::new();
    let output = desk.python("cut so far").await;
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(126), b"so far".as_slice()));
    let told =
        b"\xffsandtray: Cut off after 3.7 s: Docker went away.\nWhat it had done so far is lost but for its output. \
        Run it again once the engine is back.\n";
    assert_eq!(output.stderr.as_slice(), told.as_slice(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = desk.call(&["run", "--json", "-l", "python", "-c", "cut so far"]).await;
    let data = &json(&output)["error"]["data"];
    assert_eq!(
        (output.status.code(), &data["code"], &data["stdout"]),
        (Some(126), &"run_interrupted".into(), &"so far".into())
    );
}

#[tokio::test]
async fn a_verdict_is_a_sentence_on_stderr() {
    let desk = Desk::new();
    let (code, stdout, stderr) = said(&desk.python("timeout").await);
    assert_eq!((code, stdout.as_str()), (137, ""));
    assert_eq!(
        stderr,
        "sandtray: Stopped after 1 min, its limit of time.\n\
         sandtray: Not returned, since only what is written under out/ is: x.png.\n\
         sandtray: It was stopped at its limit of time, and what it wrote under out/ is lost: do less in one call, or print \
         results as they come.\n"
    );
    assert_eq!(
        said(&desk.call(&["run", "-q", "-l", "py", "-c", "timeout"]).await),
        (137, String::new(), String::new())
    );
}

#[tokio::test]
async fn everything_that_is_asked_reaches_the_service() {
    let desk = Desk::new();
    fs::write(desk.path("job.py"), "say x").unwrap();
    fs::write(desk.path("data.bin"), b"\xff\x00").unwrap();
    fs::write(desk.path("in.txt"), "input").unwrap();
    let output = desk
        .call(&[
            "run",
            "job.py",
            "--file",
            "d/x=data.bin",
            "--file",
            "in.txt",
            "--stdin",
            "in.txt",
            "--seconds",
            "1.5",
            "--memory-mb",
            "64",
            "--cpus",
            "0.5",
            "--overflow",
            "truncate",
            "--label",
            "a label",
        ])
        .await;
    assert_eq!(said(&output), (0, "x".into(), String::new()));
    let spec = desk.product.specs().remove(0);
    assert_eq!(
        (spec.language, spec.stdin.as_ref(), spec.label.as_deref()),
        (Language::Python, b"input".as_slice(), Some("a label"))
    );
    assert_eq!((spec.limits.millis, spec.limits.memory_bytes, spec.limits.milli_cpus), (1500, 64 << 20, 500));
    let files: Vec<_> = spec.files.iter().map(|file| (file.name.as_str(), file.bytes.as_ref())).collect();
    assert_eq!(files, [("d/x", b"\xff\x00".as_slice()), ("in.txt", b"input")]);
}

/// Text with which a program, a client or a file name may try to deceive a reader.
const HOSTILE: &str =
    "a\rb\u{9b}2Jc\u{9d}52;c;cm0=\u{9c}d\u{202e}e\u{200b}\u{feff}f\u{7f}\u{85}g\u{90}h\u{9c}\u{2066}i\u{e0041}j";

#[tokio::test]
async fn json_on_a_terminal_is_the_same_value_and_moves_nothing() {
    let desk = Desk::new();
    let say = format!("say {HOSTILE}");
    let label = live_with_label(HOSTILE);
    desk.product.change(|snapshot| snapshot.running = vec![label]);
    for args in [
        &["run", "--json", "-l", "py", "-c", &say][..],
        &["status", "--json"],
        &["history", "--json", "--before", HOSTILE],
    ] {
        let shown = desk.on_a_terminal(args).await;
        let line = shown.strip_suffix('\n').expect("a line");
        assert_eq!(line.chars().find(|c| sandtray_core::text::is_hidden(*c)), None, "{args:?}: {line}");
        let (there, piped) = (serde_json::from_str::<Value>(line).unwrap(), desk.call(args).await);
        assert!(piped.stdout.windows(5).any(|bytes| bytes == "\u{9b}2Jc".as_bytes()), "a pipe gets it as it is");
        let strip = |mut value: Value| {
            value.as_object_mut().map(|fields| fields.remove("run_id"));
            value
        };
        assert_eq!(strip(there), strip(json(&piped)), "{args:?}");
    }
}

fn live_with_label(label: &str) -> sandtray_core::event::LiveRun {
    sandtray_core::event::LiveRun { label: Some(label.into()), ..live(sandtray_core::run::RunId::generate()) }
}

#[tokio::test]
async fn output_on_a_terminal_moves_and_hides_nothing() {
    let desk = Desk::new();
    let shown = desk.on_a_terminal(&["run", "-l", "py", "-c", &format!("say {HOSTILE}")]).await;
    assert_eq!(shown, "a\nbcdefgij");
    let shown = desk.on_a_terminal(&["run", "-l", "py", "-c", "say \x1b[8;31mred\x1b]0;x\x07\x1b"]).await;
    assert_eq!(shown, "\x1b[31mred\x1b[0m");
    let shown = desk.on_a_terminal(&["run", "-l", "py", "-c", "binary"]).await;
    assert_eq!(shown, "a\u{fffd}\nerr");
    let shown = desk.on_a_terminal(&["run", &format!("{HOSTILE}.x")]).await;
    assert!(shown.starts_with("sandtray: a\u{fffd}b\u{fffd}2Jc"), "{shown}");
}

#[tokio::test]
async fn existing_files_are_not_replaced_without_force() {
    let desk = Desk::new();
    fs::create_dir(desk.path("kept")).unwrap();
    fs::write(desk.path("kept/big"), "mine").unwrap();
    let args = ["run", "-l", "py", "-c", "files 3", "--out", "kept"];
    let (code, _, stderr) = said(&desk.call(&args).await);
    assert_eq!(code, 125);
    assert_eq!(
        stderr,
        "sandtray: big was not saved: there is a file of that name.\n\
         sandtray: 1 of 1 file could not be saved under kept.\n\
         `--force` replaces files that are there; another folder keeps both.\n"
    );
    assert_eq!(fs::read_to_string(desk.path("kept/big")).unwrap(), "mine");
    let forced = [&args[..], &["--force"]].concat();
    assert_eq!(said(&desk.call(&forced).await), (0, String::new(), "sandtray: 1 file saved under kept.\n".into()));
    assert_eq!(fs::read_to_string(desk.path("kept/big")).unwrap(), "xxx");
    let (code, _, stderr) = said(&desk.call(&["run", "-l", "py", "-c", "files 3", "--force"]).await);
    assert!(code == 125 && stderr.contains("--out"), "{stderr}");
}

#[tokio::test]
async fn files_are_saved_where_they_were_asked_for_and_told_of_otherwise() {
    let desk = Desk::new();
    let (code, _, stderr) = said(&desk.python("files 5000").await);
    assert_eq!((code, stderr.as_str()), (0, "sandtray: It returned 1 file; `--out DIR` keeps them.\n"));
    let (code, _, stderr) = said(&desk.call(&["run", "-l", "py", "-c", "files 5000", "--out", "kept"]).await);
    assert_eq!((code, stderr.as_str()), (0, "sandtray: 1 file saved under kept.\n"));
    assert_eq!(fs::read(desk.path("kept/big")).unwrap(), vec![b'x'; 5000]);
}

#[tokio::test]
async fn json_is_the_whole_reply_and_nothing_else() {
    let desk = Desk::new();
    let output = desk.call(&["run", "--json", "-l", "py", "-c", "binary"]).await;
    let reply = json(&output);
    assert_eq!((&reply["status"], &reply["exit_code"]), (&"ok".into(), &0.into()));
    assert!(reply["stdout_base64"].is_string());
    let refused = desk.call(&["run", "--json", "-l", "py", "-c", "full"]).await;
    assert_eq!(refused.status.code(), Some(125));
    assert_eq!(json(&refused)["error"]["data"]["code"], "queue_full");
}

#[tokio::test]
async fn what_sandtray_cannot_do_ends_with_125_and_a_sentence() {
    let desk = Desk::new();
    let (code, stdout, stderr) = said(&desk.python("full").await);
    assert_eq!((code, stdout.as_str()), (125, ""));
    assert_eq!(stderr, "sandtray: 3 runs are waiting already.\nTry again in about 2 s.\n");
    for (args, word) in [
        (vec!["run"], "required"),
        (vec!["run", "nothing.py"], "nothing.py can't be read"),
        (vec!["run", "-l", "perl", "-c", "x"], "there are python, javascript"),
        (vec!["run", "-c", "x"], "--language"),
        (vec!["run", "-l", "py", "-c", "x", "--seconds", "0"], "`limits.seconds` must be at least 0.1"),
        (vec!["run", "-l", "py", "-c", "x", "--file", "../a=/etc/hostname"], "The file name `../a`"),
        (vec!["history", "-n", "0"], "1..=500"),
        (vec!["dance"], "unrecognized"),
    ] {
        let (code, _, stderr) = said(&desk.call(&args).await);
        assert_eq!(code, 125, "{args:?}: {stderr}");
        assert!(stderr.contains(word), "{args:?}: {stderr}");
    }
    desk.product.change(|s| s.enabled = false);
    let (code, _, stderr) = said(&desk.python("say hi").await);
    assert_eq!(code, 125);
    assert!(stderr.starts_with("sandtray: Running code is turned off.\n"), "{stderr}");
}

#[tokio::test]
async fn without_a_service_it_says_how_to_start_one() {
    let folder = tempfile::tempdir().unwrap();
    for args in [&["status"][..], &["history"], &["run", "-l", "sh", "-c", "x"]] {
        let mut command = sandtray(args);
        command.env("SANDTRAY_HOME", folder.path());
        let (code, stdout, stderr) = said(&finish(command).await);
        assert_eq!((code, stdout.as_str()), (125, ""));
        assert!(stderr.contains("isn't running") && stderr.contains("sandtray serve --enable"), "{stderr}");
    }
}

#[tokio::test]
async fn ctrl_c_cancels_the_run() {
    let desk = Desk::new();
    let child = desk.command(&["run", "-l", "py", "-c", "hold"]).spawn().unwrap();
    desk.product.until_running(1).await;
    let pid = rustix::process::Pid::from_raw(child.id().unwrap() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap();
    let (code, _, stderr) = said(&output);
    assert_eq!((code, stderr.as_str()), (130, "sandtray: Cancelled.\n"));
    desk.product.until_running(0).await;
    assert_eq!(desk.product.dropped(), 0);
}

#[tokio::test]
async fn a_reader_that_went_away_ends_the_run_without_a_word() {
    let desk = Desk::new();
    let mut child = desk.command(&["run", "-l", "py", "-c", "chunks 64 1000"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(141), b"".as_slice()));
}

#[tokio::test]
async fn status_tells_people_and_programs() {
    let desk = Desk::new();
    let run = sandtray_core::run::RunId::generate();
    desk.product.change(|s| {
        s.running = vec![live(run)];
        s.images = vec![ImageStatus {
            language: Language::Go,
            image: "golang".into(),
            state: ImageState::NotPulled,
            wall_missing: None,
            launcher: None,
        }];
    });
    let (code, stdout, stderr) = said(&desk.call(&["status"]).await);
    assert_eq!((code, stderr.as_str()), (0, ""));
    for words in ["Running code is on.", "Scripted 1 is ready", "fetched when it is first needed", &run.to_string()] {
        assert!(stdout.contains(words), "{stdout}");
    }
    let status = json(&desk.call(&["status", "--json"]).await);
    assert_eq!(status["running"][0]["run_id"], run.to_string());
    assert_eq!(status["images"][0]["state"], "not_pulled");
}

#[tokio::test]
async fn history_asks_for_the_page_it_was_told_to() {
    let desk = Desk::new();
    let page = json(&desk.call(&["history", "--json", "-n", "7", "--before", "1f"]).await);
    assert_eq!((&page["runs"][0]["limit"], &page["next"]), (&7.into(), &"1f".into()));
}

#[tokio::test]
async fn what_follows_the_program_are_its_arguments() {
    let desk = Desk::new();
    fs::write(desk.path("job.py"), "chunks 1 1").unwrap();
    for (line, expected) in [
        (&["run", "job.py", "a", "--label", "words", "b c"][..], &["a", "b c"][..]),
        (&["run", "job.py", "--", "-v", "--label"], &["-v", "--label"]),
        (&["run", "-l", "sh", "-c", "chunks 1 1", "a", "b"], &["a", "b"]),
        (&["run", "-l", "sh", "-c", "chunks 1 1", "--", "-v"], &["-v"]),
        (&["run", "-l", "sh", "-c", "chunks 1 1"], &[]),
    ] {
        let output = desk.call(line).await;
        assert_eq!(said(&output).0, 0, "{line:?}: {output:?}");
        assert_eq!(desk.product.specs().pop().unwrap().args, expected, "{line:?}");
    }
}

#[tokio::test]
async fn a_program_comes_from_stdin_too() {
    let desk = Desk::new();
    let mut command = desk.command(&["run", "-"]);
    let file = desk.path("x");
    fs::write(&file, "#!/bin/sh\n").unwrap();
    command.stdin(fs::File::open(&file).unwrap());
    finish(command).await;
    assert_eq!(desk.product.specs()[0].language, Language::Shell);
}

/// A foreign program listens there. It sends one line that is no message of ours, and reads its input.
async fn told_by_a_stranger(bytes: usize) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let telling = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut line = vec![b'x'; bytes];
        line.push(b'\n');
        // The client may be gone before it has read all of it.
        let _ = stream.write_all(&line).await;
        stream
    });
    let mut command = sandtray(&["status", "--socket"]);
    command.arg(&socket);
    let output = finish(command).await;
    telling.abort();
    said(&output)
}

#[tokio::test]
async fn an_answer_longer_than_the_limit_is_not_read() {
    let (code, _, stderr) = told_by_a_stranger(MAX_FRAME + 1).await;
    assert_eq!((code, stderr.contains("too long to be read")), (125, true), "{stderr}");
    let (code, _, stderr) = told_by_a_stranger(MAX_FRAME).await;
    assert_eq!((code, stderr.contains("doesn't speak as Sandtray does")), (125, true), "{stderr}");
}
