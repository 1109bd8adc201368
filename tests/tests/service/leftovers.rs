//! Containers that the service could lose sight of, and does not.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sandtray_core::engine::{
    ContainerId, ContainerSpec, Derivation, Engine, InstanceId, LABEL_INSTANCE, LABEL_RUN, container_name,
};
use sandtray_core::language::Language;
use sandtray_core::run::RunId;
use sandtray_core::settings::Settings;
use sandtray_tests::between::Between;
use sandtray_tests::rig::{Rig, eventually};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::bystanders::{ALPINE, Owners, labels_of, name, two_sweeps};
use crate::{shell, told};

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
    let told = (&error["data"]["code"], &error["data"]["trouble"]);
    assert_eq!(told, (&json!("engine_unavailable"), &json!("not_answering")), "{error}");
    assert_eq!(rig.containers().await, 1, "made, and nobody's");
    rig.service.supervisor.set_enabled(false).await;
    assert_eq!(rig.containers().await, 0);
    rig.stop().await;
}

/// Scripts that put a stand-in for Go's compiler into an image: one takes for ever, one has nothing to do.
const SLOW_GO: &str = "mkdir -p /usr/local/go/bin && printf '#!/bin/sh\\nexec sleep 1000\\n' >/usr/local/go/bin/go && chmod +x /usr/local/go/bin/go";
const QUICK_GO: &str = "mkdir -p /usr/local/go/bin && printf '#!/bin/sh\\nmkdir -p /opt/sandtray/go-cache\\n' >/usr/local/go/bin/go && chmod +x /usr/local/go/bin/go";

/// An image of the owner's for Go, made of one that is here.
async fn image_for_go(engine: &dyn Engine, name: &str, script: &'static str) {
    let derivation = Derivation {
        base: engine.image(ALPINE).await.unwrap().expect("the bench's image").id,
        name: name.into(),
        script,
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
    image_for_go(engine.as_ref(), name, SLOW_GO).await;
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

/// A container of this service left over as after a crash.
async fn leftover(rig: &Rig, engine: &Arc<dyn Engine>) -> String {
    let spec = ContainerSpec {
        image: engine.image(ALPINE).await.unwrap().unwrap().id,
        language: Language::Shell,
        limits: Settings::default().limits(),
        instance: InstanceId { home: rig.home(), boot: "before".into() },
        run: RunId::generate(),
    };
    engine.create(&spec).await.unwrap().0
}

/// The container of the one run there is.
async fn running(rig: &Rig, engine: &Arc<dyn Engine>) -> String {
    let home = rig.home();
    let all = engine.containers().await.unwrap();
    let found = all.into_iter().find(|container| container.running && container.instance.starts_with(&home));
    found.expect("a container that runs").name
}

/// The `sandtray/go:...` image made from this service's image for Go.
async fn prepared(owners: &Owners, base: &str) -> String {
    let all = owners.docker.list_images(None::<bollard::query_parameters::ListImagesOptions>).await.unwrap();
    let base = owners.docker.inspect_image(base).await.unwrap().root_fs.unwrap().layers.unwrap();
    for image in all.into_iter().filter(|image| image.repo_tags.iter().any(|tag| tag.starts_with("sandtray/go:"))) {
        let layers = owners.docker.inspect_image(&image.id).await.unwrap().root_fs.unwrap().layers.unwrap();
        if layers.starts_with(&base) {
            return image.id;
        }
    }
    panic!("no prepared image was made of {base:?}")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owners_containers_survive_every_sweep() {
    let engine = engine().await;
    let go = "sandtray-test/quick-to-prepare:1";
    image_for_go(engine.as_ref(), go, QUICK_GO).await;
    let rig = Rig::start_with(|settings| {
        settings.images.insert(Language::Go, go.into());
        settings.warm = 0;
    })
    .await;
    let mut owners = Owners::of(&engine);
    owners.adopt_image(go);
    let mut agent = rig.agent().await;
    agent.run(json!({ "language": "go", "code": "package main" })).await;
    let ours = prepared(&owners, go).await;
    owners.adopt_image(&ours);
    owners.start("a container of the image that was prepared for Go", &ours, None, &[]).await;

    // As earlier versions made them: with the labels of the container that they come from.
    let making = leftover(&rig, &engine).await;
    let run = owners.label(&making, LABEL_RUN).await;
    let old = owners.commit(&making, "old", HashMap::new()).await;
    owners.start("a container of a prepared image that has our labels", &old, None, &[]).await;
    engine.remove(&ContainerId(making)).await.unwrap();
    owners.start("one that even has the name of the container", &old, Some(&container_name(&run)), &[]).await;

    let call = agent.send("code.run", told("echo kept; sleep 1000")).await;
    agent.notification("code.started").await;
    let image = owners.commit(&running(&rig, &engine).await, "run", HashMap::new()).await;
    owners.start("a container of an image of a run's container", &image, Some(&name("of-a-run")), &[]).await;

    let labels = labels_of(&rig);
    let typed: Vec<(&str, &str)> = labels.iter().map(|(label, value)| (*label, value.as_str())).collect();
    owners.start("one with our labels, typed by hand", ALPINE, None, &typed).await;
    owners.start("one with the label of this folder alone", ALPINE, None, &typed[..1]).await;
    owners.start("one with the label of another folder", ALPINE, None, &[(LABEL_INSTANCE, "000000000000-0")]).await;
    owners.start("one that is called like ours", ALPINE, Some(&name("of-the-owners")), &[]).await;
    let renamed = format!("sandtray-{}", labels[1].1);
    owners.start("one that was ours and was renamed", ALPINE, Some(&renamed), &typed).await;
    owners.rename(&renamed, &name("renamed")).await;
    owners.wait_until_written().await;

    // The steps of the build run in containers that have the labels of the image.
    let lines = format!("FROM {old}\nUSER 0\nENTRYPOINT []\nRUN sleep 4 && echo kept >/x\n");
    let ended = leftover(&rig, &engine).await;
    let (said, ()) = tokio::join!(owners.build(&lines), async {
        tokio::time::timeout(Duration::from_secs(60), two_sweeps(&rig)).await.expect("two sweeps in time");
    });
    assert!(said.contains("Successfully built"), "the owner's build: {said}");
    assert_eq!(agent.reply(call).await.unwrap()["status"], "cancelled");
    owners.assert_untouched("after two sweeps").await;
    assert!(engine.exit(&ContainerId(ended)).await.is_err(), "what is ours is swept all the same");
    rig.stop().await;
    owners.assert_untouched("after the end of the service").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_data_folder_leaves_the_first_ones_containers_alone() {
    let first = Rig::start().await;
    let copy = tempfile::tempdir().unwrap();
    std::fs::create_dir(copy.path().join("data")).unwrap();
    std::fs::copy(first.folder().join("data/home-id"), copy.path().join("data/home-id")).unwrap();
    let mut agent = first.agent().await;
    let call = agent.send("code.run", told("sleep 8; echo end")).await;
    agent.notification("code.started").await;

    let second = Rig::start_in(copy, |_| ()).await;
    assert_ne!(first.home(), second.home());
    let mut other = second.agent().await;
    assert_eq!(other.run(shell("echo second")).await["stdout"], "second\n");
    two_sweeps(&second).await;
    assert_eq!(first.service.supervisor.snapshot().running.len(), 1, "the sweeps came before its end");
    let result = agent.reply(call).await.unwrap();
    assert_eq!((&result["status"], &result["stdout"]), (&json!("ok"), &json!("end\n")));
    assert_eq!(agent.run(shell("echo first")).await["stdout"], "first\n");
    second.stop().await;
    first.stop().await;
}
