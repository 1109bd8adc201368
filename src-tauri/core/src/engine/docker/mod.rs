//! The Docker adapter: implements [`Engine`] with the Docker API. Only this folder and the walls name bollard.
//!
//! Every request has a deadline here, because bollard's covers the headers only, and a hung engine may send those and
//! stop.

mod attach;
mod derive;
mod ending;
mod errors;
mod names;
mod pulling;
mod stamp;
mod usage;
mod watching;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bollard::errors::Error;
use bollard::models::{ContainerSummary, ContainerSummaryStateEnum, ImageInspect, SystemVersion};
use bollard::query_parameters::{
    CreateContainerOptions, ListContainersOptions, RemoveContainerOptions, RemoveImageOptions, StatsOptions, TopOptions,
};
use bollard::{API_DEFAULT_VERSION, Docker as Client};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::health::Connector;
use super::{
    Attached, ContainerId, ContainerInfo, ContainerSpec, Derivation, Endpoint, Engine, EngineError, EngineInfo,
    EngineTrouble, Exit, ImageInfo, LABEL_INSTANCE, LABEL_RUN, LastEvents, LayerEvent, PullError, Unfit, Usage,
    Watched, container, container_name,
};
use errors::{engine_error, is_status, unusable};

/// The oldest API version with every field that the walls need (Docker 19.03).
const OLDEST_API: (u32, u32) = (1, 40);

/// A ping is no work for an engine.
const PING_DEADLINE: Duration = Duration::from_secs(3);
/// The info request makes an engine look at all its containers.
const INFO_DEADLINE: Duration = Duration::from_secs(10);
const IMAGE_DEADLINE: Duration = Duration::from_secs(10);
const REMOVE_IMAGE_DEADLINE: Duration = Duration::from_secs(60);
/// A busy disk makes these requests slow long before the engine is lost.
const CREATE_DEADLINE: Duration = Duration::from_secs(30);
const START_DEADLINE: Duration = Duration::from_secs(30);
const EXIT_DEADLINE: Duration = Duration::from_secs(10);
const EVENTS_DEADLINE: Duration = Duration::from_secs(5);
const REMOVE_DEADLINE: Duration = Duration::from_secs(30);
const LIST_DEADLINE: Duration = Duration::from_secs(10);
const USAGE_DEADLINE: Duration = Duration::from_secs(5);
/// Poll interval while another removal of the container is under way.
const REMOVE_POLL: Duration = Duration::from_millis(50);
/// Podman calls a container "stopped" between its program's end and its own cleanup, a state that bollard's models
/// lack. It passes within milliseconds, so the request is retried, at most this often.
const SETTLE_TRIES: u32 = 60;
const SETTLE_POLL: Duration = Duration::from_millis(50);
/// bollard's own timeout. It is longer than every deadline here but that of pulls, which have their own.
const CLIENT_SECONDS: u64 = 600;

#[derive(Debug, Clone)]
pub struct Docker {
    endpoint: Endpoint,
    client: Client,
    /// Notified when a connection to a container breaks.
    broke: Arc<Notify>,
}

/// Connects to endpoints, for [`super::health`].
#[derive(Debug, Clone, Copy, Default)]
pub struct DockerConnector;

#[async_trait]
impl Connector for DockerConnector {
    async fn connect(&self, endpoint: &Endpoint) -> Result<Arc<dyn Engine>, EngineTrouble> {
        Ok(Arc::new(Docker::connect(endpoint.clone()).await?))
    }
}

impl Docker {
    /// Connects, and checks that the engine can be used.
    ///
    /// There is no version to negotiate: bollard's requests carry none, so an engine answers in its own.
    ///
    /// # Errors
    ///
    /// If the engine cannot be reached, or cannot be used.
    pub async fn connect(endpoint: Endpoint) -> Result<Self, EngineTrouble> {
        let client = open(&endpoint)?;
        let fault = |error| unusable(&endpoint, error);
        let silent = || EngineTrouble::NotAnswering { endpoint: endpoint.clone() };
        let version = timeout(PING_DEADLINE, client.version()).await.map_err(|_| silent())?.map_err(fault)?;
        check_version(&endpoint, &version)?;
        timeout(INFO_DEADLINE, client.info()).await.map_err(|_| silent())?.map_err(fault)?;
        Ok(Self { endpoint, client, broke: Arc::new(Notify::new()) })
    }

