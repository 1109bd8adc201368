//! An interpreter that was started before its program was there does just as one that is started after it: each program
//! here runs in a warm container and in one made for it, and says the same. What it can tell is its own age.

use std::time::{Duration, Instant};

use sandtray_tests::rig::{Agent, PATIENCE, Rig};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::parts;

const SAID: [&str; 7] = ["status", "exit_code", "stdout", "stderr", "files", "skipped_files", "left_behind"];

/// A limit that no warm container was made with.
const APART: u32 = 500;

const WHAT_PYTHON_SEES: &str = "
import sys, os, signal, stat
print(sys.argv, sys.orig_argv, sys.path, sys.flags, __name__, __file__, sorted(globals()), __spec__, __cached__)
print(sorted(sys.modules), sorted(map(str, sys.path_importer_cache)), os.getcwd(), dict(os.environ))
print([(s.name, str(signal.getsignal(s))) for s in signal.Signals if s.name != 'SIGINT'])
print([line for line in open('/proc/self/status') if line[:4] in ('SigB', 'SigI', 'SigC', 'CapE', 'CapB', 'Secc', 'NoNe', 'Uid:', 'Umas')])
print(open('/proc/self/cmdline').read(), open('/proc/self/limits').read(), os.getppid() == os.getpgid(0))
print(sorted(os.listdir('/proc/self/fd')), [stat.S_IFMT(os.fstat(fd).st_mode) for fd in range(3)])
print(sorted(os.listdir('.')), sorted(os.listdir('/tmp')), os.stat('main.py').st_size, oct(os.stat('main.py').st_mode))
print(repr(open(__file__).read()[-40:]), sys.stdin.read(), sys.stdin.encoding, sys.stdout.write_through)
def inner():
    return 1
import inspect
print(inspect.getsource(inner))
1 / 0";

const WHAT_NODE_SEES: &str = "
const fs = require('fs');
console.log(process.argv, process.execArgv, process.env, __filename, module.id, module.paths, require.main === module);
console.log(Object.keys(require.cache), process.moduleLoadList.length, Object.getOwnPropertyNames(globalThis).length);
console.log(fs.readFileSync('/proc/self/cmdline', 'utf8'), fs.readFileSync('/proc/self/status', 'utf8').match(/^Sig(Blk|Ign|Cgt).*$/mg));
console.log(fs.readFileSync(0, 'utf8'), fs.readdirSync('.'), fs.readdirSync('/tmp'), fs.statSync(__filename).size);
console.log(process.getActiveResourcesInfo(), process.listenerCount('exit'), process.memoryUsage().rss > 0);
const begun = Date.now();
setTimeout(() => { console.log(Date.now() - begun >= 49); throw new Error('at the end'); }, 50);";

const WHAT_SHELL_SEES: &str = "
echo \"$0 $# $- $PPID\" | sed 's/[0-9]*$//'
env | sort; set | grep -v -e '^PPID' -e '^_' | sort; trap; umask; ulimit -n; pwd; ls -a . /tmp; ls /proc/self/fd | wc -l
cat; tail -n 2 main.sh; tr '\\0' ' ' </proc/$$/cmdline; grep -e ^SigIgn -e ^SigCgt /proc/$$/status
nosuchcommand
exit 9";

/// A program, its standard input, and its files.
fn call(language: &str, code: &str, files: &[(&str, &str)]) -> Value {
    let files: serde_json::Map<_, _> = files.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect();
    json!({ "language": language, "code": code, "stdin": "given\n", "files": files })
}

/// One language, with one container of it kept warm.
async fn warm_rig(agent_of: &str) -> (Rig, Agent) {
    let rig = Rig::start_with(|settings| settings.warm = 1).await;
    let mut agent = rig.agent().await;
    agent.run(call(agent_of, "", &[])).await;
    (rig, agent)
}

async fn until_warm(rig: &Rig) {
    let mut warm = rig.service.supervisor.watch();
    let one = timeout(PATIENCE, warm.wait_for(|snapshot| snapshot.warm == 1)).await.expect("a warm container");
    one.expect("the service runs");
}

