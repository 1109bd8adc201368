//! What every engine owes the product, written once: [`contract_suite!`](crate::contract_suite) makes a test of each
//! promise, for the real engine and for the scripted one alike.

#![expect(clippy::unwrap_used, reason = "everything here runs inside tests, where a panic is the verdict")]

use std::future::Future;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use sandtray_core::engine::{
    Attached, ContainerId, ContainerInfo, ContainerSpec, Engine, EngineError, Frame, InstanceId, LastEvents, PullError,
    container_name,
};
use sandtray_core::language::Language;
use sandtray_core::launcher::{self, Nonce};
use sandtray_core::run::{Limits, Overflow, RunId, RunSpec, Stream};
use sandtray_core::settings::Settings;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// Longer than anything here takes on a busy computer.
const PATIENCE: Duration = Duration::from_secs(60);
/// No promise takes longer as a whole. A test that hangs would tell nothing.
pub const PROMISE_BOUND: Duration = Duration::from_secs(120);

/// An engine, and what can be had of it.
#[derive(Debug, Clone)]
pub struct Subject {
    pub engine: Arc<dyn Engine>,
    /// It is there already.
    pub image: String,
    /// It is nowhere, neither here nor in its registry.
    pub missing_image: String,
    pub talk: Talk,
}

/// What to say to a container of [`Language::Shell`], and what comes of it.
#[derive(Debug, Clone)]
pub struct Talk {
    /// All of its input; the end of input follows, and the program waits for it.
    pub say: Bytes,
    /// Somewhere in its output. It ends only after its input has.
    pub hear: Bytes,
    pub exit_code: i32,
}

impl Talk {
    /// What the launcher understands, on a real engine and on the scripted one alike: a program that says its input back.
    pub fn echo() -> Self {
        let stdin = Bytes::from(b"one line of a megabyte\n".repeat(1 << 16));
        let spec = RunSpec {
            id: RunId::generate(),
            language: Language::Shell,
            code: "cat".into(),
            args: Vec::new(),
            files: Vec::new(),
            stdin: stdin.clone(),
            limits: Settings::default().limits(),
            overflow: Overflow::Kill,
            label: None,
        };
        let opening = launcher::opening(&spec, &Nonce::random(), SystemTime::now()).expect("a tar in memory");
        Self { say: [opening, stdin.clone()].concat().into(), hear: stdin, exit_code: 0 }
    }
}

/// One test for each promise. `$subject` is an async function that makes a [`Subject`].
#[macro_export]
macro_rules! contract_suite {
    ($subject:path) => {
        $crate::contract_suite! { $subject:
            it_says_who_it_is
            an_image_that_is_here_has_an_id_and_a_size
            an_image_that_is_missing_is_none
            a_missing_image_is_removed_already
            a_container_of_a_missing_image_is_refused_as_such
            a_pull_of_a_missing_name_ends_with_one_error
            a_program_gets_its_input_and_its_end_and_is_heard
            a_running_container_is_told_from_one_that_has_ended
            a_container_that_is_gone_is_known_as_gone
            a_running_container_says_what_it_uses
            an_engine_tells_a_kill_from_an_end_of_its_own
            removing_twice_is_a_success
            two_removals_at_once_both_succeed
            removing_kills_what_runs
            an_output_that_nobody_reads_is_dropped_and_the_container_removed
            containers_are_listed_with_their_labels_whether_they_run_or_not
        }
    };
    ($subject:path: $($promise:ident)+) => {
        $(
            #[tokio::test]
            async fn $promise() {
                let subject = $subject().await;
                let kept = $crate::contract::$promise(&subject);
                let bound = $crate::contract::PROMISE_BOUND;
                tokio::time::timeout(bound, kept).await.expect("it hung");
            }
        )+
    };
}

pub async fn it_says_who_it_is(subject: &Subject) {
    let info = subject.engine.info().await.unwrap();
    assert!(!info.name.is_empty() && !info.version.is_empty(), "{info:?}");
    assert_eq!(&info.endpoint, subject.engine.endpoint());
    assert!(info.cpus > 0 && info.memory_bytes > 0, "{info:?}");
}

pub async fn an_image_that_is_here_has_an_id_and_a_size(subject: &Subject) {
    let image = subject.engine.image(&subject.image).await.unwrap().expect("the image is here");
    assert!(image.id.starts_with("sha256:"), "{image:?}");
    assert!(image.digest.as_ref().is_none_or(|digest| digest.starts_with("sha256:")), "{image:?}");
    assert!(image.size_bytes > 0, "{image:?}");
}

pub async fn an_image_that_is_missing_is_none(subject: &Subject) {
    assert_eq!(subject.engine.image(&subject.missing_image).await, Ok(None));
}

