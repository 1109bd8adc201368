//! Other things of an owner on the engine: containers and images made over the engine's API, as `docker` makes them.
//! All of them are removed at the end, however the test ends.

use std::collections::HashMap;
use std::sync::Arc;

use bollard::Docker;
use bollard::models::{ContainerConfig, ContainerCreateBody};
use bollard::query_parameters::{
    BuildImageOptions, CommitContainerOptions, CreateContainerOptions, DownloadFromContainerOptions,
    RemoveContainerOptions, RemoveImageOptions, RenameContainerOptions,
};
use futures_util::StreamExt;
use sandtray_core::engine::{Engine, LABEL_INSTANCE, LABEL_RUN};
use sandtray_tests::rig::{Rig, eventually};

pub(crate) const ALPINE: &str = "alpine:3.22";

/// Writes a word into the container and stays.
const STAY: &str = "echo kept >/x; exec sleep 1000";

pub(crate) struct Owners {
    pub(crate) docker: Docker,
    containers: Vec<(&'static str, String)>,
    images: Vec<String>,
}

impl Owners {
    pub(crate) fn of(engine: &Arc<dyn Engine>) -> Self {
        let path = engine.endpoint().url.strip_prefix("unix://").expect("this test speaks to a Unix socket").to_owned();
        let docker = Docker::connect_with_unix(&path, 600, bollard::API_DEFAULT_VERSION).unwrap();
        Self { docker, containers: Vec::new(), images: Vec::new() }
    }

    /// A container that the owner starts, under a name of the engine's choice unless one is given.
    pub(crate) async fn start(&mut self, what: &'static str, image: &str, name: Option<&str>, labels: &[(&str, &str)]) {
        let labels = labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned()));
        let body = ContainerCreateBody {
            image: Some(image.into()),
            entrypoint: Some(["sh", "-c", STAY].map(str::to_owned).into()),
            cmd: Some(Vec::new()),
            user: Some("0:0".into()),
            labels: Some(labels.collect()),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptions { name: name.map(str::to_owned), ..CreateContainerOptions::default() };
        let id = self.docker.create_container(Some(options), body).await.unwrap().id;
        self.docker.start_container(&id, None).await.unwrap();
        self.adopt(what, id);
    }

    /// Counts an existing container as the owner's from now on.
    pub(crate) fn adopt(&mut self, what: &'static str, id: String) {
        self.containers.push((what, id));
    }

    pub(crate) async fn rename(&self, id: &str, name: &str) {
        self.docker.rename_container(id, RenameContainerOptions { name: name.into() }).await.unwrap();
    }

    /// An image made from a container as it is, with the container's labels and those of the owner.
    pub(crate) async fn commit(&mut self, container: &str, tag: &str, labels: HashMap<String, String>) -> String {
        let options = CommitContainerOptions {
            container: Some(container.into()),
            repo: Some("sandtray-test/bystander".into()),
            tag: Some(tag.into()),
            ..CommitContainerOptions::default()
        };
        let config = ContainerConfig { labels: Some(labels), ..ContainerConfig::default() };
        let id = self.docker.commit_container(options, config).await.unwrap().id;
        self.images.push(format!("sandtray-test/bystander:{tag}"));
        id
    }

    /// Another image to be removed at the end.
    pub(crate) fn adopt_image(&mut self, name: &str) {
        self.images.push(name.into());
    }

    /// The engine's output for building an image from a Dockerfile of these lines.
    pub(crate) async fn build(&mut self, lines: &str) -> String {
        let tag = "sandtray-test/bystander:built";
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(lines.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, "Dockerfile", lines.as_bytes()).unwrap();
        let body = bollard::body_full(tar.into_inner().unwrap().into());
        let options =
            BuildImageOptions { t: Some(tag.into()), nocache: true, rm: true, ..BuildImageOptions::default() };
        self.images.push(tag.into());
        let said = self.docker.build_image(options, None, Some(body));
        said.map(|line| line.map_or_else(|error| error.to_string(), |line| line.stream.unwrap_or_default()))
            .collect::<Vec<_>>()
            .await
            .concat()
    }

    pub(crate) async fn label(&self, container: &str, label: &str) -> String {
        let config = self.docker.inspect_container(container, None).await.unwrap().config.unwrap();
        config.labels.unwrap().remove(label).unwrap_or_default()
    }

    /// Whether each container runs and has the text that was written into it. Containers started here write it at their
    /// start.
    pub(crate) async fn wait_until_written(&self) {
        for (what, id) in &self.containers {
            eventually(what, || async { self.holds(id).await }).await;
        }
    }

    pub(crate) async fn assert_untouched(&self, when: &str) {
        for (what, id) in &self.containers {
            let running = self.docker.inspect_container(id, None).await.ok().and_then(|found| found.state?.running);
            assert_eq!(running, Some(true), "{when}, {what}: it is gone or stands still");
            assert!(self.holds(id).await, "{when}, {what}: what was written into it is gone");
        }
    }

    async fn holds(&self, id: &str) -> bool {
        let options = DownloadFromContainerOptions { path: "/x".into() };
        let archive: Vec<_> = self.docker.download_from_container(id, Some(options)).collect().await;
        let bytes: Option<Vec<_>> = archive.into_iter().map(Result::ok).collect();
        bytes.is_some_and(|bytes| bytes.concat().windows(5).any(|window| window == b"kept\n"))
    }

    async fn clear(&mut self) {
        for (_, id) in self.containers.drain(..) {
            let options = RemoveContainerOptions { force: true, ..RemoveContainerOptions::default() };
            let _ = self.docker.remove_container(&id, Some(options)).await;
        }
        for image in self.images.drain(..).rev() {
            let options = RemoveImageOptions { force: true, ..RemoveImageOptions::default() };
            let _ = self.docker.remove_image(&image, Some(options), None).await;
        }
    }
}

impl Drop for Owners {
    fn drop(&mut self) {
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(self.clear()));
    }
}

/// A name that no other test has, and no earlier run of this one.
pub(crate) fn name(what: &str) -> String {
    format!("sandtray-test-{}-{what}", std::process::id())
}

/// The labels of a container of this service, as typed by hand.
pub(crate) fn labels_of(rig: &Rig) -> [(&'static str, String); 2] {
    [(LABEL_INSTANCE, format!("{}-0123456789ab", rig.home())), (LABEL_RUN, "0123456789abcdef0123456789abcdef".into())]
}

/// Turning off sweeps, and returns once all is gone. Turning on again sweeps too, when the engine is checked.
pub(crate) async fn two_sweeps(rig: &Rig) {
    for _ in 0..2 {
        rig.service.supervisor.set_enabled(false).await;
        rig.service.supervisor.set_enabled(true).await;
    }
}
