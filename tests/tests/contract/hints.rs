//! A run that failed by a wall says so: real programs for each row of the table of hints, and programs that get no
//! hint.

use sandtray_core::hint::{self, ROWS};
use sandtray_tests::rig::Rig;
use serde_json::{Value, json};

use crate::{python, shell};

fn js(code: &str) -> Value {
    json!({ "language": "javascript", "code": code })
}

fn go(imports: &str, body: &str) -> Value {
    let imports: String = imports.split(' ').map(|name| format!("import \"{name}\"\n")).collect();
    json!({ "language": "go", "code": format!("package main\n{imports}func main() {{ {body} }}\n") })
}

fn rust(body: &str) -> Value {
    json!({ "language": "rust", "code": format!("fn main() {{ {body} }}\n") })
}

/// Programs that meet each row.
fn programs() -> Vec<(&'static str, Vec<Value>)> {
    let small = |call: Value, limits: Value| {
        let mut call = call;
        call["limits"] = limits;
        call
    };
    vec![
        (
            "packages",
            vec![
                shell("pip install requests"),
                shell("apk add curl"),
                shell("apt-get install -y curl"),
                python("import subprocess\nsubprocess.run(['pip', 'install', 'requests'], check=True)"),
                python(
                    "import subprocess, sys\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', 'requests', '--retries', '0'])",
                ),
                js("require('child_process').execSync('npm install lodash')"),
                go(
                    "os/exec log",
                    "if err := exec.Command(\"pip\", \"install\", \"x\").Run(); err != nil { log.Fatal(err) }",
                ),
            ],
        ),
        (
            "modules",
            vec![
                python("import numpy as np"),
                python("import subprocess, sys\nsys.exit(subprocess.call([sys.executable, '-m', 'requests']))"),
                js("try { require('lodash') } catch (error) { console.error(error); process.exit(1) }"),
                js("require('lodash')"),
                js("import _ from 'lodash';"),
                go("github.com/x/y", "y.Z()"),
                json!({ "language": "go", "code": "package main\nimport \"github.com/x/y\"\nfunc main() { y.Z() }\n", "files": { "a.go": "package main\n" } }),
                json!({ "language": "go", "code": "package main\nimport \"github.com/x/y\"\nfunc main() { y.Z() }\n", "files": { "go.mod": "module a\n\ngo 1.21\n" } }),
                go("lodash", "lodash.Z()"),
                json!({ "language": "rust", "code": "use rand::Rng;\nfn main() {}" }),
                rust("serde_json::json!({});"),
            ],
        ),
        (
            "shared_memory",
            vec![
                python("import multiprocessing\nmultiprocessing.Pool(2)"),
                python("import multiprocessing\nmultiprocessing.Queue()"),
                python("import multiprocessing\nmultiprocessing.Lock()"),
                python("import multiprocessing\nmultiprocessing.Value('i', 0)"),
                python(
                    "from concurrent.futures import ProcessPoolExecutor\nwith ProcessPoolExecutor() as pool: print(list(pool.map(abs, [1])))",
                ),
                python("from multiprocessing import shared_memory\nshared_memory.SharedMemory(create=True, size=9)"),
                shell("echo x >/dev/shm/x"),
            ],
        ),
        (
            "interfaces",
            vec![
                js("console.log(require('os').networkInterfaces())"),
                python("import socket\nprint(socket.if_nameindex())"),
                go("net log", "_, err := net.Interfaces(); log.Fatal(err)"),
                shell("ip addr"),
            ],
        ),
        (
            "localhost",
            vec![
                js("require('net').connect(5432, 'localhost')"),
                go("net log", "_, err := net.Dial(\"tcp\", \"localhost:80\"); log.Fatal(err)"),
                shell("wget http://localhost:80"),
            ],
        ),
        (
            "names",
            vec![
                python("import urllib.request\nurllib.request.urlopen('https://example.com')"),
                python("import asyncio\nasyncio.run(asyncio.open_connection('example.com', 80))"),
                python(
                    "import asyncio\nasync def main():\n    async with asyncio.TaskGroup() as group: group.create_task(asyncio.open_connection('example.com', 80))\nasyncio.run(main())",
                ),
                js("await fetch('http://example.com')"),
                js("require('dns').promises.resolve('example.com')"),
                js("require('https').get('https://example.com')"),
                go("net/http log", "_, err := http.Get(\"http://example.com\"); log.Fatal(err)"),
                go("net", "if _, err := net.LookupHost(\"example.com\"); err != nil { panic(err) }"),
                rust("std::net::TcpStream::connect(\"example.com:80\").unwrap();"),
                shell("wget http://example.com"),
                shell("nc -w 2 example.com 80"),
                shell("wget -O data.csv http://example.com/data.csv || exit\nwc -l data.csv"),
            ],
        ),
        (
            "unreachable",
            vec![
                python("import socket\nsocket.create_connection(('1.1.1.1', 80))"),
                js("await fetch('http://1.1.1.1')"),
                js("fetch('http://1.1.1.1').catch((error) => { console.error(error); process.exit(1) })"),
                js(
                    "fetch('http://1.1.1.1').catch((error) => { console.error(`No page: ${error.cause.message}`); process.exit(1) })",
                ),
                python(
                    "import sys, urllib.request\ntry: urllib.request.urlopen('http://1.1.1.1')\nexcept OSError as error: sys.exit(f'No page: {error}')",
                ),
                go("net/http", "if _, err := http.Get(\"http://1.1.1.1\"); err != nil { panic(err) }"),
                rust("std::net::TcpStream::connect(\"1.1.1.1:80\").unwrap();"),
                shell("wget http://1.1.1.1"),
            ],
        ),
        (
            "tools",
            vec![
                shell("curl -s https://example.com"),
                python("import subprocess\nsubprocess.run(['git', 'clone', 'https://example.com/x'], check=True)"),
                js("require('child_process').spawn('curl', ['https://example.com'])"),
                go("os/exec log", "log.Fatal(exec.Command(\"curl\").Run())"),
            ],
        ),
        (
            "refused",
            vec![
                python("import socket\nsocket.create_connection(('127.0.0.1', 5432))"),
                js("require('net').connect(5432, '127.0.0.1')"),
                go("net log", "_, err := net.Dial(\"tcp\", \"127.0.0.1:80\"); log.Fatal(err)"),
                rust("std::net::TcpStream::connect(\"127.0.0.1:80\").unwrap();"),
                shell("nc 127.0.0.1 80"),
            ],
        ),
        (
            "read_only",
            vec![
                python("open('/etc/x', 'w')"),
                js("require('fs').writeFileSync('/etc/x', '')"),
                go("os", "if err := os.WriteFile(\"/etc/x\", nil, 0644); err != nil { panic(err) }"),
                rust("std::fs::write(\"/etc/x\", \"\").unwrap();"),
                json!({ "language": "rust", "code": "fn main() -> std::io::Result<()> { std::fs::write(\"/etc/x\", \"\") }" }),
                shell("echo x >/etc/x"),
            ],
        ),
        (
            "processes",
            vec![
                python(
                    "import threading, time\nfor _ in range(500): threading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
                ),
                js("for (let i = 0; i < 300; i++) require('child_process').spawn('sleep', ['3'])"),
                go(
                    "runtime time",
                    "for i := 0; i < 500; i++ { go func() { runtime.LockOSThread(); time.Sleep(9 * time.Second) }() }; time.Sleep(9 * time.Second)",
                ),
                go(
                    "os/exec log",
                    "for i := 0; i < 500; i++ { if err := exec.Command(\"sleep\", \"9\").Start(); err != nil { log.Fatal(err) } }",
                ),
                rust(
                    "for _ in 0..500 { std::thread::spawn(|| std::thread::sleep(std::time::Duration::from_secs(9))); }",
                ),
                rust("for _ in 0..500 { std::process::Command::new(\"sleep\").arg(\"9\").spawn().unwrap(); }"),
                shell("for i in $(seq 500); do sleep 9 & done"),
            ],
        ),
        (
            "processes_of_python",
            vec![
                python("import subprocess\nfor _ in range(500): subprocess.Popen(['sleep', '9'])"),
                python("import os, time\nfor _ in range(500):\n    if os.fork() == 0: time.sleep(9)"),
            ],
        ),
        (
            "descriptors",
            vec![
                python("files = [open('main.py') for _ in range(2000)]"),
                js("for (;;) require('fs').openSync('main.js')"),
                go("os", "for { if _, err := os.Open(\"main.go\"); err != nil { panic(err) } }"),
                rust(
                    "let all: Vec<_> = (0..2000).map(|_| std::fs::File::open(\"main.rs\").unwrap()).collect(); drop(all);",
                ),
            ],
        ),
        (
            "space",
            vec![
                python("open('/tmp/x', 'wb').write(bytes(20 << 20))"),
                python("for n in range(20000): open(f'{n}', 'w')"),
                js("require('fs').writeFileSync('/tmp/x', Buffer.alloc(20 << 20))"),
                go("os", "if err := os.WriteFile(\"out/x\", make([]byte, 70<<20), 0644); err != nil { panic(err) }"),
                rust("std::fs::write(\"out/x\", vec![0u8; 70 << 20]).unwrap();"),
                shell("dd if=/dev/zero of=/tmp/x bs=1M count=20"),
            ],
        ),
        (
            "file_size",
            vec![
                python("with open('x', 'wb') as file: file.truncate(65 << 20)"),
                js("require('fs').truncateSync(require('fs').openSync('x', 'w'), 65 << 20)"),
                shell("dd if=/dev/zero of=x bs=1M count=1 seek=80"),
            ],
        ),
        ("file_size_signal", vec![rust("std::fs::File::create(\"x\").unwrap().set_len(65 << 20).unwrap();")]),
        (
            "not_permitted",
            vec![
                python("import os\nos.chown('main.py', 0, 0)"),
                js("process.setuid(0)"),
                rust("std::os::unix::fs::chown(\"main.rs\", Some(0), None).unwrap();"),
                shell("mount -t tmpfs x /mnt"),
                python("import os\nos.setuid(0)"),
                python("import socket\nsocket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)"),
                shell("sudo true"),
            ],
        ),
        (
            "denied",
            vec![
                python("open('/etc/shadow')"),
                js("require('fs').readFileSync('/etc/shadow')"),
                json!({ "language": "shell", "code": "./do.sh", "files": { "do.sh": "echo done" } }),
                json!({ "language": "python", "code": "import subprocess\nsubprocess.run(['./do.sh'], check=True)", "files": { "do.sh": "echo done" } }),
            ],
        ),
        (
            "heap",
            vec![python("bytearray(1 << 45)"), js("const all = []; for (;;) all.push('x'.repeat(1000) + all.length)")],
        ),
        ("out_of_memory", vec![small(python("x = b'1' * (200 << 20)"), json!({ "memory_mb": 64 }))]),
        ("timeout", vec![small(python("while True: pass"), json!({ "seconds": 0.3 }))]),
        ("output_limit", vec![python("while True: print('x' * 1000)")]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_is_met_by_real_programs() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let programs = programs();
    let named: Vec<&str> = programs.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        named,
        ROWS.iter().map(|row| row.name).collect::<Vec<_>>(),
        "a row, and what meets it, in the same order"
    );
    let mut wrong = Vec::new();
    for (row, (name, calls)) in ROWS.iter().zip(programs) {
        for call in calls {
            let result = agent.run(call.clone()).await;
            let status = result["status"].as_str().unwrap().parse().unwrap();
            let exit_code = i32::try_from(result["exit_code"].as_i64().unwrap()).unwrap();
            let found = hint::row(status, exit_code, result["stderr"].as_str().unwrap().as_bytes()).map(|row| row.name);
            if found != Some(name) || result["hint"] != row.hint {
                wrong.push(format!("{name}: got {found:?}, {}: {call}\n{result}", result["hint"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_no_wall_ended_has_no_hint() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let says = "print('[Errno 101] Network is unreachable', file=sys.stderr)";
    for call in [
        // It went well, whatever it met and printed.
        python(&format!("import sys\n{says}")),
        shell("wget http://example.com; true"),
        // Another reason followed.
        python(&format!("import sys\n{says}\nraise ValueError('of its own')")),
        python("try: open('/etc/x', 'w')\nexcept OSError: pass\nassert 1 == 2, 'of its own'"),
        js("console.error('EROFS: read-only file system'); throw new Error('of its own')"),
        js(
            "console.error('EROFS: read-only file system'); for (const n of [1, 2, 3]) console.error(n); console.error(new Error('of its own')); process.exit(1)",
        ),
        go("os", "os.Stderr.WriteString(\"no space left on device\\n\"); panic(\"of its own\")"),
        rust("eprintln!(\"Read-only file system\"); panic!(\"of its own\")"),
        shell("echo 'Read-only file system' >&2; for i in 1 2 3; do echo $i >&2; done; exit 3"),
        // On standard output it is the program's result.
        shell("echo 'Network is unreachable'; exit 1"),
        shell("exit 137"),
        shell("kill -9 $$"),
        python("open('data.csv')"),
        python("import os\nos.read(os.open('/proc/self/fd/0', os.O_RDONLY | os.O_NONBLOCK), 1)\n1 / 0"),
        go("fmt", "var list []int; fmt.Println(list[3])"),
        json!({ "language": "go", "code": "package main\nfunc main() { nonsense }" }),
        rust("let x: u8 = \"text\";"),
        js("undefined.field"),
    ] {
        let result = agent.run(call.clone()).await;
        assert_eq!(result.get("hint"), None, "{call}\n{result}");
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_hints_at_each_of_its_runs() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let runs = json!({ "runs": [shell("true"), shell("echo x >/etc/x"), python("import numpy")], "stream": true });
    let reply = agent.call("code.batch", runs).await.unwrap();
    let hint_of = |name: &str| ROWS.iter().find(|row| row.name == name).unwrap().hint;
    let expected = [Value::Null, hint_of("read_only").into(), hint_of("modules").into()];
    for (index, expected) in expected.iter().enumerate() {
        assert_eq!(&reply["results"][index]["result"]["hint"], expected);
    }
    for _ in 0..3 {
        let note = agent.notification("code.result").await;
        let index = usize::try_from(note["index"].as_u64().unwrap()).unwrap();
        assert_eq!(note["result"]["hint"], expected[index], "{note}");
    }
    rig.stop().await;
}
