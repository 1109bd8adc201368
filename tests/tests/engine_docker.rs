//! The contract of an engine, held against a real one; and what only a real one can show: a pull with progress.
//!
//! The engine is the one that Sandtray itself would find, or `SANDTRAY_TEST_ENGINE=unix:///...`. Where there is none,
//! every test here fails. The bench's registry must take pushes.

#![expect(clippy::unwrap_used, reason = "helpers of tests, where a panic is the verdict")]

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use sandtray_core::engine::discovery::{self, Candidate, Places};
use sandtray_core::engine::docker::Docker;
use sandtray_core::engine::pull::PullFold;
use sandtray_core::engine::{Endpoint, Engine, EngineError};
use sandtray_core::event::PullFigure;
use sandtray_tests::contract::{Subject, Talk};
use sandtray_tests::contract_suite;
use sandtray_tests::rig::registry;

const IMAGE: &str = "alpine:3.22";
/// Large enough for several lines of progress, small enough to be pulled in a second.
const LAYER_BYTES: usize = 12 << 20;

contract_suite!(subject);

async fn subject() -> Subject {
    let engine = engine().await;
    if engine.image(IMAGE).await.unwrap().is_none() {
        let failed = engine.pull(IMAGE).filter_map(async |event| event.err()).collect::<Vec<_>>().await;
        assert!(failed.is_empty(), "THE IMAGE {IMAGE} COULD NOT BE PULLED: {failed:?}. These tests need it.");
    }
    Subject {
        engine: Arc::new(engine),
        image: IMAGE.into(),
        missing_image: format!("{}/library/no-such-image:1", registry()),
        talk: Talk::echo(),
    }
}

async fn engine() -> Docker {
    let endpoint = endpoint();
    match Docker::connect(endpoint).await {
        Ok(engine) => engine,
        Err(trouble) => panic!("NO ENGINE, SO NOTHING WAS TESTED: {trouble} {}", trouble.hint()),
    }
}

fn endpoint() -> Endpoint {
    let places = Places::of_this_process(std::env::var("SANDTRAY_TEST_ENGINE").ok());
    match discovery::candidates(&places, &discovery::on_disk).found.into_iter().next() {
        Some(Candidate::Try(endpoint)) => endpoint,
        other => {
            panic!("NO ENGINE, SO NOTHING WAS TESTED: start Docker, or name an engine that can be used: {other:?}")
        }
    }
}

#[tokio::test]
async fn a_pull_shows_its_progress_and_ends_at_one() {
    let engine = engine().await;
    let name = format!("{}/engtest/progress:1", registry());
    push(engine.endpoint(), &name).await;
    engine.remove_image(&name).await.unwrap();
    assert_eq!(engine.image(&name).await, Ok(None));

    let mut fold = PullFold::default();
    let mut figures = vec![PullFigure::default()];
    let mut events = engine.pull(&name);
    while let Some(event) = events.next().await {
        figures.push(fold.apply(&event.unwrap()));
    }

    let image = engine.image(&name).await.unwrap().expect("it was pulled");
    assert!(image.digest.is_some_and(|digest| digest.starts_with("sha256:")));
    engine.remove_image(&name).await.unwrap();
    assert!(figures.windows(2).all(|pair| pair[0].fraction <= pair[1].fraction), "{figures:?}");
    assert!(figures.iter().any(|figure| figure.fraction > 0.0 && figure.fraction < 0.75), "{figures:?}");
    let last = figures.last().unwrap();
    assert!((last.fraction - 1.0).abs() < 1e-9, "{last:?}");
    assert!(last.total_bytes >= LAYER_BYTES as u64 && last.downloaded_bytes == last.total_bytes, "{last:?}");
}

/// That the watch ends with the engine is tested where an engine may be stopped; here, that nothing else ends it.
#[tokio::test]
async fn an_engine_can_be_watched_and_keeps_its_fingerprint() {
    let engine = engine().await;
    let before = engine.info().await.unwrap();
    let watched = tokio::time::timeout(std::time::Duration::from_secs(3), engine.watch()).await;
    assert!(watched.is_err(), "the watch ended: {watched:?}");
    assert_eq!(engine.info().await, Ok(before.clone()));
    assert!(before.fingerprint.contains("runc") || before.fingerprint.contains("crun"), "{before:?}");
}

/// An image whose one layer no other image has. The same one each time, so that the registry does not grow.
async fn push(endpoint: &Endpoint, name: &str) {
    use bollard::query_parameters::{CreateImageOptions, PushImageOptions};

    let path = endpoint.url.strip_prefix("unix://").expect("this test speaks to a Unix socket");
    let client = bollard::Docker::connect_with_unix(path, 120, bollard::API_DEFAULT_VERSION).unwrap();
    let (repo, tag) = name.rsplit_once(':').unwrap();
    let options = CreateImageOptions {
        from_src: Some("-".into()),
        repo: Some(repo.into()),
        tag: Some(tag.into()),
        ..CreateImageOptions::default()
    };
    let body = bollard::body_full(Bytes::from(archive()));
    let mut lines = client.create_image(Some(options), Some(body), None).boxed();
    while let Some(line) = lines.next().await {
        line.unwrap();
    }
    let options = PushImageOptions { tag: Some(tag.into()), ..PushImageOptions::default() };
    let mut lines = client.push_image(repo, Some(options), None).boxed();
    while let Some(line) = lines.next().await {
        let line = line.unwrap_or_else(|error| panic!("THE REGISTRY {} TAKES NO PUSH: {error}", registry()));
        assert!(line.error_detail.is_none(), "THE REGISTRY {} TAKES NO PUSH: {line:?}", registry());
    }
}

/// A tar of one file that does not compress.
fn archive() -> Vec<u8> {
    let mut state = 0x5eed_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .take(LAYER_BYTES / 8)
    .flatten()
    .collect();
    let mut header = tar::Header::new_gnu();
    header.set_size(noise.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_data(&mut header, "noise", &noise[..]).unwrap();
    tar.into_inner().unwrap()
}

#[tokio::test]
async fn an_image_that_declares_volumes_is_refused() {
    let client = bollard::Docker::connect_with_local_defaults().unwrap();
    let name = "sandtray-test/volumes:1";
    let root = tar::Builder::new(Vec::new()).into_inner().unwrap();
    let import = bollard::query_parameters::CreateImageOptions {
        from_src: Some("-".into()),
        repo: Some("sandtray-test/volumes".into()),
        tag: Some("1".into()),
        changes: vec!["VOLUME /data".into()],
        ..Default::default()
    };
    let import = client.create_image(Some(import), Some(bollard::body_full(root.into())), None);
    let failed = import.filter_map(async |event| event.err()).collect::<Vec<_>>().await;
    assert!(failed.is_empty(), "{failed:?}");
    let refusal = engine().await.image(name).await;
    client.remove_image(name, None::<bollard::query_parameters::RemoveImageOptions>, None).await.unwrap();
    assert_eq!(refusal, Err(EngineError::DeclaresVolumes));
}