pub async fn a_missing_image_is_removed_already(subject: &Subject) {
    assert_eq!(subject.engine.remove_image(&subject.missing_image).await, Ok(()));
}

pub async fn a_container_of_a_missing_image_is_refused_as_such(subject: &Subject) {
    let spec = ContainerSpec { image: subject.missing_image.clone(), ..spec(subject) };
    assert_eq!(subject.engine.create(&spec).await, Err(EngineError::NoImage));
}

pub async fn a_pull_of_a_missing_name_ends_with_one_error(subject: &Subject) {
    let events: Vec<_> =
        timeout(PATIENCE, subject.engine.pull(&subject.missing_image).collect()).await.expect("the pull never ended");
    let (last, before) = events.split_last().expect("a pull that fails says so");
    assert!(before.iter().all(Result::is_ok), "{events:?}");
    assert!(matches!(last, Err(PullError::NoSuchImage | PullError::Denied)), "{events:?}");
}

pub async fn a_program_gets_its_input_and_its_end_and_is_heard(subject: &Subject) {
    with_container(subject, async |id| {
        let attached = start(subject, &id).await;
        let stdout = converse(subject, attached).await;
        assert!(contains(&stdout, &subject.talk.hear), "{} bytes came: {:?}", stdout.len(), tail(&stdout));
        let exit = ended(subject, &id).await;
        assert_eq!((exit.exit_code, exit.oom_killed), (subject.talk.exit_code, false));
    })
    .await;
}

pub async fn a_running_container_is_told_from_one_that_has_ended(subject: &Subject) {
    with_container(subject, async |id| {
        let Attached { mut input, mut output } = start(subject, &id).await;
        assert!(subject.engine.exit(&id).await.unwrap().running);
        // Written while it is read: an engine need not buffer what a program echoes.
        let said = async {
            input.write_all(&subject.talk.say).await.unwrap();
            std::future::pending::<()>().await;
        };
        let heard = async { while output.next().await.is_some() {} };
        let early = timeout(Duration::from_secs(1), async { tokio::join!(said, heard) }).await;
        assert!(early.is_err());
        assert!(subject.engine.exit(&id).await.unwrap().running);
    })
    .await;
}

pub async fn a_container_that_is_gone_is_known_as_gone(subject: &Subject) {
    with_container(subject, async |id| {
        subject.engine.remove(&id).await.unwrap();
        assert_eq!(subject.engine.exit(&id).await, Err(EngineError::NoContainer));
        assert_eq!(subject.engine.start(&id).await.map(drop), Err(EngineError::NoContainer));
    })
    .await;
}

