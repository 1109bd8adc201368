//! Runs that are cut off while their program runs: by an engine that goes away, or by another program that ends their container.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use sandtray_tests::between::Between;
use sandtray_tests::dockerd::Dockerd;
use sandtray_tests::rig::{Agent, Rig, eventually};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::told;

/// Says something on both streams, one of them no text, and goes on.
const TALKS: &str = "echo so far; printf 'no text: \\377' >&2; while :; do sleep 1; done";

/// The one running container of this service.
async fn container(rig: &Rig) -> String {
    let engine = rig.service.health.watch().borrow().engine.clone().unwrap();
    let home = rig.home();
    let all = engine.containers().await.unwrap();
    let running: Vec<_> = all.iter().filter(|found| found.running && found.instance.starts_with(&home)).collect();
    assert_eq!(running.len(), 1, "nothing is warm: {all:?}");
    running[0].id.0.clone()
}

async fn docker(arguments: &[&str]) {
    let mut docker = Command::new("docker");
    docker.args(arguments).stdout(Stdio::null());
    assert!(docker.status().await.unwrap().success(), "docker {arguments:?}");
}

/// Returns once the program has said all on these streams that it says before it goes on. The streams have no common order.
async fn start(agent: &mut Agent, code: &str, streams: &[&str]) -> u64 {
    let call = agent.send("code.run", told(code)).await;
    let mut left = streams.to_vec();
    while !left.is_empty() {
        let output = agent.notification("code.output").await;
        left.retain(|stream| output["stream"] != **stream);
    }
    call
}

const BOTH: &[&str] = &["stdout", "stderr"];

