//! Containers that are removed from outside before their program started: Sandtray makes another one, and the caller notices nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sandtray_core::engine::{ContainerId, Engine};
use sandtray_tests::rig::{PATIENCE, Rig, eventually};
use serde_json::{Value, json};

use crate::shell;

const TIMES: usize = 50;

async fn ours(rig: &Rig, engine: &Arc<dyn Engine>) -> Vec<ContainerId> {
    let home = rig.home();
    let all = engine.containers().await.unwrap();
    all.into_iter().filter(|found| found.instance.starts_with(&home)).map(|found| found.id).collect()
}

fn engine(rig: &Rig) -> Arc<dyn Engine> {
    rig.service.health.watch().borrow().engine.clone().unwrap()
}

fn word(answer: &Result<Value, Value>) -> String {
    match answer {
        Ok(result) => result["status"].as_str().unwrap_or_default().to_owned(),
        Err(error) => {
            let word = |name: &str| error["data"][name].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}", word("code"), word("trouble"), error["message"])
        }
    }
}

/// Removed at each moment from well before the call to well after it: no answer but the program's own.
#[tokio::test(flavor = "multi_thread")]
async fn a_warm_container_that_is_removed_under_a_call_is_replaced_without_a_word() {
    let rig = Rig::start_with(|settings| settings.warm = 1).await;
    rig.proved().await;
    let engine = engine(&rig);
    let mut agent = rig.agent().await;
    agent.run(shell("true")).await;
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    for time in 0..TIMES {
        eventually("one is warm", || async { rig.service.supervisor.snapshot().warm == 1 }).await;
        let warm = ours(&rig, &engine).await;
        let removals = warm.iter().map(|id| engine.remove(id));
        let removing = futures_util::future::join_all(removals);
        let calling = async {
            // From before the container's death to after it, which takes the engine 10 to 40 ms.
            tokio::time::sleep(Duration::from_millis(time as u64)).await;
            agent.call("code.run", shell("echo fine")).await
        };
        let (_, answer) = tokio::join!(removing, calling);
        *answers.entry(word(&answer)).or_default() += 1;
    }
    println!("{answers:?}");
    // One whose program had started already is told as what it is.
    let odd: Vec<&String> =
        answers.keys().filter(|word| *word != "ok" && !word.starts_with("run_interrupted ")).collect();
    assert_eq!(odd, Vec::<&String>::new(), "{answers:?}");
    assert!(answers.get("ok").is_some_and(|times| *times >= TIMES * 3 / 4), "{answers:?}");
    rig.stop().await;
}

/// A program removes every container as soon as it is there.
#[tokio::test(flavor = "multi_thread")]
async fn with_every_container_removed_at_once_a_run_is_refused_with_the_reason() {
    let rig = Rig::start_with(|settings| settings.warm = 0).await;
    rig.proved().await;
    let engine = engine(&rig);
    let over = AtomicBool::new(false);
    let remove_all = async {
        while !over.load(Ordering::SeqCst) {
            for id in ours(&rig, &engine).await {
                let _ = engine.remove(&id).await;
            }
        }
    };
    let calls = async {
        let mut agent = rig.agent().await;
        let mut answers: BTreeMap<String, usize> = BTreeMap::new();
        let begun = Instant::now();
        // On a busy machine a container may be gone again before it is in a list.
        let only_good = |answers: &BTreeMap<String, usize>| answers.keys().all(|word| word == "ok");
        for call in 0.. {
            if call >= 20 && !(only_good(&answers) && begun.elapsed() < PATIENCE) {
                break;
            }
            let answer = agent.call("code.run", shell("sleep 0.02; echo fine")).await;
            *answers.entry(word(&answer)).or_default() += 1;
        }
        over.store(true, Ordering::SeqCst);
        answers
    };
    let ((), answers) = tokio::join!(remove_all, calls);
    println!("{answers:?}");
    let good = |word: &str| {
        word == "ok"
            || word.starts_with("run_interrupted ")
            || word.starts_with("engine_unavailable container_removed ")
    };
    assert!(answers.keys().all(|word| good(word)), "{answers:?}");
    assert!(answers.keys().any(|word| word != "ok"), "no container was removed in time: {answers:?}");
    let result = rig.agent().await.run(shell("echo fine")).await;
    assert_eq!(result["stdout"], "fine\n");
    assert_eq!(json!(result["ended_by"]), "program");
    rig.stop().await;
}
