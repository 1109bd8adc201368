//! Many calls at once: how long each waits, and how near the whole comes to what the engine alone can do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use sandtray_core::engine::discovery::{self, Candidate, Places};
use sandtray_core::engine::docker::Docker;
use sandtray_core::engine::{ContainerSpec, Engine, InstanceId};
use sandtray_core::language::Language;
use sandtray_core::run::RunId;
use sandtray_core::settings::Settings;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::serving::{Serving, print_call};
use crate::stats::{Sample, round};

/// Enough to keep the engine busy on every core of a small machine.
const AT_ONCE: usize = 4;
const ALONE: usize = 60;

pub(crate) async fn measure() -> Value {
    let serving = Serving::start(|settings| {
        settings.warm = 10;
        settings.queue = 256;
    })
    .await;
    let mut agent = serving.agent().await;
    for _ in 0..10 {
        agent.run(print_call("python")).await;
    }
    let mut rows = Vec::new();
    // One program, as this is, has at most 16 connections.
    for (clients, calls) in [(10, 1), (10, 5), (10, 20)] {
        serving.warm(&mut agent, 10).await;
        rows.push(burst(&serving, clients, calls).await);
    }
    let alone = engine_alone().await;
    let sustained = rows[2].2;
    println!(
        "the engine alone makes and removes {alone:.1} containers a second; sustained share: {:.0} %",
        sustained / alone * 100.0
    );
    serving.stop().await;
    let rows: Vec<Value> = rows
        .iter()
        .map(|(name, sample, rate)| json!({ "burst": name, "calls": sample.json(), "per_second": round(*rate) }))
        .collect();
    json!({ "bursts": rows, "engine_alone_per_second": round(alone), "sustained_share": round(sustained / alone) })
}

async fn burst(serving: &Serving, clients: usize, calls: usize) -> (String, Sample, f64) {
    let sample = Arc::new(Mutex::new(Sample::default()));
    let agents = join_all((0..clients).map(|_| serving.agent())).await;
    let begun = Instant::now();
    join_all(agents.into_iter().map(|mut agent| {
        let sample = Arc::clone(&sample);
        async move {
            for _ in 0..calls {
                let begun = Instant::now();
                let result = agent.run(print_call("python")).await;
                assert_eq!(result["status"], "ok", "{result}");
                sample.lock().await.add(begun.elapsed());
            }
        }
    }))
    .await;
    let rate = (clients * calls) as f64 / begun.elapsed().as_secs_f64();
    let sample = Arc::into_inner(sample).unwrap().into_inner();
    let name = format!("{clients} clients x {calls}");
    println!(
        "{name:<16} median {:>7.1} ms   p95 {:>7.1} ms   {rate:>5.1} calls a second",
        sample.median(),
        sample.p95()
    );
    (name, sample, rate)
}

/// Creating, attaching, starting and removing, with nothing run in between.
async fn engine_alone() -> f64 {
    let places = Places::of_this_process(None);
    let found = discovery::candidates(&places, &discovery::on_disk).found.into_iter().next();
    let Some(Candidate::Try(endpoint)) = found else { panic!("no engine") };
    let engine = Docker::connect(endpoint).await.unwrap();
    let spec = || ContainerSpec {
        image: "python:3.12-slim".into(),
        language: Language::Python,
        limits: Settings::default().limits(),
        instance: InstanceId { home: "bench".into(), boot: "alone".into() },
        run: RunId::generate(),
    };
    let begun = Instant::now();
    join_all((0..AT_ONCE).map(|_| async {
        for _ in 0..ALONE / AT_ONCE {
            let id = engine.create(&spec()).await.unwrap();
            drop(engine.start(&id).await.unwrap());
            engine.remove(&id).await.unwrap();
        }
    }))
    .await;
    ALONE as f64 / begun.elapsed().max(Duration::from_millis(1)).as_secs_f64()
}