/// The error, and what the history says of the run: they tell the same.
async fn interrupted(rig: &Rig, error: Value, cause: &str) -> Value {
    let data = &error["data"];
    assert_eq!((&data["code"], &data["cause"]), (&json!("run_interrupted"), &json!(cause)), "{error}");
    assert_eq!(error["code"], -32009);
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("Cut off after ") && message.ends_with('.'), "{message}");
    assert!(data["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{error}");
    assert_eq!(data["stdout"], "so far\n", "{error}");
    assert_eq!(data["stdout_base64"], Value::Null);
    assert_eq!((&data["stderr"], &data["stderr_base64"]), (&json!("no text: \u{fffd}"), &json!("bm8gdGV4dDog/w==")));
    let seconds = data["seconds"].as_f64().unwrap();
    assert!((0.0..60.0).contains(&seconds) && seconds > 0.0, "{seconds}");
    let page = rig.agent().await.call("code.history", json!({ "limit": 1 })).await.unwrap();
    let row = &page["runs"][0];
    assert_eq!((&row["run_id"], &row["status"]), (&data["run_id"], &json!("interrupted")), "{row}");
    assert_eq!((&row["ended_by"], &row["exit_code"]), (&json!(cause), &Value::Null), "{row}");
    assert!((row["seconds"].as_f64().unwrap() - seconds).abs() < 1e-3, "{row}");
    assert_eq!(row["stdout"], json!({ "produced": 7, "returned": 7 }));
    let id = data["run_id"].as_str().unwrap().parse().unwrap();
    let body = rig.service.history.get(id).await.unwrap().unwrap().body.unwrap();
    assert_eq!((&body.stdout[..], &body.stderr[..]), (&b"so far\n"[..], &b"no text: \xff"[..]));
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_is_ended_from_outside_is_no_failure_of_the_program() {
    let rig = Rig::start_with(|settings| settings.warm = 0).await;
    rig.proved().await;
    let mut agent = rig.agent().await;
    for ways in [&["rm -f"][..], &["kill"], &["stop -t 0"], &["stop -t 1"], &["pause", "kill"], &["kill", "rm"]] {
        let call = start(&mut agent, TALKS, BOTH).await;
        let id = container(&rig).await;
        for way in ways {
            let mut words: Vec<&str> = way.split(' ').collect();
            words.push(&id);
            // The container of a run that was cut off is removed by Sandtray too.
            if ways.len() == 2 && *way == "rm" {
                break;
            }
            docker(&words).await;
        }
        let error = interrupted(&rig, agent.reply(call).await.unwrap_err(), "outside").await;
        assert!(error["message"].as_str().unwrap().contains("container"), "{error}");
    }
    // Signals that end nothing are no reason.
    let call = start(&mut agent, "echo ready >&2; sleep 1; exit 3", &["stderr"]).await;
    docker(&["kill", "-s", "USR1", &container(&rig).await]).await;
    assert_eq!(agent.reply(call).await.unwrap()["exit_code"], 3);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_batch_one_run_that_is_cut_off_has_its_own_error() {
    let rig = Rig::start_with(|settings| settings.warm = 0).await;
    rig.proved().await;
    let mut agent = rig.agent().await;
    let runs = json!([{ "language": "shell", "code": TALKS }, { "language": "shell", "code": "echo next" }]);
    let batch = json!({ "runs": runs, "max_parallel": 1, "stream": true });
    let call = agent.send("code.batch", batch).await;
    agent.notification("code.output").await;
    agent.notification("code.output").await;
    docker(&["rm", "-f", &container(&rig).await]).await;
    let reply = agent.reply(call).await.unwrap();
    let [first, second] = &reply["results"].as_array().unwrap()[..] else { panic!("{reply}") };
    assert_eq!(first["error"]["data"]["code"], "run_interrupted", "{first}");
    assert_eq!(
        (&first["error"]["data"]["cause"], &first["error"]["data"]["stdout"]),
        (&json!("outside"), &json!("so far\n"))
    );
    assert_eq!(second["result"]["stdout"], "next\n", "{second}");
    rig.stop().await;
}

pub(crate) fn socket_of(rig: &Rig) -> PathBuf {
    let engine = rig.service.health.watch().borrow().engine.clone().unwrap();
    PathBuf::from(engine.endpoint().url.strip_prefix("unix://").expect("this test speaks to a Unix socket"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_goes_away_cuts_off_what_runs_and_the_history_says_so() {
    let elsewhere = Rig::start().await;
    let between = Between::new(&socket_of(&elsewhere));
    elsewhere.stop().await;
    let rig = Rig::start_with(|settings| {
        settings.engine = Some(between.url());
        settings.warm = 0;
    })
    .await;
    rig.proved().await;
    let mut agent = rig.agent().await;
    for _ in 0..3 {
        let call = start(&mut agent, TALKS, BOTH).await;
        between.go_away().await;
        let error = interrupted(&rig, agent.reply(call).await.unwrap_err(), "engine").await;
        assert!(error["message"].as_str().unwrap().ends_with(": Docker went away."), "{error}");
        between.come_back().await;
        eventually("it runs again", || async {
            rig.agent().await.call("code.run", told("echo 1")).await.is_ok_and(|result| result["status"] == "ok")
        })
        .await;
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_crashes_or_is_stopped_cuts_off_what_runs() {
    let engine = Dockerd::new();
    let mut process = engine.start("runc").await;
    engine.fill(&["alpine:3.22"]).await;
    let rig = Rig::start_with(|settings| {
        settings.engine = Some(engine.url());
        settings.warm = 0;
    })
    .await;
    rig.proved().await;
    let mut agent = rig.agent().await;
    let call = start(&mut agent, TALKS, BOTH).await;
    engine.stop(&mut process).await;
    interrupted(&rig, agent.reply(call).await.unwrap_err(), "engine").await;
    process = engine.start("runc").await;
    eventually("it runs again", || async {
        rig.agent().await.call("code.run", told("echo 1")).await.is_ok_and(|result| result["status"] == "ok")
    })
    .await;
    let call = start(&mut agent, TALKS, BOTH).await;
    engine.crash(&mut process).await;
    interrupted(&rig, agent.reply(call).await.unwrap_err(), "engine").await;
    let error = agent.call("code.run", told("echo 1")).await.unwrap_err();
    assert_eq!(error["data"]["code"], "engine_unavailable", "{error}");
    rig.stop().await;
}

/// PID 1 alone dies of memory: the test makes it the kernel's first choice, which no program can.
#[tokio::test(flavor = "multi_thread")]
async fn a_launcher_that_dies_of_memory_is_still_out_of_memory() {
    let rig = Rig::start_with(|settings| settings.warm = 0).await;
    rig.proved().await;
    let mut agent = rig.agent().await;
    let code = "
import time
print('ready', flush=True)
while open('/proc/self/oom_score_adj').read().strip() != '0': time.sleep(0.01)
x = []
while True: x.append(bytearray(10_000_000))";
    let params = json!({ "language": "python", "code": code, "limits": { "memory_mb": 100 }, "stream": true });
    let call = agent.send("code.run", params).await;
    agent.notification("code.output").await;
    let id = container(&rig).await;
    let listed = Command::new("docker").args(["top", &id, "-o", "pid,args"]).output().await.unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let processes: Vec<(&str, &str)> = listed.lines().skip(1).filter_map(|line| line.trim().split_once(' ')).collect();
    let first = Command::new("docker").args(["inspect", "-f", "{{.State.Pid}}", &id]).output().await.unwrap();
    let first = String::from_utf8(first.stdout).unwrap().trim().to_owned();
    let score = |pid: &str| Path::new("/proc").join(pid).join("oom_score_adj");
    std::fs::write(score(&first), "1000").expect("the right to do so");
    for (pid, _) in processes.iter().filter(|(pid, _)| *pid != first) {
        std::fs::write(score(pid), "0").expect("the right to do so");
    }
    let result = agent.reply(call).await.unwrap();
    assert_eq!((&result["status"], &result["exit_code"]), (&json!("out_of_memory"), &json!(137)), "{result}");
    assert_eq!(result["ended_by"], "limit");
    rig.stop().await;
}
