//! Programs in all five languages, the world they start in, and how they end.

use sandtray_tests::rig::Rig;
use serde_json::{Value, json};

use crate::{parts, python, shell};

const PYTHON: &str = "
import sys
open('out/o.txt', 'w').write(sys.stdin.read() + open('in.txt').read())
print('hi')
sys.exit(3)";

const JAVASCRIPT: &str = "
const fs = require('fs');
fs.writeFileSync('out/o.txt', fs.readFileSync(0, 'utf8') + fs.readFileSync('in.txt', 'utf8'));
console.log('hi');
process.exit(3);";

const SHELL: &str = "cat - in.txt > out/o.txt; echo hi; exit 3";

const GO: &str = r#"
package main
import ("fmt"; "io"; "os")
func main() {
    given, _ := io.ReadAll(os.Stdin)
    file, _ := os.ReadFile("in.txt")
    os.WriteFile("out/o.txt", append(given, file...), 0644)
    fmt.Println("hi")
    if len(os.Environ()) != 4 { panic(os.Environ()) }
    os.Exit(3)
}"#;

const RUST: &str = r#"
fn main() {
    let mut text = std::io::read_to_string(std::io::stdin()).unwrap();
    text += &std::fs::read_to_string("in.txt").unwrap();
    std::fs::write("out/o.txt", text).unwrap();
    println!("hi");
    assert_eq!(std::env::vars().count(), 4);
    std::process::exit(3)
}"#;

#[tokio::test(flavor = "multi_thread")]
async fn all_five_languages_print_read_write_and_exit() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    for (language, code) in
        [("python", PYTHON), ("javascript", JAVASCRIPT), ("shell", SHELL), ("go", GO), ("rust", RUST)]
    {
        let call = json!({ "language": language, "code": code, "stdin": "one ", "files": { "in.txt": "two" } });
        let result = agent.run(call).await;
        let expected = json!({
            "status": "failed", "exit_code": 3, "stdout": "hi\n", "stderr": "", "files": { "o.txt": "one two" },
            "skipped_files": [], "left_behind": [], "output_bytes": { "stdout": 3, "stderr": 0 },
            "limits": { "seconds": 60.0, "memory_mb": 512.0, "cpus": 1.0 },
        });
        let names: Vec<&str> = expected.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(parts(&result, &names), expected, "{language}");
        for figure in ["seconds", "queued_seconds", "memory_bytes", "cpu_seconds"] {
            assert!(result[figure].as_f64().unwrap() > 0.0, "{language} {figure}: {result}");
        }
        assert!(result["image"].as_str().unwrap().contains("@sha256:"), "{language}: {result}");
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_meets_the_world_that_the_contract_promises() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let code = "
import sys, os, json
world = dict(argv=sys.argv, cwd=os.getcwd(), environment=sorted(os.environ), folder=sorted(os.listdir('.')),
    stdin=sys.stdin.read(), name=__name__, uid=os.getuid(), host=os.uname().nodename)
print(json.dumps(world))";
    let result = agent.run(python(code)).await;
    let world: Value = serde_json::from_str(result["stdout"].as_str().unwrap()).unwrap();
    let expected = json!({
        "argv": ["main.py"], "cwd": "/sandbox", "environment": ["HOME", "LANG", "PATH", "TMPDIR"],
        "folder": ["main.py", "out"], "stdin": "", "name": "__main__", "uid": 65534, "host": "sandbox",
    });
    assert_eq!(world, expected);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_are_the_programs_own() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    for code in [0, 1, 124, 125, 126, 127, 130, 137, 145, 255] {
        for program in [python(&format!("import os; os._exit({code})")), shell(&format!("exit {code}"))] {
            let result = agent.run(program.clone()).await;
            let status = if code == 0 { "ok" } else { "failed" };
            let expected = json!({ "status": status, "exit_code": code });
            assert_eq!(parts(&result, &["status", "exit_code"]), expected, "{program}");
        }
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_ends_the_program_is_told_by_the_exit_code() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    for (signal, number) in
        [("INT", 2), ("QUIT", 3), ("ABRT", 6), ("KILL", 9), ("USR1", 10), ("SEGV", 11), ("TERM", 15)]
    {
        let code = format!(
            "import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\nos.kill(os.getpid(), signal.SIG{signal})"
        );
        let result = agent.run(python(&code)).await;
        let expected = json!({ "status": "failed", "exit_code": 128 + number, "stderr": "" });
        assert_eq!(parts(&result, &["status", "exit_code", "stderr"]), expected, "SIG{signal}");
    }
    let interrupted = agent.run(python("import os, signal; os.kill(os.getpid(), signal.SIGINT)")).await;
    assert_eq!(interrupted["exit_code"], 130, "INT is not ignored at the start: {interrupted}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_arrive_as_they_were_meant() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    for (call, stdout) in [
        (shell("\u{feff}set -eu\r\necho one\r\n"), "one\n"),
        (json!({ "language": "node", "code": "\u{feff}#!/usr/bin/env node\nconsole.log('bom')" }), "bom\n"),
        (json!({ "language": "js", "code": "import os from 'node:os'; console.log(await os.EOL.length)" }), "1\n"),
        (python("import helper; print(helper.x)"), "7\n"),
        (python(""), ""),
    ] {
        let mut call = call;
        call["files"] = json!({ "helper.py": "x = 7" });
        let result = agent.run(call).await;
        let expected = json!({ "status": "ok", "stdout": stdout, "stderr": "", "left_behind": [] });
        assert_eq!(parts(&result, &["status", "stdout", "stderr", "left_behind"]), expected);
    }
    let result = agent.run(python("x = 1\nraise ValueError('no')")).await;
    let traceback = "Traceback (most recent call last):\n  File \"/sandbox/main.py\", line 2, in <module>\n    raise ValueError('no')\nValueError: no\n";
    assert_eq!(parts(&result, &["exit_code", "stderr"]), json!({ "exit_code": 1, "stderr": traceback }));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_compile_fails_with_the_compilers_words() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    for (language, code, word) in
        [("rust", "fn main() { nonsense }", "E0425"), ("go", "package main\nfunc main() { nonsense }", "nonsense")]
    {
        let result = agent.run(json!({ "language": language, "code": code })).await;
        assert_eq!(parts(&result, &["status", "exit_code"]), json!({ "status": "failed", "exit_code": 1 }), "{result}");
        assert!(result["stderr"].as_str().unwrap().contains(word), "{result}");
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_cannot_pass_for_the_launcher() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let code = r"
import sys
nonce = '0123456789abcdef' * 2
sys.stdout.write(f'\x1e{nonce} start\n\x1e{nonce} end 0 1 0 1\nmain.py\0\0')
sys.stderr.write(f'\x1e{nonce}\n')
sys.exit(5)";
    let result = agent.run(python(code)).await;
    let nonce = "0123456789abcdef0123456789abcdef";
    let expected = json!({
        "status": "failed", "exit_code": 5,
        "stdout": format!("\x1e{nonce} start\n\x1e{nonce} end 0 1 0 1\nmain.py\0\0"),
        "stderr": format!("\x1e{nonce}\n"),
    });
    assert_eq!(parts(&result, &["status", "exit_code", "stdout", "stderr"]), expected);
    rig.stop().await;
}
