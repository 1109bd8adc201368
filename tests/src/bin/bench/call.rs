//! One call at a time on a warm machine, and everything it is compared with, in turn.

use std::time::{Duration, Instant};

use sandtray_tests::rig::Agent;
use serde_json::{Map, Value, json};

use crate::peers::{Peers, peer};
use crate::serving::{Serving, print_call};
use crate::stats::{Sample, round};

const ROUNDS: usize = 30;
/// Containers that are kept, and waited for before each call: an agent thinks between its calls for longer than they take.
const WARM: u64 = 2;

pub(crate) async fn measure() -> Value {
    let serving = Serving::start(|settings| settings.warm = WARM as u32).await;
    let mut agent = serving.agent().await;
    let peers = Peers::new();
    let mut report = Map::new();
    println!(
        "{:<11} {:>9} {:>9} {:>11} {:>11} {:>11} {:>9} {:>9} {:>9}",
        "language", "call", "p95", "with files", "docker run", "docker exec", "bare", "run/call", "call/bare"
    );
    for language in ["python", "javascript", "shell"] {
        let (peer, print, files) = (peer(language), print_call(language), with_files(language));
        let container = peers.start(&peer).await;
        let (mut call, mut filed, mut run, mut exec, mut bare) = <(Sample, Sample, Sample, Sample, Sample)>::default();
        let mut parts = Parts::default();
        for _ in 0..WARM {
            agent.run(print.clone()).await;
        }
        for _ in 0..ROUNDS {
            serving.warm(&mut agent, WARM).await;
            let (took, result) = timed(&mut agent, &print).await;
            call.add(took);
            parts.add(took, &result);
            serving.warm(&mut agent, WARM).await;
            filed.add(time(&mut agent, &files).await);
            run.add(peers.docker_run(&peer).await);
            exec.add(peers.docker_exec(&container, &peer).await);
            bare.add(peers.bare(&peer).await);
        }
        peers.stop(&container).await;
        let run_ratio = run.median() / call.median();
        let bare_ratio = call.median() / bare.median();
        println!(
            "{language:<11} {:>6.1} ms {:>6.1} ms {:>8.1} ms {:>8.1} ms {:>8.1} ms {:>6.1} ms {run_ratio:>8.1}x {bare_ratio:>8.2}x",
            call.median(),
            call.p95(),
            filed.median(),
            run.median(),
            exec.median(),
            bare.median()
        );
        parts.print();
        report.insert(
            language.into(),
            json!({
                "call": call.json(), "parts": parts.json(), "with_files": filed.json(), "docker_run": run.json(), "docker_exec": exec.json(),
                "bare": bare.json(), "docker_run_to_call": round(run_ratio), "call_to_bare": round(bare_ratio),
            }),
        );
    }
    report.insert("cold".into(), cold(&mut agent).await);
    report.insert("compiled".into(), compiled(&serving, &mut agent).await);
    serving.stop().await;
    report.into()
}

async fn time(agent: &mut Agent, call: &Value) -> Duration {
    timed(agent, call).await.0
}

async fn timed(agent: &mut Agent, call: &Value) -> (Duration, Value) {
    let begun = Instant::now();
    let result = agent.run(call.clone()).await;
    let took = begun.elapsed();
    assert_eq!(result["status"], "ok", "{result}");
    (took, result)
}

/// Where a call's time goes, by what its result says of itself.
#[derive(Default)]
struct Parts {
    before: Sample,
    program: Sample,
    after: Sample,
}

impl Parts {
    fn add(&mut self, took: Duration, result: &Value) {
        let seconds = |name: &str| Duration::from_secs_f64(result[name].as_f64().unwrap());
        let (before, program) = (seconds("queued_seconds"), seconds("seconds"));
        self.before.add(before);
        self.program.add(program);
        self.after.add(took.saturating_sub(before + program));
    }

    fn print(&self) {
        let (before, program, after) = (self.before.median(), self.program.median(), self.after.median());
        println!(
            "            of which {before:.1} ms before the program, {program:.1} ms the program, {after:.1} ms after it"
        );
    }

    fn json(&self) -> Value {
        json!({ "before": self.before.json(), "program": self.program.json(), "after": self.after.json() })
    }
}

/// 10 KB in, 60 KB of a picture's bytes out.
fn with_files(language: &str) -> Value {
    let code = match language {
        "python" => "print(1)\nopen('out/p.png', 'wb').write(open('in', 'rb').read() * 6 + b'\\xff')",
        "javascript" => {
            "const fs = require('fs'); console.log(1); fs.writeFileSync('out/p.png', Buffer.concat([...Array(6).fill(fs.readFileSync('in')), Buffer.from([255])]))"
        }
        _ => "echo 1; cat in in in in in in > out/p.png; printf '\\377' >> out/p.png",
    };
    json!({ "language": language, "code": code, "files": { "in": "x".repeat(10_000) } })
}

/// With a limit of its own, a call gets a container of its own.
async fn cold(agent: &mut Agent) -> Value {
    let mut sample = Sample::default();
    let mut call = print_call("python");
    call["limits"] = json!({ "memory_mb": 256 });
    for _ in 0..10 {
        sample.add(time(agent, &call).await);
    }
    println!("cold, python: {:.1} ms", sample.median());
    sample.json()
}

async fn compiled(serving: &Serving, agent: &mut Agent) -> Value {
    let mut report = Map::new();
    for language in ["go", "rust"] {
        let mut sample = Sample::default();
        let call = print_call(language);
        time(agent, &call).await;
        for _ in 0..3 {
            serving.warm(agent, 1).await;
            sample.add(time(agent, &call).await);
        }
        println!("{language}, hello world: {:.0} ms", sample.median());
        report.insert(language.into(), sample.json());
    }
    report.into()
}
