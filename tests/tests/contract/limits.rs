//! Limits: each is really reached, by programs that do their best to outlive it.

use std::time::Instant;

use sandtray_tests::rig::{Rig, eventually};
use serde_json::{Value, json};

use crate::{parts, python, shell};

fn limited(call: Value, limits: Value) -> Value {
    let mut call = call;
    call["limits"] = limits;
    call
}

#[tokio::test(flavor = "multi_thread")]
async fn time_runs_out_for_sleepers_loops_and_those_that_ignore_every_signal() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let deaf = "
import signal, time, os
for s in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(s, signal.SIG_IGN)
print('before')
if os.fork() == 0: os.setsid()
while True: time.sleep(1)";
    for call in [
        python(deaf),
        python("print('before')\nwhile True: pass"),
        shell("echo before; sleep 1000"),
        shell("echo before; kill -STOP $$"),
        shell("echo before; (trap '' TERM INT; while :; do :; done) & wait"),
        // It kills the launcher's own watchdog, over and over.
        shell("echo before; while :; do killall -9 sleep; done 2>/dev/null"),
    ] {
        let begun = Instant::now();
        let result = agent.run(limited(call.clone(), json!({ "seconds": 0.5 }))).await;
        let expected = json!({ "status": "timeout", "exit_code": 137, "stdout": "before\n" });
        assert_eq!(parts(&result, &["status", "exit_code", "stdout"]), expected, "{call}");
        let seconds = result["seconds"].as_f64().unwrap();
        assert!((0.5..3.0).contains(&seconds), "{call}: {seconds}");
        assert!(begun.elapsed().as_secs() < 10, "{call}");
    }
    eventually("no container is left", || async { rig.used_containers().await == 0 }).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_runs_out_for_the_program_or_for_its_child_alone() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let whole = "print('before')\nx = []\nwhile True: x.append(bytearray(10_000_000))";
    let child = "
import subprocess, sys
r = subprocess.run([sys.executable, '-c', 'x = bytearray(300_000_000)'])
print(r.returncode)
sys.exit(int(sys.stdin.read()))";
    let tmpfs = "x = open('/tmp/x', 'wb'); y = bytearray(50_000_000)\nz = bytearray(60_000_000)\nz[::4096] = b'1' * len(z[::4096])";
    for (call, expected) in [
        (python(whole), json!({ "status": "out_of_memory", "exit_code": 137, "stdout": "before\n" })),
        (python(tmpfs), json!({ "status": "out_of_memory", "exit_code": 137, "stdout": "" })),
        (
            json!({ "language": "python", "code": child, "stdin": "4" }),
            json!({ "status": "out_of_memory", "exit_code": 4, "stdout": "-9\n" }),
        ),
        (
            json!({ "language": "python", "code": child, "stdin": "0" }),
            json!({ "status": "ok", "exit_code": 0, "stdout": "-9\n" }),
        ),
    ] {
        let result = agent.run(limited(call, json!({ "memory_mb": 100 }))).await;
        assert_eq!(parts(&result, &["status", "exit_code", "stdout"]), expected, "{result}");
        assert_eq!(result["oom_kills"], 1, "{result}");
        assert_eq!(result["limits"]["memory_mb"], 100.0);
    }
    // It tries to make the kernel kill the launcher first.
    let unfair = "