    async fn within<T>(
        &self,
        limit: Duration,
        doing: &'static str,
        call: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, EngineError> {
        match timeout(limit, call).await {
            Ok(result) => result.map_err(|error| engine_error(&self.endpoint, doing, error)),
            Err(_) => Err(EngineError::Unavailable(EngineTrouble::NotAnswering { endpoint: self.endpoint.clone() })),
        }
    }

    async fn try_remove(&self, id: &ContainerId) -> Result<Removal, Error> {
        let options = RemoveContainerOptions { v: true, force: true, link: false };
        let error = match self.client.remove_container(&id.0, Some(options)).await {
            Ok(()) => return Ok(Removal::Done),
            Err(error) if is_status(&error, 404) => return Ok(Removal::Done),
            Err(error) => error,
        };
        let message = error.to_string();
        if is_status(&error, 409) && message.contains("already in progress") {
            Ok(Removal::UnderWay)
        // Podman says "container state improper: stopped" if the program ends just as it is killed.
        } else if is_status(&error, 500) && message.contains("state improper") {
            Ok(Removal::Again)
        } else {
            Err(error)
        }
    }

    /// Waits until a removal begun by another request has ended.
    async fn gone(&self, id: &ContainerId) -> Result<(), EngineError> {
        let end = Instant::now() + REMOVE_DEADLINE;
        while Instant::now() < end {
            match self.exit(id).await {
                Err(EngineError::NoContainer) => return Ok(()),
                Ok(_) => sleep(REMOVE_POLL).await,
                Err(error) => return Err(error),
            }
        }
        let message = "another removal of it has begun and does not end".into();
        Err(EngineError::Refused { doing: "remove a container", message })
    }
}

fn open(endpoint: &Endpoint) -> Result<Client, EngineTrouble> {
    let url = endpoint.url.as_str();
    let client = match url.split_once("://") {
        #[cfg(unix)]
        Some(("unix", path)) => Client::connect_with_unix(path, CLIENT_SECONDS, API_DEFAULT_VERSION),
        #[cfg(windows)]
        Some(("npipe", path)) => Client::connect_with_named_pipe(path, CLIENT_SECONDS, API_DEFAULT_VERSION),
        Some(("tcp" | "http", host)) => {
            Client::connect_with_http(host.trim_end_matches('/'), CLIENT_SECONDS, API_DEFAULT_VERSION)
        }
        _ => Err(Error::UnsupportedURISchemeError { uri: url.to_owned() }),
    };
    client.map_err(|error| unusable(endpoint, error))
}

fn check_version(endpoint: &Endpoint, version: &SystemVersion) -> Result<(), EngineTrouble> {
    let refuse = |unfit, reason: String| Err(EngineTrouble::Unusable { endpoint: endpoint.clone(), unfit, reason });
    let api = version.api_version.as_deref().unwrap_or_default();
    let parts = api.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let Some(parts): Option<(u32, u32)> = parts else {
        return refuse(Unfit::Other, "it doesn't say which version of Docker's API it speaks".into());
    };
    if parts < OLDEST_API {
        let (major, minor) = OLDEST_API;
        let reason = format!("it is too old: it speaks version {api} of Docker's API, and {major}.{minor} is needed");
        return refuse(Unfit::TooOld, reason);
    }
    match version.os.as_deref() {
        Some("windows") => refuse(
            Unfit::OtherSystem,
            "it runs Windows containers; switch Docker Desktop to Linux containers from its menu in the tray".into(),
        ),
        _ => Ok(()),
    }
}

fn declares_volumes(image: &ImageInspect) -> bool {
    image.config.as_ref().and_then(|config| config.volumes.as_ref()).is_some_and(|volumes| !volumes.is_empty())
}

/// The engine's name: "Docker", "Podman", or the name that it reports.
fn engine_name(version: &SystemVersion) -> String {
    let components = version.components.as_deref().unwrap_or_default();
    match components.first().map(|component| component.name.as_str()) {
        Some("Engine") | None => "Docker".into(),
        Some(name) => name.trim_end_matches(" Engine").to_owned(),
    }
}

#[async_trait]
impl Engine for Docker {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    async fn info(&self) -> Result<EngineInfo, EngineError> {
        let (version, info) = tokio::try_join!(
            self.within(PING_DEADLINE, "say its version", self.client.version()),
            self.within(INFO_DEADLINE, "say what it has", self.client.info())
        )?;
        Ok(EngineInfo {
            fingerprint: watching::fingerprint(&info),
            name: engine_name(&version),
            version: version.version.unwrap_or_default(),
            api_version: version.api_version.unwrap_or_default(),
            endpoint: self.endpoint.clone(),
            os: version.os.unwrap_or_default(),
            arch: version.arch.unwrap_or_default(),
            cpus: info.ncpu.and_then(|cpus| u32::try_from(cpus).ok()).unwrap_or(0),
            memory_bytes: info.mem_total.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0),
        })
    }

