//! The launcher in unofficial images: another shell, and missing tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use sandtray_core::engine::{Derivation, Engine, InstanceId};
use sandtray_core::language::Language;
use sandtray_core::run::RunId;
use sandtray_tests::rig::{Rig, eventually};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{parts, python};

const PID1: &str = include_str!("../../programs/walls/pid1.py");

/// Signals that end shells, output through a child, a rewritten input, and a file.
const PROGRAM: &str = "
import os, signal, subprocess
for number in range(1, 65):
    for whom in (1, os.getppid()):
        try: os.kill(whom, number)
        except OSError: pass
tee = subprocess.Popen(['tee', '/tmp/log'], stdin=subprocess.PIPE)
os.dup2(tee.stdin.fileno(), 1)
tee.stdin.close()
open('a', 'w').write('b')
open('out/f', 'w').write('whole')
print(*sorted(os.environ), signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, signal.getsignal(signal.SIGINT) == signal.default_int_handler)
raise SystemExit(4)";

/// The official image of Python, changed by a script.
async fn changed(name: &str, script: &'static str) -> Arc<dyn Engine> {
    let rig = Rig::start().await;
    rig.agent().await.run(python("")).await;
    let engine = rig.service.health.watch().borrow().engine.clone().expect("an engine");
    let recipe = Language::Python.recipe();
    let base = engine.image(recipe.default_image).await.expect("an answer").expect("the image that was just used").id;
    let instance = InstanceId { home: "images".into(), boot: std::process::id().to_string() };
    let derivation = Derivation {
        base,
        name: name.into(),
        script,
        path: recipe.path,
        limits: sandtray_core::settings::Settings::default().limits(),
        instance,
        run: RunId::generate(),
    };
    engine.derive(&derivation, &CancellationToken::new()).await.expect("an image of the stock one");
    rig.stop().await;
    engine
}

/// The output of the program and of the attack on PID 1, cold and warm.
async fn said(image: &str) -> Vec<(Value, Value)> {
    let rig = Rig::start_with(|settings| drop(settings.images.insert(Language::Python, image.into()))).await;
    let mut agent = rig.agent().await;
    let mut all = Vec::new();
    for limits in [json!({ "memory_mb": 300 }), json!({})] {
        let mut results = Vec::new();
        for code in [PROGRAM, PID1] {
            if limits == json!({}) {
                eventually("a container is warm", || async { rig.service.supervisor.snapshot().warm > 0 }).await;
            }
            let call = json!({ "language": "python", "code": code, "limits": limits, "files": { "a": "a" } });
            results.push(agent.run(call).await);
        }
        let attack: Value =
            serde_json::from_str(results[1]["stdout"].as_str().unwrap_or_default()).expect("its one line");
        let program = parts(&results[0], &["status", "exit_code", "stdout", "stderr", "files", "left_behind"]);
        all.push((program, attack["succeeded"].clone()));
    }
    rig.stop().await;
    all
}

fn expected() -> Value {
    json!({
        "status": "failed", "exit_code": 4, "stdout": "HOME LANG PATH TMPDIR True True\n", "stderr": "",
        "files": { "f": "whole" }, "left_behind": ["a"],
    })
}

/// bash ends on signals that other shells, as PID 1, never receive; and it exports variables of its own.
#[tokio::test(flavor = "multi_thread")]
async fn bash_works_as_the_images_shell() {
    let name = "sandtray-test/bash:1";
    let engine = changed(name, "ln -sf bash /bin/sh").await;
    for (mut program, attack) in said(name).await {
        // bash sets `_` to the last program that it started.
        let stdout = program["stdout"].as_str().unwrap().replace("TMPDIR _ ", "TMPDIR ");
        program["stdout"] = stdout.into();
        assert_eq!((program, attack), (expected(), json!([])));
    }
    engine.remove_image(name).await.unwrap();
}

/// Runs go on; only the features that need the tools are weaker.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_may_lack_the_optional_tools() {
    let name = "sandtray-test/bare:1";
    let engine = changed(name, "cd /usr/bin && rm cp setsid mkfifo cat").await;
    for (program, attack) in said(name).await {
        assert_eq!(program, expected());
        // Without `cp` PID 1 can be read.
        let readable = |what: &Value| what.as_str().unwrap().starts_with("read /proc/1/mem");
        assert!(attack.as_array().unwrap().iter().any(readable), "{attack}");
    }
    engine.remove_image(name).await.unwrap();
}

/// Reads the nonce in the launcher's memory, says in its place that the program has ended, and runs on.
const FORGER: &str = r"
import os, re
found = None
for line in open('/proc/1/maps'):
    span, rights = line.split()[:2]
    if 'w' not in rights: continue
    start, end = (int(x, 16) for x in span.split('-'))
    with open('/proc/1/mem', 'rb') as memory:
        memory.seek(start)
        found = found or re.search(rb'nonce=([0-9a-f]{32})', memory.read(end - start))
os.write(1, b'\x1e' + found[1] + b' end 0 4096 0 1 0\n=main.py\0=out\0\0none\0')
os.write(2, b'\x1e' + found[1] + b'\n')
while True: pass";

/// Interval at which the containers that run are counted.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);

/// Where the launcher can be read, its word is the program's: an end that is forged frees no place for the next run.
#[tokio::test(flavor = "multi_thread")]
async fn forged_ends_do_not_pass_the_owners_concurrency() {
    let name = "sandtray-test/open:1";
    let engine = changed(name, "rm /usr/bin/cp").await;
    let rig = Rig::start_with(|settings| {
        settings.images.insert(Language::Python, name.into());
        settings.concurrency = Some(1);
        settings.warm = 0;
    })
    .await;
    rig.proved().await;
    let home = rig.home();
    let most = AtomicUsize::new(0);
    let sampling = async {
        loop {
            let all = engine.containers().await.expect("a list of containers");
            let running = all.iter().filter(|found| found.running && found.instance.starts_with(&home)).count();
            most.fetch_max(running, Relaxed);
            tokio::time::sleep(SAMPLE_EVERY).await;
        }
    };
    let calls = async {
        let mut agent = rig.agent().await;
        for _ in 0..4 {
            let mut ids = Vec::new();
            for _ in 0..4 {
                ids.push(agent.send("code.run", python(FORGER)).await);
            }
            for id in ids {
                let result = agent.reply(id).await.expect("a result");
                // The forgery works here, or the test would say nothing.
                assert_eq!((&result["status"], &result["memory_bytes"]), (&json!("ok"), &json!(4096)), "{result}");
            }
        }
    };
    tokio::select! {
        () = calls => {}
        () = sampling => {}
    }
    let most = most.load(Relaxed);
    assert!((1..=2).contains(&most), "{most} containers ran at once");
    rig.stop().await;
    engine.remove_image(name).await.expect("the image is removed");
}

/// The tools by which the walls are looked at are missing: nothing runs, and the error says why.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_without_the_tools_of_the_probe_is_refused_by_name() {
    let name = "sandtray-test/blind:1";
    let engine = changed(name, "rm /usr/bin/ionice").await;
    let rig = Rig::start_with(|settings| drop(settings.images.insert(Language::Python, name.into()))).await;
    let error = rig.agent().await.call("code.run", python("print(1)")).await.expect_err("a refusal");
    assert_eq!(error["data"]["code"], "engine_unavailable", "{error}");
    assert!(error["message"].as_str().unwrap_or_default().contains("lacks ionice"), "{error}");
    rig.stop().await;
    engine.remove_image(name).await.expect("the image is removed");
}
