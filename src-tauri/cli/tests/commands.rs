//! The built program against a scripted service on a real socket.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests, though no test stands in them")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use sandtray_core::event::{ImageState, ImageStatus};
use sandtray_core::ipc::{self, Listener};
use sandtray_core::language::Language;
use sandtray_tests::scripted::{BINARY, PATIENCE, Scripted, live};
use serde_json::Value;
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
        let mut command = sandtray(args);
        command.arg("--socket").arg(self.path("s")).current_dir(self.folder.path());
        command
    }

    async fn call(&self, args: &[&str]) -> Output {
        finish(self.command(args)).await
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
        s.images = vec![ImageStatus { language: Language::Go, image: "golang".into(), state: ImageState::NotPulled }];
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
async fn a_program_comes_from_stdin_too() {
    let desk = Desk::new();
    let mut command = desk.command(&["run", "-"]);
    let file = desk.path("x");
    fs::write(&file, "#!/bin/sh\n").unwrap();
    command.stdin(fs::File::open(&file).unwrap());
    finish(command).await;
    assert_eq!(desk.product.specs()[0].language, Language::Shell);
}
