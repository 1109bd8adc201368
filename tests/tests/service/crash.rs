//! A service that is killed, at any point of a run, leaves nothing that lives on without it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use sandtray_core::engine::docker::Docker;
use sandtray_core::engine::{Endpoint, Engine};
use sandtray_core::instance::Instance;
use sandtray_core::paths::Paths;
use sandtray_tests::rig::{Agent, Rig, eventually, serving_process};
use serde_json::json;

/// A service in a process of its own, which this test may kill.
struct Victim {
    process: tokio::process::Child,
    paths: Paths,
}

impl Victim {
    async fn start(folder: &std::path::Path) -> Self {
        let paths = Paths::under(folder);
        let mut command = serving_process(folder);
        let process = command.stdout(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true).spawn().unwrap();
        let socket = paths.socket_file().unwrap();
        eventually("the service listens", || async { tokio::net::UnixStream::connect(&socket).await.is_ok() }).await;
        Self { process, paths }
    }

    async fn agent(&self) -> Agent {
        Agent::connect(&self.paths.socket_file().unwrap()).await
    }

    async fn kill(mut self) {
        self.process.kill().await.unwrap();
    }
}

async fn containers(engine: &Docker, home: &str) -> Vec<bool> {
    let all = engine.containers().await.unwrap();
    all.iter().filter(|container| container.instance.starts_with(home)).map(|container| container.running).collect()
}

async fn engine(rig: &Rig) -> Docker {
    let endpoint: Endpoint = rig.service.health.watch().borrow().engine.clone().unwrap().endpoint().clone();
    Docker::connect(endpoint).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_point_of_a_run_nothing_is_left_after_the_next_start() {
    let elsewhere = Rig::start().await;
    let engine = engine(&elsewhere).await;
    let folder = tempfile::tempdir().unwrap();
    for delay in [0, 20, 60, 100, 150, 250, 400] {
        let victim = Victim::start(folder.path()).await;
        let mut agent = victim.agent().await;
        for _ in 0..3 {
            agent.send("code.run", json!({ "language": "shell", "code": "sleep 0.1; echo x > out/f" })).await;
        }
        // The point at which it dies is what varies here, so this is a wait and not a synchronisation.
        tokio::time::sleep(Duration::from_millis(delay)).await;
        victim.kill().await;
    }
    let home = Instance::home_of(&Paths::under(folder.path())).unwrap();
    let rig = Rig::start_in(folder, |_| ()).await;
    eventually("everything is swept", || async { containers(&engine, &home).await.is_empty() }).await;
    assert_eq!(rig.agent().await.run(json!({ "language": "shell", "code": "echo on" })).await["stdout"], "on\n");
    rig.stop().await;
    elsewhere.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_service_a_hostile_program_ends_soon_after_its_limit() {
    let elsewhere = Rig::start().await;
    let engine = engine(&elsewhere).await;
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(folder.path()).await;
    let mut agent = victim.agent().await;
    // It ignores every signal and kills the watchdog inside whenever there is one.
    let deaf = "trap '' INT TERM HUP QUIT; while :; do killall -9 sleep; done 2>/dev/null";
    for code in [deaf, "sleep 1000"] {
        agent
            .send("code.run", json!({ "language": "shell", "code": code, "stream": true, "limits": { "seconds": 1 } }))
            .await;
        agent.notification("code.started").await;
    }
    let home = Instance::home_of(&Paths::under(folder.path())).unwrap();
    victim.kill().await;
    let alone = Instant::now();
    // A warm one may be there too; its standard input has ended with the service, and so does it.
    let running = containers(&engine, &home).await.into_iter().filter(|running| *running).count();
    assert!(running >= 2, "{running}");
    eventually("both ended by themselves", || async { !containers(&engine, &home).await.contains(&true) }).await;
    assert!(alone.elapsed() < Duration::from_secs(15), "{:?}", alone.elapsed());
    let rig = Rig::start_in(folder, |_| ()).await;
    eventually("both are swept", || async { containers(&engine, &home).await.is_empty() }).await;
    rig.stop().await;
    elsewhere.stop().await;
}