async fn says_the_same(language: &str, calls: Vec<Value>) {
    let (rig, mut agent) = warm_rig(language).await;
    for call in calls {
        until_warm(&rig).await;
        let warm = agent.run(call.clone()).await;
        let mut apart = call.clone();
        apart["limits"] = json!({ "memory_mb": APART });
        let cold = agent.run(apart).await;
        assert_eq!(parts(&warm, &SAID), parts(&cold, &SAID), "{call:.300}");
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_program_cannot_tell() {
    let long = format!("{}print(x)\nraise SystemExit(3)", "x = 1 # padding\n".repeat(40_000));
    // The interpreter ends at the first line and closes the pipe, long before it has all of the program.
    let wrong_at_once = format!("x = )\n{long}");
    let programs: &[(&str, &[(&str, &str)])] = &[
        (WHAT_PYTHON_SEES, &[("data.txt", "x")]),
        ("def f(:\n  pass\n", &[]),
        ("x = (1,\n", &[]),
        ("if 1:\n\tx = 1\n        y = 2\n", &[]),
        ("", &[]),
        ("print('no end of line')", &[]),
        ("print(1)\r\nprint('''a\r\nb'''.encode())\r\n", &[]),
        ("\u{feff}print('é 漢 😀 \\\\ %s \u{81}\u{88}')\n\n  \n", &[]),
        ("print(1)\0\n", &[]),
        ("# -*- coding: latin-1 -*-\nprint(ascii('é'))\n", &[]),
        ("print('as text')\n#PK\u{5}\u{6}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", &[]),
        ("# -*- coding: utf-8 -*-\nprint('é')\n", &[]),
        ("# vim: set fileencoding=utf-8 :\nprint('é')\n", &[]),
        (
            "import main, helper\nprint(main.__name__, helper.x)",
            &[("helper.py", "x = 7"), ("json.py", "raise Exception")],
        ),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", &[]),
        ("import os\nif os.fork():\n  print(os.WEXITSTATUS(os.wait()[1]))\nelse:\n  os._exit(5)", &[]),
        ("import threading\nthreading.Thread(target=lambda: 1 / 0, name='t').start()", &[]),
        ("open('out/a', 'w').write('A')\nopen('left', 'w').write('B')\nimport os\nos.unlink('main.py')\n1/0", &[]),
        (&long, &[]),
        (&wrong_at_once, &[]),
    ];
    says_the_same("python", programs.iter().map(|(code, files)| call("python", code, files)).collect()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_program_cannot_tell() {
    let long = format!("{}console.log('end'); process.exitCode = 3;", "// padding\n".repeat(60_000));
    let programs: &[(&str, &[(&str, &str)])] = &[
        (WHAT_NODE_SEES, &[("data.json", "{}")]),
        (
            "import fs from 'fs';\nconsole.log(import.meta.url, process.argv.slice(1)); await 1; console.log(typeof require);",
            &[],
        ),
        ("console.log(await 5);", &[]),
        ("function f( {\n", &[]),
        ("function g() { throw new Error('boom') }\n\ng()\n", &[]),
        ("Promise.reject(new Error('x'))", &[]),
        (
            "console.log(require('./data.json'), require('./lib'))",
            &[("data.json", "{\"a\":1}"), ("lib.js", "module.exports = 3")],
        ),
        ("console.log(typeof require, typeof module)", &[("package.json", "{\"type\":\"module\"}")]),
        ("import x from './lib.mjs'; console.log(x)", &[("lib.mjs", "export default 4")]),
        ("\u{feff}#!/usr/bin/env node\nconsole.log('é 漢 😀')", &[]),
        ("", &[]),
        ("process.stdin.on('data', d => console.log(String(d))).on('end', () => console.log('end'))", &[]),
        (
            "const w = require('worker_threads'); if (w.isMainThread) new w.Worker(__filename).on('exit', console.log); else console.log('in')",
            &[],
        ),
        (
            "const c = require('child_process').fork('./k.js'); c.on('message', m => console.log(m))",
            &[("k.js", "process.send('hi')")],
        ),
        ("process.kill(process.pid, 'SIGTERM')", &[]),
        (&long, &[]),
    ];
    says_the_same("javascript", programs.iter().map(|(code, files)| call("javascript", code, files)).collect()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_program_cannot_tell() {
    let long = format!("{}echo end\nexit 3", ": padding\n".repeat(2_000));
    let programs: &[(&str, &[(&str, &str)])] = &[
        (WHAT_SHELL_SEES, &[("data.txt", "x")]),
        ("if true; then echo", &[]),
        ("read line; echo \"<$line>\"; cat", &[]),
        ("", &[]),
        ("set -e\nfalse\necho no", &[]),
        ("echo 'é 漢 😀 \\\\ %s \u{81}\u{88}' \"\\\"", &[]),
        ("sleep 0.1 & wait; kill -TERM $$", &[]),
        ("cat <<end >out/f\n  kept\nend\n", &[]),
        ("exit 4\nnever", &[]),
        ("echo one; echo 'echo appended' >>\"$0\"", &[]),
        (&long, &[]),
    ];
    says_the_same("shell", programs.iter().map(|(code, files)| call("shell", code, files)).collect()).await;
}

/// Without this the tests above could pass with nothing started ahead.
#[tokio::test(flavor = "multi_thread")]
async fn its_age_says_that_it_was_started_ahead() {
    const OLD_ENOUGH: Duration = Duration::from_millis(300);
    const AGE: &str = "import os
start = float(open('/proc/self/stat').read().rsplit(')', 1)[1].split()[19]) / os.sysconf('SC_CLK_TCK')
print(float(open('/proc/uptime').read().split()[0]) - start)";
    for (language, code) in [("python", AGE), ("javascript", "console.log(performance.now() / 1000)")] {
        let (rig, mut agent) = warm_rig(language).await;
        until_warm(&rig).await;
        let warm_since = Instant::now();
        tokio::time::sleep(OLD_ENOUGH).await;
        let least = warm_since.elapsed();
        let warm = age(&agent.run(call(language, code, &[])).await);
        assert!(warm >= least.as_secs_f64() - 0.02, "{language}: {warm} s old, {least:?} after it was warm");

        until_warm(&rig).await;
        let mut apart = call(language, code, &[]);
        apart["limits"] = json!({ "memory_mb": APART });
        let asked = Instant::now();
        let cold = age(&agent.run(apart).await);
        assert!(cold <= asked.elapsed().as_secs_f64(), "{language}: {cold} s old, older than its call");
        rig.stop().await;
    }
}

fn age(result: &Value) -> f64 {
    result["stdout"].as_str().unwrap_or_default().trim().parse().unwrap_or_else(|_| panic!("an age: {result}"))
}
