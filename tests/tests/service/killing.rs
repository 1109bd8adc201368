//! A run that is ended is dead within a second, whatever its program does against it.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bollard::models::EventMessage;
use bollard::query_parameters::EventsOptions;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use sandtray_core::engine::LABEL_INSTANCE;
use sandtray_tests::rig::{Agent, PATIENCE, Rig};
use serde_json::json;
use tokio::time::timeout;

/// Each says `ready` once there is something to kill.
const PROGRAMS: [(&str, &str); 3] = [
    (
        "children in sessions of their own that ignore what they can",
        "
import os, signal, time
for s in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}: signal.signal(s, signal.SIG_IGN)
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True: pass
        while True: time.sleep(1)
os.write(1, b'ready\\n')
while True: time.sleep(1)",
    ),
    (
        "processes that are stopped",
        "
import os, signal
for _ in range(20):
    if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)
for _ in range(20): os.waitpid(-1, os.WUNTRACED)
os.write(1, b'ready\\n')
os.kill(os.getpid(), signal.SIGSTOP)",
    ),
    (
        "a fork bomb",
        "
import os
told = False
while True:
    try: os.fork()
    except OSError:
        if not told: os.write(1, b'ready\\n')
        told = True",
    ),
];

#[derive(Debug, Clone, Copy)]
enum Way {
    Cancel,
    Disconnect,
    Off,
}

/// On a machine that does much else besides, a single one may be late.
const TRIES: usize = 3;
const DEAD_WITHIN: Duration = Duration::from_secs(1);
const GONE_WITHIN: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread")]
async fn whatever_runs_is_dead_a_second_after_whoever_wants_it_dead() {
    // Nothing warm: the only container there is is the run's.
    let rig = Rig::start_with(|settings| settings.warm = 0).await;
    rig.agent().await.run(json!({ "language": "python", "code": "" })).await;
    let mut events = events(&rig);
    // That of the call above, and that in which the walls were proved.
    for _ in 0..2 {
        engine_time(&mut events, "destroy").await;
    }
    for (what, code) in PROGRAMS {
        for way in [Way::Cancel, Way::Disconnect, Way::Off] {
            let (mut dead, mut gone) = (Vec::new(), Vec::new());
            for _ in 0..TRIES {
                let since = end(&rig, code, way).await;
                dead.push(engine_time(&mut events, "die").await.saturating_sub(since));
                gone.push(engine_time(&mut events, "destroy").await.saturating_sub(since));
                rig.service.supervisor.set_enabled(true).await;
            }
            dead.sort();
            gone.sort();
            println!("{what}, {way:?}: dead after {dead:?}, gone after {gone:?}");
            assert!(dead[TRIES / 2] < DEAD_WITHIN, "{what}, {way:?}: dead after {dead:?}");
            assert!(gone[TRIES / 2] < GONE_WITHIN, "{what}, {way:?}: gone after {gone:?}");
        }
    }
    assert_eq!(rig.containers().await, 0);
    rig.stop().await;
}

/// Starts it and, once it is ready, ends it. When that was asked for, since 1970.
async fn end(rig: &Rig, code: &str, way: Way) -> Duration {
    let mut agent = rig.agent().await;
    let call = agent.send("code.run", json!({ "language": "python", "code": code, "stream": true })).await;
    let said = agent.notification("code.output").await;
    assert!(said["text"].as_str().unwrap().starts_with("ready\n"), "{said}");
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    match way {
        Way::Cancel => {
            assert_eq!(agent.call("code.cancel", json!({ "request_id": call })).await.unwrap()["cancelled"], true);
            cancelled(&mut agent, call).await;
        }
        Way::Disconnect => drop(agent),
        Way::Off => {
            rig.service.supervisor.set_enabled(false).await;
            assert_eq!(rig.containers().await, 0);
            cancelled(&mut agent, call).await;
        }
    }
    since
}

async fn cancelled(agent: &mut Agent, call: u64) {
    assert_eq!(agent.reply(call).await.unwrap()["status"], "cancelled");
}

/// What the engine says of this service's containers from its start on.
fn events(rig: &Rig) -> BoxStream<'static, EventMessage> {
    let engine = rig.service.health.watch().borrow().engine.clone().unwrap();
    let path = engine.endpoint().url.strip_prefix("unix://").expect("this test speaks to a Unix socket").to_owned();
    let client = bollard::Docker::connect_with_unix(&path, 600, bollard::API_DEFAULT_VERSION).unwrap();
    let filters = [("type", vec!["container"]), ("event", vec!["die", "destroy"])];
    let filters: HashMap<String, Vec<String>> = filters
        .into_iter()
        .map(|(name, words)| (name.to_owned(), words.into_iter().map(str::to_owned).collect()))
        .collect();
    let long_ago = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() - Duration::from_secs(60);
    let options = EventsOptions {
        since: Some(long_ago.as_secs().to_string()),
        filters: Some(filters),
        ..EventsOptions::default()
    };
    let home = rig.home();
    let ours = move |event: &EventMessage| {
        let labels = event.actor.as_ref().and_then(|actor| actor.attributes.as_ref());
        labels.and_then(|labels| labels.get(LABEL_INSTANCE)).is_some_and(|instance| instance.starts_with(&home))
    };
    let events = client.events(Some(options)).map(|event| event.expect("the engine's events"));
    events.filter(move |event| std::future::ready(ours(event))).boxed()
}

/// When the next event of that kind was, by the engine's clock, which is ours.
async fn engine_time(events: &mut BoxStream<'static, EventMessage>, action: &str) -> Duration {
    let next = async {
        loop {
            let event = events.next().await.expect("one more event");
            if event.action.as_deref() == Some(action) {
                return Duration::from_nanos(event.time_nano.unwrap_or(0).unsigned_abs());
            }
        }
    };
    timeout(PATIENCE, next).await.unwrap_or_else(|_| panic!("no container came to {action}"))
}