pub async fn a_running_container_says_what_it_uses(subject: &Subject) {
    with_container(subject, async |id| {
        let _attached = start(subject, &id).await;
        // An engine may need a moment to find the figures of a container that has only just started.
        let used = async {
            loop {
                let usage = subject.engine.usage(&id).await.unwrap();
                if usage.memory_bytes > 0 {
                    return usage;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let usage = timeout(PATIENCE, used).await.expect("figures of a container that runs");
        assert!(usage.memory_bytes < 256 << 20, "{usage:?}");
        subject.engine.remove(&id).await.unwrap();
        assert_eq!(subject.engine.usage(&id).await, Err(EngineError::NoContainer));
    })
    .await;
}

pub async fn an_engine_tells_a_kill_from_an_end_of_its_own(subject: &Subject) {
    with_container(subject, async |id| {
        let attached = start(subject, &id).await;
        converse(subject, attached).await;
        ended(subject, &id).await;
        let events = subject.engine.last_events(&id).await.unwrap();
        assert_eq!(events, LastEvents { died: true, ..LastEvents::default() });
    })
    .await;
    with_container(subject, async |id| {
        let _attached = start(subject, &id).await;
        subject.engine.remove(&id).await.unwrap();
        let events = subject.engine.last_events(&id).await.unwrap();
        assert!(events.died && (events.killed || events.removed) && !events.out_of_memory, "{events:?}");
    })
    .await;
}

pub async fn removing_twice_is_a_success(subject: &Subject) {
    with_container(subject, async |id| {
        assert_eq!(subject.engine.remove(&id).await, Ok(()));
        assert_eq!(subject.engine.remove(&id).await, Ok(()));
        assert_eq!(subject.engine.remove(&ContainerId("0".repeat(64))).await, Ok(()));
    })
    .await;
}

pub async fn two_removals_at_once_both_succeed(subject: &Subject) {
    with_container(subject, async |id| {
        let attached = start(subject, &id).await;
        drop(attached);
        let (one, two) = tokio::join!(subject.engine.remove(&id), subject.engine.remove(&id));
        assert_eq!((one, two), (Ok(()), Ok(())));
        assert_eq!(subject.engine.exit(&id).await, Err(EngineError::NoContainer));
    })
    .await;
}

pub async fn removing_kills_what_runs(subject: &Subject) {
    with_container(subject, async |id| {
        let mut attached = start(subject, &id).await;
        let began = tokio::time::Instant::now();
        assert_eq!(subject.engine.remove(&id).await, Ok(()));
        // Killed, not asked to stop: asking takes ten seconds.
        assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
        let rest = async { while attached.output.next().await.is_some() {} };
        timeout(PATIENCE, rest).await.expect("the output of a removed container ends");
        assert_eq!(subject.engine.exit(&id).await, Err(EngineError::NoContainer));
    })
    .await;
}

pub async fn an_output_that_nobody_reads_is_dropped_and_the_container_removed(subject: &Subject) {
    with_container(subject, async |id| {
        let Attached { mut input, output } = start(subject, &id).await;
        // The engine may take it all or stop taking; either is fine.
        let _ = timeout(Duration::from_secs(2), input.write_all(&subject.talk.say)).await;
        drop(output);
        drop(input);
        assert_eq!(timeout(PATIENCE, subject.engine.remove(&id)).await, Ok(Ok(())));
    })
    .await;
}

pub async fn containers_are_listed_with_their_labels_whether_they_run_or_not(subject: &Subject) {
    let spec = spec(subject);
    let image = subject.engine.image(&subject.image).await.unwrap().unwrap().id;
    let id = subject.engine.create(&spec).await.unwrap();
    guarded(subject, id, async |id| {
        let expected = |running| ContainerInfo {
            id: id.clone(),
            name: container_name(spec.run),
            image: image.clone(),
            instance: spec.instance.to_string(),
            run: spec.run.to_string(),
            running,
        };
        assert_eq!(listed(subject, &id).await, Some(expected(false)));
        let _attached = start(subject, &id).await;
        assert_eq!(listed(subject, &id).await, Some(expected(true)));
        subject.engine.remove(&id).await.unwrap();
        assert_eq!(listed(subject, &id).await, None);
    })
    .await;
}

/// Of an instance of its own, so that no other sweep removes it.
pub fn spec(subject: &Subject) -> ContainerSpec {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let boot = format!("{}x{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    ContainerSpec {
        image: subject.image.clone(),
        language: Language::Shell,
        limits: Limits {
            millis: 60_000,
            memory_bytes: 256 << 20,
            milli_cpus: 1000,
            processes: 64,
            output_bytes: 64 << 10,
            file_bytes: 5 << 20,
        },
        instance: InstanceId { home: "contract".into(), boot },
        run: RunId::generate(),
    }
}

/// Makes a container, and removes it whatever happens.
async fn with_container<F: Future<Output = ()>>(subject: &Subject, body: impl FnOnce(ContainerId) -> F) {
    let id = subject.engine.create(&spec(subject)).await.unwrap();
    guarded(subject, id, body).await;
}

async fn guarded<F: Future<Output = ()>>(subject: &Subject, id: ContainerId, body: impl FnOnce(ContainerId) -> F) {
    let outcome = AssertUnwindSafe(body(id.clone())).catch_unwind().await;
    let removed = subject.engine.remove(&id).await;
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
    assert_eq!(removed, Ok(()));
}

async fn start(subject: &Subject, id: &ContainerId) -> Attached {
    timeout(PATIENCE, subject.engine.start(id)).await.expect("the start never ended").unwrap()
}

/// Says everything while listening, ends the input, and hears the output to its end.
async fn converse(subject: &Subject, attached: Attached) -> Vec<u8> {
    let Attached { mut input, mut output } = attached;
    let say = async {
        input.write_all(&subject.talk.say).await.unwrap();
        input.shutdown().await.unwrap();
    };
    let hear = async {
        let mut stdout = Vec::new();
        while let Some(frame) = output.next().await {
            let Frame { stream, bytes } = frame.unwrap();
            if stream == Stream::Stdout {
                stdout.extend_from_slice(&bytes);
            }
        }
        stdout
    };
    let ((), stdout) = timeout(PATIENCE, async { tokio::join!(say, hear) }).await.expect("the output never ended");
    stdout
}

/// The output may end a little before the engine has noted the exit.
async fn ended(subject: &Subject, id: &ContainerId) -> sandtray_core::engine::Exit {
    let wait = async {
        loop {
            let exit = subject.engine.exit(id).await.unwrap();
            if !exit.running {
                return exit;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, wait).await.expect("it never ended")
}

async fn listed(subject: &Subject, id: &ContainerId) -> Option<ContainerInfo> {
    subject.engine.containers().await.unwrap().into_iter().find(|container| &container.id == id)
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    needle.is_empty() || haystack.windows(needle.len()).any(|window| window == needle)
}

fn tail(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(500)..]).into_owned()
}