try: open('/proc/1/oom_score_adj', 'w').write('1000')
except PermissionError: print('refused', flush=True)
x = []
while True: x.append(bytearray(10_000_000))";
    let result = agent.run(limited(python(unfair), json!({ "memory_mb": 100 }))).await;
    let expected = json!({ "status": "out_of_memory", "exit_code": 137, "stdout": "refused\n" });
    assert_eq!(parts(&result, &["status", "exit_code", "stdout"]), expected, "{result}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_only_looks_like_a_limit_is_the_programs_own() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    for (call, exit_code) in [
        (python("import sys; sys.exit(137)"), 137),
        (python("import sys; sys.exit(124)"), 124),
        (python("raise MemoryError"), 1),
        (shell("kill -9 $$"), 137),
    ] {
        let result = agent.run(call).await;
        assert_eq!(parts(&result, &["status", "exit_code"]), json!({ "status": "failed", "exit_code": exit_code }));
        assert_eq!(result["oom_kills"], Value::Null);
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bombs_of_processes_go_off_inside() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass";
    let result = agent.run(limited(python(bomb), json!({ "seconds": 1 }))).await;
    assert_eq!(result["status"], "timeout", "{result}");

    let orphans = "
import os, time
for _ in range(200):
    try:
        if os.fork() == 0: os.setsid(); time.sleep(1000)
    except OSError as e: print(e.strerror); break
open('out/f', 'w').write('written with no process to spare')";
    let result = agent.run(python(orphans)).await;
    let expected = json!({
        "status": "ok", "stdout": "Resource temporarily unavailable\n", "stderr": "",
        "files": { "f": "written with no process to spare" },
    });
    assert_eq!(parts(&result, &["status", "stdout", "stderr", "files"]), expected);
    eventually("no container is left", || async { rig.used_containers().await == 0 }).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn children_that_outlive_the_program_hold_nothing_up() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let begun = Instant::now();
    for call in [
        shell("sleep 1000 & (trap '' TERM HUP; sleep 1000) & echo done; exit 6"),
        python(
            "import os, sys, time\nif os.fork() == 0:\n    os.setsid()\n    while True: time.sleep(1)\nprint('done')\nsys.stdout.flush()\nos._exit(6)",
        ),
    ] {
        let result = agent.run(call).await;
        let expected = json!({ "status": "failed", "exit_code": 6, "stdout": "done\n" });
        assert_eq!(parts(&result, &["status", "exit_code", "stdout"]), expected);
    }
    assert!(begun.elapsed().as_secs() < 20);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_the_programs_trouble_and_files_written_before_are_kept() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let code = "
open('out/first', 'w').write('kept')
for where in ('/sandbox/fill', '/tmp/fill'):
    try:
        with open(where, 'wb') as f:
            while True: f.write(bytes(1 << 20))
    except OSError as e: print(where, e.strerror)";
    let result = agent.run(python(code)).await;
    assert_eq!(result["status"], "ok", "{result}");
    assert_eq!(result["files"], json!({ "first": "kept" }));
    let lines: Vec<&str> = result["stdout"].as_str().unwrap().lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_may_lower_the_owners_limits_and_not_raise_them() {
    let rig = Rig::start_with(|settings| settings.limits.seconds = 1.0).await;
    let mut agent = rig.agent().await;
    let call = limited(shell("sleep 5"), json!({ "seconds": 50, "memory_mb": 4096, "cpus": 8 }));
    let result = agent.run(call).await;
    assert_eq!(result["status"], "timeout");
    assert_eq!(result["limits"], json!({ "seconds": 1.0, "memory_mb": 512.0, "cpus": 1.0 }));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_owner_allows_the_walls_can_still_be_proved() {
    let rig = Rig::start_with(|settings| {
        settings.limits.output_kb = 1;
        settings.limits.seconds = 0.5;
        settings.limits.cpus = 64.0;
    })
    .await;
    let result = rig.agent().await.run(shell("echo fine")).await;
    assert_eq!((&result["status"], &result["stdout"]), (&json!("ok"), &json!("fine\n")), "{result}");
    let cpus = result["limits"]["cpus"].as_f64().unwrap();
    assert!((1.0..=64.0).contains(&cpus) && cpus.fract() == 0.0, "as many as the engine has: {cpus}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn discarded_output_is_bounded() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let mut call = shell("yes | head -c 100000000 >&2; yes");
    call["overflow"] = json!("truncate");
    let result = agent.run(call).await;
    assert_eq!(parts(&result, &["status", "exit_code"]), json!({ "status": "output_limit", "exit_code": 137 }));
    let produced = |stream: &str| result["output_bytes"][stream].as_u64().unwrap();
    assert_eq!(produced("stderr"), 100_000_000);
    let bound = 256 << 20;
    assert!((bound..bound + (1 << 20)).contains(&produced("stdout")), "{result}");
    assert!(result["stdout"].as_str().unwrap().contains("bytes left out"));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_names_in_little_memory_takes_no_verdict_away() {
    let rig = Rig::start_with(|settings| settings.limits.memory_mb = 32).await;
    let mut agent = rig.agent().await;
    let code = "
for number in range(10_000):
    open(f'out/{number:0240}', 'w').close()
read = lambda name: int(open('/sys/fs/cgroup/memory/memory.' + name).read())
try:
    room = read('limit_in_bytes') - read('usage_in_bytes')
except OSError:
    room = 12 << 20
with open('/tmp/fill', 'wb') as fill:
    fill.write(b'x' * 1024)
    while room > (3 << 19):
        fill.write(b'x' * (1 << 18)); fill.flush()
        room -= 1 << 18
print('done', flush=True)";
    let result = agent.run(python(code)).await;
    assert_eq!(
        parts(&result, &["status", "exit_code", "stdout"]),
        json!({ "status": "ok", "exit_code": 0, "stdout": "done\n" })
    );
    rig.stop().await;
}
