//! Pulls from a real registry, under a name of the tests' own, so that no other image comes or goes.

use bollard::query_parameters::{CommitContainerOptions, CreateContainerOptions, RemoveContainerOptions};
use sandtray_core::event::Event;
use sandtray_core::language::Language;
use sandtray_tests::rig::{Rig, registry};
use serde_json::json;

use crate::shell;

/// What the registry has under `alpine:3.22`, by a name that no other test uses.
fn private_image() -> String {
    format!("{}/library/alpine:3.22", registry())
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_runs_wait_for_one_pull_and_it_is_not_counted_in_their_seconds() {
    let image = private_image();
    let elsewhere = Rig::start().await;
    let engine = elsewhere.service.health.watch().borrow().engine.clone().unwrap();
    elsewhere.stop().await;
    // It may be there from an earlier run that was interrupted.
    let _ = engine.remove_image(&image).await;
    let rig = Rig::start_with(|settings| drop(settings.images.insert(Language::Shell, image.clone()))).await;
    let mut events = rig.service.supervisor.events();
    let mut agent = rig.agent().await;
    let mut calls = Vec::new();
    for number in 0..10 {
        calls.push(agent.send("code.run", shell(&format!("echo {number}"))).await);
    }
    for (number, call) in calls.into_iter().enumerate() {
        let result = agent.reply(call).await.unwrap();
        assert_eq!(result["stdout"], format!("{number}\n"));
        assert!(result["seconds"].as_f64().unwrap() < result["queued_seconds"].as_f64().unwrap(), "{result}");
        assert!(result["image"].as_str().unwrap().starts_with(&image), "{result}");
    }
    let mut pulls = 0;
    while let Ok(event) = events.try_recv() {
        pulls += usize::from(matches!(event, Event::PullFinished { .. }));
    }
    assert_eq!(pulls, 1);
    let _ = engine.remove_image(&image).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_is_nowhere_is_told_to_every_caller() {
    let image = format!("{}/library/nowhere:1", registry());
    let rig = Rig::start_with(|settings| drop(settings.images.insert(Language::Shell, image.clone()))).await;
    let mut agent = rig.agent().await;
    let calls = [agent.send("code.run", shell("echo 1")).await, agent.send("code.run", shell("echo 2")).await];
    for call in calls {
        let error = agent.reply(call).await.unwrap_err();
        assert_eq!(error["data"]["code"], "image_unavailable", "{error}");
        assert!(error["message"].as_str().unwrap().contains(&image), "{error}");
        assert!(error["data"]["hint"].as_str().is_some(), "{error}");
    }
    assert_eq!(agent.run(json!({ "language": "python", "code": "print(1)" })).await["stdout"], "1\n");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_is_not_there_is_no_network() {
    // Nothing listens on the discard port.
    let rig =
        Rig::start_with(|settings| drop(settings.images.insert(Language::Shell, "127.0.0.1:9/a/b:1".into()))).await;
    let error = rig.agent().await.call("code.run", shell("echo 1")).await.unwrap_err();
    assert_eq!(error["data"]["code"], "image_unavailable", "{error}");
    assert!(error["message"].as_str().unwrap().contains("registry could not be reached"), "{error}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_declares_volumes_is_told_as_such() {
    let name = "sandtray-test/with-volumes:1";
    let client = bollard::Docker::connect_with_local_defaults().unwrap();
    let config = bollard::models::ContainerCreateBody { image: Some("alpine:3.22".into()), ..Default::default() };
    let made = client.create_container(None::<CreateContainerOptions>, config).await.unwrap().id;
    let (repo, tag) = name.split_once(':').unwrap();
    let commit = CommitContainerOptions {
        container: Some(made.clone()),
        repo: Some(repo.into()),
        tag: Some(tag.into()),
        changes: Some("VOLUME /data".into()),
        ..Default::default()
    };
    client.commit_container(commit, bollard::models::ContainerConfig::default()).await.unwrap();
    client.remove_container(&made, None::<RemoveContainerOptions>).await.unwrap();
    let rig = Rig::start_with(|settings| drop(settings.images.insert(Language::Shell, name.into()))).await;
    let error = rig.agent().await.call("code.run", shell("echo 1")).await.unwrap_err();
    let data = &error["data"];
    assert_eq!((&data["code"], &data["reason"]), (&json!("image_unavailable"), &json!("declares_volumes")), "{error}");
    let message = format!("The image {name} can't be used: it declares volumes");
    assert!(error["message"].as_str().unwrap().starts_with(&message), "{error}");
    assert!(data["hint"].as_str().unwrap().starts_with("Choose another image"), "{error}");
    rig.service.supervisor.remove_image(Language::Shell).await.unwrap();
    rig.stop().await;
}
