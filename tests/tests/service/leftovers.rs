//! Containers that the service could lose sight of, and does not.

use std::path::Path;
use std::sync::Arc;

use sandtray_core::engine::{Derivation, Engine, InstanceId};
use sandtray_core::language::Language;
use sandtray_core::run::RunId;
use sandtray_tests::between::Between;
use sandtray_tests::rig::{Rig, eventually};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::shell;

async fn engine() -> Arc<dyn Engine> {
    let elsewhere = Rig::start().await;
    let engine = elsewhere.service.health.watch().borrow().engine.clone().unwrap();
    elsewhere.stop().await;
    engine
}

#[tokio::test(flavor = "multi_thread")]
async fn off_removes_the_container_whose_making_was_never_answered() {
    let url = engine().await.endpoint().url.clone();
    let between = Between::new(Path::new(url.strip_prefix("unix://").expect("this test speaks to a Unix socket")));
    let rig = Rig::start_with(|settings| {
        settings.engine = Some(between.url());
        settings.warm = 0;
    })
    .await;
    let mut agent = rig.agent().await;
    assert_eq!(agent.run(shell("echo on")).await["stdout"], "on\n");
    eventually("nothing is left of it", || async { rig.containers().await == 0 }).await;
    between.lose_creations(1);
    let error = agent.call("code.run", shell("echo never")).await.unwrap_err();
    assert_eq!(error["data"]["code"], "internal", "{error}");
    assert_eq!(rig.containers().await, 1, "made, and nobody's");
    rig.service.supervisor.set_enabled(false).await;
    assert_eq!(rig.containers().await, 0);
    rig.stop().await;
}

/// An image in which preparing Go takes for ever, made of one that is here.
async fn slow_to_prepare(engine: &dyn Engine, name: &str) {
    let derivation = Derivation {
        base: engine.image("alpine:3.22").await.unwrap().expect("the bench's image").id,
        name: name.into(),
        script: "mkdir -p /usr/local/go/bin && printf '#!/bin/sh\\nexec sleep 1000\\n' >/usr/local/go/bin/go && chmod +x /usr/local/go/bin/go",
        path: "/usr/bin:/bin",
        limits: sandtray_core::settings::Settings::default().limits(),
        instance: InstanceId { home: "test".into(), boot: "test".into() },
        run: RunId::generate(),
    };
    engine.derive(&derivation, &CancellationToken::new()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn off_waits_for_the_container_in_which_an_image_is_prepared() {
    let engine = engine().await;
    let name = "sandtray-test/slow-to-prepare:1";
    slow_to_prepare(engine.as_ref(), name).await;
    let rig = Rig::start_with(|settings| {
        settings.images.insert(Language::Go, name.into());
        settings.warm = 0;
    })
    .await;
    let mut agent = rig.agent().await;
    // The walls are proved with it, in a container that is not the one looked for.
    agent.run(shell("true")).await;
    eventually("nothing is left of it", || async { rig.containers().await == 0 }).await;
    let call = agent.send("code.run", json!({ "language": "go", "code": "package main" })).await;
    eventually("it is being prepared", || async { rig.containers().await == 1 }).await;
    rig.service.supervisor.set_enabled(false).await;
    assert_eq!(rig.containers().await, 0);
    assert_eq!(agent.reply(call).await.unwrap_err()["data"]["code"], "capability_off");
    rig.stop().await;
    engine.remove_image(name).await.unwrap();
}
