//! Makes an image from another one. The container that this takes is removed, whether it succeeds or not.

use std::time::Duration;

use bollard::models::ContainerConfig;
use bollard::query_parameters::{CommitContainerOptions, CreateContainerOptions, InspectContainerOptions};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{CREATE_DEADLINE, Docker, START_DEADLINE};
use crate::engine::{
    ContainerId, Derivation, Engine, EngineError, LABEL_INSTANCE, LABEL_RUN, container, container_name,
};

/// Compiling Go's standard library takes half a minute on two cores.
const SCRIPT_DEADLINE: Duration = Duration::from_secs(600);
/// The engine copies the files that the script left: 165 MB for Go.
const COMMIT_DEADLINE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(200);
/// Bound on the bytes that the script may leave on the engine's disk: ten times those of Go. The check makes the engine
/// walk the files, so it is done only once per interval.
const WRITTEN_BYTES: i64 = 2 << 30;
const WEIGH_EVERY: Duration = Duration::from_secs(2);
const WEIGH_DEADLINE: Duration = Duration::from_secs(30);

pub(super) async fn derive(
    docker: &Docker,
    derivation: &Derivation,
    given_up: &CancellationToken,
) -> Result<(), EngineError> {
    let options = CreateContainerOptions { name: Some(container_name(derivation.run)), ..Default::default() };
    let call = docker.client.create_container(Some(options), container::preparing(derivation));
    let id = ContainerId(docker.within(CREATE_DEADLINE, "create a container", call).await?.id);
    let made = tokio::select! {
        () = given_up.cancelled() => refused("it was cancelled".into()),
        made = make(docker, &id, &derivation.name) => made,
    };
    docker.remove(&id).await.and(made)
}

async fn make(docker: &Docker, id: &ContainerId, name: &str) -> Result<(), EngineError> {
    docker.within(START_DEADLINE, "start a container", docker.client.start_container(&id.0, None)).await?;
    let end = Instant::now() + SCRIPT_DEADLINE;
    let mut weigh = Instant::now() + WEIGH_EVERY;
    let exit = loop {
        let exit = docker.exit(id).await?;
        if !exit.running {
            break exit;
        }
        if Instant::now() > end {
            return refused(format!("it took longer than {} s", SCRIPT_DEADLINE.as_secs()));
        }
        if Instant::now() > weigh {
            if written(docker, id).await? > WRITTEN_BYTES {
                return refused(format!("it wrote more than {} MiB", WRITTEN_BYTES >> 20));
            }
            weigh = Instant::now() + WEIGH_EVERY;
        }
        sleep(POLL).await;
    };
    if exit.exit_code != 0 {
        return refused(format!("it ended with {}", exit.exit_code));
    }
    let (repo, tag) = name.rsplit_once(':').unwrap_or((name, "latest"));
    let options = CommitContainerOptions {
        container: Some(id.0.clone()),
        repo: Some(repo.into()),
        tag: Some(tag.into()),
        ..CommitContainerOptions::default()
    };
    let call = docker.client.commit_container(options, without_labels());
    docker.within(COMMIT_DEADLINE, "keep a prepared image", call).await.map(drop)
}

/// Bytes that the container has added to its image.
async fn written(docker: &Docker, id: &ContainerId) -> Result<i64, EngineError> {
    let options = InspectContainerOptions { size: true };
    let call = docker.client.inspect_container(&id.0, Some(options));
    Ok(docker.within(WEIGH_DEADLINE, "weigh a container", call).await?.size_rw.unwrap_or(0))
}

/// Empty labels. An image otherwise takes over its container's labels, and passes them on to every container made from
/// it. A container that the owner makes from it must not look like one of ours.
fn without_labels() -> ContainerConfig {
    let labels = [LABEL_INSTANCE, LABEL_RUN].map(|label| (label.to_owned(), String::new()));
    ContainerConfig { labels: Some(labels.into()), ..ContainerConfig::default() }
}

fn refused(message: String) -> Result<(), EngineError> {
    Err(EngineError::Refused { doing: "prepare an image", message })
}
