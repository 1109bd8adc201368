//! Calls that go on while their engine goes and comes: each answer is right, or names the engine.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sandtray_tests::between::Between;
use sandtray_tests::dockerd::Dockerd;
use sandtray_tests::rig::{Rig, eventually};
use serde_json::Value;

use crate::interrupted::socket_of;
use crate::shell;

type Answers = BTreeMap<String, usize>;

const CLIENTS: usize = 4;
const CUTS: u64 = 40;
const RESTARTS: usize = 3;

fn word(answer: &Result<Value, Value>) -> String {
    match answer {
        Ok(result) => format!("{} {}", result["status"].as_str().unwrap(), result["stdout"]),
        Err(error) => {
            let data = &error["data"];
            let word = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
            let odd = data["code"] == "internal" || data["trouble"] == "wall_missing";
            let more = if odd { error["message"].to_string() } else { word("cause") };
            format!("{} {more}", word("code")).trim_end().to_owned()
        }
    }
}

async fn calls(rig: &Rig, over: &AtomicBool) -> Answers {
    let mut agent = rig.agent().await;
    let mut answers = Answers::new();
    while !over.load(Ordering::SeqCst) {
        let answer = agent.call("code.run", shell("sleep 0.05; echo fine")).await;
        *answers.entry(word(&answer)).or_default() += 1;
        if answer.is_err() {
            // A client that spins takes the machine from the engine that is to come back.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    answers
}

/// All that was answered while `trouble` went on.
async fn answers_during(rig: &Rig, trouble: impl Future<Output = ()>) -> Answers {
    let over = AtomicBool::new(false);
    let trouble = async {
        trouble.await;
        over.store(true, Ordering::SeqCst);
    };
    let all = futures_util::future::join_all((0..CLIENTS).map(|_| calls(rig, &over)));
    let ((), all) = tokio::join!(trouble, all);
    let mut sum = Answers::new();
    for (word, times) in all.into_iter().flatten() {
        *sum.entry(word).or_default() += times;
    }
    println!("{sum:?}");
    sum
}

fn judge(answers: &Answers) {
    let good = ["ok \"fine\\n\"", "engine_unavailable", "run_interrupted engine"];
    assert!(answers.keys().all(|word| good.contains(&word.as_str())), "{answers:?}");
    assert!(answers.contains_key(good[0]) && answers.contains_key(good[1]), "{answers:?}");
}

async fn runs_again(rig: &Rig) {
    eventually("it runs again", || async {
        rig.agent().await.call("code.run", shell("echo 1")).await.is_ok_and(|result| result["status"] == "ok")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_break_at_any_moment_are_the_engines_and_nobody_elses() {
    let elsewhere = Rig::start().await;
    let between = Between::new(&socket_of(&elsewhere));
    elsewhere.stop().await;
    let rig = Rig::start_with(|settings| settings.engine = Some(between.url())).await;
    rig.proved().await;
    let answers = answers_during(&rig, async {
        for cut in 0..CUTS {
            runs_again(&rig).await;
            // Another moment of the calls each time.
            tokio::time::sleep(Duration::from_millis(cut * 7 % 130)).await;
            between.go_away().await;
            between.come_back().await;
        }
        runs_again(&rig).await;
    })
    .await;
    judge(&answers);
    assert!(answers.contains_key("run_interrupted engine"), "{answers:?}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_restarted_under_calls_is_named_in_each_answer() {
    let engine = Dockerd::new();
    let mut process = engine.start("runc").await;
    engine.fill(&["alpine:3.22"]).await;
    let rig = Rig::start_with(|settings| settings.engine = Some(engine.url())).await;
    rig.proved().await;
    let answers = answers_during(&rig, async {
        for _ in 0..RESTARTS {
            runs_again(&rig).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            engine.stop(&mut process).await;
            process = engine.start("runc").await;
        }
        runs_again(&rig).await;
    })
    .await;
    judge(&answers);
    eventually("nothing runs", || async { rig.service.supervisor.snapshot().running.is_empty() }).await;
    rig.stop().await;
    engine.stop(&mut process).await;
}