    fn watch(&self) -> BoxFuture<'static, Watched> {
        watching::watch(self.client.clone(), Arc::clone(&self.broke)).boxed()
    }

    async fn image(&self, name: &str) -> Result<Option<ImageInfo>, EngineError> {
        if !names::is_plausible(name) {
            return Ok(None);
        }
        let call = async {
            match self.client.inspect_image(name).await {
                Err(error) if is_status(&error, 404) => Ok(None),
                other => other.map(Some),
            }
        };
        let image = self.within(IMAGE_DEADLINE, "look for an image", call).await?;
        if image.as_ref().is_some_and(declares_volumes) {
            return Err(EngineError::DeclaresVolumes);
        }
        Ok(image.map(|image| ImageInfo {
            id: image.id.unwrap_or_default(),
            digest: names::digest_of(name, image.repo_digests.as_deref().unwrap_or_default()),
            size_bytes: image.size.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0),
        }))
    }

    fn pull(&self, name: &str) -> BoxStream<'static, Result<LayerEvent, PullError>> {
        pulling::pull(self.clone(), name)
    }

    /// Removing a missing image succeeds.
    async fn remove_image(&self, name: &str) -> Result<(), EngineError> {
        if !names::is_plausible(name) {
            return Ok(());
        }
        let call = async {
            match self.client.remove_image(name, None::<RemoveImageOptions>, None).await {
                Err(error) if is_status(&error, 404) => Ok(()),
                other => other.map(drop),
            }
        };
        self.within(REMOVE_IMAGE_DEADLINE, "remove an image", call).await
    }

    async fn derive(&self, derivation: &Derivation, given_up: &CancellationToken) -> Result<(), EngineError> {
        derive::derive(self, derivation, given_up).await
    }

    async fn create(&self, spec: &ContainerSpec) -> Result<ContainerId, EngineError> {
        let name = Some(container_name(spec.run));
        let options = CreateContainerOptions { name, ..CreateContainerOptions::default() };
        let call = self.client.create_container(Some(options), container::config(spec));
        match self.within(CREATE_DEADLINE, "create a container", call).await {
            Ok(created) => Ok(ContainerId(created.id)),
            // Before there is a container, only the image can be missing.
            Err(EngineError::Refused { message, .. }) if names::says_no_image(&message) => Err(EngineError::NoImage),
            Err(error) => Err(error),
        }
    }

    async fn start(&self, id: &ContainerId) -> Result<Attached, EngineError> {
        // Attached before the start, because the first bytes would be lost otherwise.
        let attached = self.within(START_DEADLINE, "attach to a container", attach::open(&self.client, id)).await?;
        self.within(START_DEADLINE, "start a container", self.client.start_container(&id.0, None)).await?;
        Ok(attach::split(self.endpoint.clone(), Arc::clone(&self.broke), attached))
    }

    async fn exit(&self, id: &ContainerId) -> Result<Exit, EngineError> {
        let call = settled(|| self.client.inspect_container(&id.0, None));
        let state = self.within(EXIT_DEADLINE, "look at a container", call).await?.state.unwrap_or_default();
        Ok(Exit {
            running: state.running.unwrap_or(false),
            exit_code: state.exit_code.and_then(|code| i32::try_from(code).ok()).unwrap_or(0),
            oom_killed: state.oom_killed.unwrap_or(false),
            started_at: state.started_at.as_deref().and_then(stamp::parse),
        })
    }

    async fn last_events(&self, id: &ContainerId) -> Result<LastEvents, EngineError> {
        let call = ending::last_events(&self.client, id);
        self.within(EVENTS_DEADLINE, "say how a container ended", call).await
    }

    async fn usage(&self, id: &ContainerId) -> Result<Usage, EngineError> {
        let options = StatsOptions { stream: false, one_shot: true };
        let call = async {
            match self.client.stats(&id.0, Some(options)).next().await {
                Some(answer) => answer.map(Some),
                None => Ok(None),
            }
        };
        let doing = "say what a container uses";
        let figures = self.within(USAGE_DEADLINE, doing, call).await?;
        if let Some(usage) = figures.and_then(usage::of) {
            return Ok(usage);
        }
        let options = TopOptions { ps_args: usage::COLUMNS.into() };
        let table = self.within(USAGE_DEADLINE, doing, self.client.top_processes(&id.0, Some(options))).await?;
        Ok(usage::of_table(&table))
    }

    async fn remove(&self, id: &ContainerId) -> Result<(), EngineError> {
        let call = async {
            loop {
                match self.try_remove(id).await? {
                    Removal::Again => sleep(REMOVE_POLL).await,
                    removal @ (Removal::Done | Removal::UnderWay) => return Ok(removal),
                }
            }
        };
        match self.within(REMOVE_DEADLINE, "remove a container", call).await? {
            Removal::Done | Removal::Again => Ok(()),
            Removal::UnderWay => self.gone(id).await,
        }
    }

    async fn containers(&self) -> Result<Vec<ContainerInfo>, EngineError> {
        let filters = HashMap::from([("label".to_owned(), vec![LABEL_INSTANCE.to_owned()])]);
        let options = ListContainersOptions { all: true, filters: Some(filters), ..ListContainersOptions::default() };
        let list =
            self.within(LIST_DEADLINE, "list its containers", self.client.list_containers(Some(options))).await?;
        Ok(list.into_iter().filter_map(container_info).collect())
    }

    async fn run_label_of_image(&self, id: &str) -> Result<Option<String>, EngineError> {
        let call = async {
            match self.client.inspect_image(id).await {
                Err(error) if is_status(&error, 404) => Ok(None),
                other => other.map(Some),
            }
        };
        let image = self.within(IMAGE_DEADLINE, "look for an image", call).await?;
        let labels = image.and_then(|image| image.config).and_then(|config| config.labels);
        Ok(labels.and_then(|mut labels| labels.remove(LABEL_RUN)))
    }
}

/// Retries while the answer cannot be parsed.
async fn settled<T, F: Future<Output = Result<T, Error>>>(ask: impl Fn() -> F) -> Result<T, Error> {
    for _ in 1..SETTLE_TRIES {
        match ask().await {
            Err(Error::JsonDataError { .. }) => sleep(SETTLE_POLL).await,
            answer => return answer,
        }
    }
    ask().await
}

enum Removal {
    Done,
    /// Another request began the removal.
    UnderWay,
    /// The container was just ending by itself.
    Again,
}

fn container_info(summary: ContainerSummary) -> Option<ContainerInfo> {
    let mut labels = summary.labels.unwrap_or_default();
    // Docker puts a slash before a container's own name. Names from old links hold a second slash.
    let own = |name: &String| !name.trim_start_matches('/').contains('/');
    let name = summary.names.unwrap_or_default().into_iter().find(own).unwrap_or_default();
    Some(ContainerInfo {
        id: ContainerId(summary.id?),
        name: name.trim_start_matches('/').to_owned(),
        image: summary.image_id.unwrap_or_default(),
        instance: labels.remove(LABEL_INSTANCE)?,
        run: labels.remove(LABEL_RUN).unwrap_or_default(),
        running: summary.state == Some(ContainerSummaryStateEnum::RUNNING),
    })
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
