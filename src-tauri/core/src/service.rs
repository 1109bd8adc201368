//! The whole service: settings, history, engine, supervisor and the local socket, started in order and stopped in the
//! reverse order. The app and `sandtray serve` both run this.

use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::budget::Budget;
use crate::engine::discovery::{self, Places};
use crate::engine::docker::DockerConnector;
use crate::engine::health::{Health, HealthConfig, HealthHandle};
use crate::history::{History, HistoryError};
use crate::instance::{Instance, InstanceError};
use crate::ipc::{self, BindError, Listener, Serving, door::Door};
use crate::janitor::Janitor;
use crate::leases::Leases;
use crate::owner::Owner;
use crate::paths::{Paths, PathsError};
use crate::recorder::HistoryRecorder;
use crate::settings::{Settings, SettingsError};
use crate::supervisor::{self, Parts, Supervisor};
use crate::visitors::Visitors;
use crate::wall_check::Probe;

#[derive(Debug)]
pub struct Options {
    pub paths: Paths,
    /// Turns the capability on for this start, whatever the settings say. The settings are not changed.
    pub enable: bool,
    /// Replaces the socket's usual place.
    pub socket: Option<PathBuf>,
}

#[derive(Debug)]
pub struct Service {
    pub supervisor: Supervisor,
    pub history: History,
    pub health: HealthHandle,
    pub owner: Owner,
    pub visitors: Visitors,
    pub socket: PathBuf,
    /// Messages for the owner about files that were set aside.
    pub notices: Vec<String>,
    serving: Serving,
    actor: JoinHandle<()>,
    background: Vec<JoinHandle<()>>,
    cancel: CancellationToken,
    // Released last: until then no other service may use the data folder.
    _instance: Instance,
}

#[derive(Debug, Error)]
pub enum StartError {
    #[error(transparent)]
    Paths(#[from] PathsError),
    #[error(transparent)]
    Instance(#[from] InstanceError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error(transparent)]
    Bind(#[from] BindError),
}

/// Starts the service. Call it inside a tokio runtime. Returns once agents can connect; the search for an engine goes
/// on in the background.
///
/// # Errors
///
/// If the folders cannot be made, another service holds the data folder, or the settings, the history or the socket
/// cannot be opened.
pub async fn start(options: Options) -> Result<Service, StartError> {
    let Options { paths, enable, socket } = options;
    paths.ensure()?;
    let instance = Instance::acquire(&paths)?;
    let loaded = Settings::load(&paths.settings_file())?;
    let mut settings = loaded.settings;
    // Taken before the override, which must not be saved with the owner's next change.
    let (in_force, settings_watch) = watch::channel(settings.clone());
    // If the settings file cannot be read, the owner's limits are unknown, so the capability stays off.
    settings.enabled = (settings.enabled || enable) && loaded.set_aside.is_none();
    let opened = History::open(&paths.history_file(), settings.history.clone()).await?;
    let listener = Listener::bind(&socket.map_or_else(|| paths.socket_file(), Ok)?)?;
    let notices = [loaded.set_aside, opened.set_aside].into_iter().flatten().map(|aside| aside.to_string()).collect();

    let cancel = CancellationToken::new();
    let health_config = HealthConfig {
        places: Places::of_this_process(settings.engine.clone()),
        probe: Arc::new(discovery::on_disk),
        connector: Arc::new(DockerConnector),
    };
    let (health, health_task) = Health::spawn(health_config, cancel.child_token());
    let (janitor, janitor_task) = Janitor::spawn(cancel.child_token());
    let leases = Leases::new(janitor, instance.id().clone());
    let pool_task = tokio::spawn(leases.pool.clone().keep(cancel.child_token()));
    let (nudged, budget) = (health.clone(), Budget::default());
    let (supervisor, actor) = Supervisor::spawn(Parts {
        settings: settings.clone(),
        leases,
        recorder: Arc::new(HistoryRecorder { history: opened.history.clone(), settings: settings_watch.clone() }),
        wall_check: Arc::new(Probe),
        connections: health.watch(),
        nudge: Arc::new(move || nudged.nudge()),
        budget: budget.clone(),
    });
    let owner = Owner::new(supervisor.clone(), opened.history.clone(), health.clone(), paths.settings_file(), in_force);
    let of_batches = settings_watch.clone();
    let at_once = Arc::new(move || at_once(&of_batches.borrow()));
    let limits = Arc::new(move || settings_watch.borrow().limits());
    let visitors = Visitors::default();
    let door = Door {
        supervisor: supervisor.clone(),
        limits,
        at_once,
        history: opened.history.clone(),
        budget,
        visitors: visitors.clone(),
    };
    let socket = listener.path().to_owned();
    let serving = ipc::serve(listener, door);
    Ok(Service {
        supervisor,
        history: opened.history,
        health,
        owner,
        visitors,
        socket,
        notices,
        serving,
        actor,
        background: vec![health_task, pool_task, janitor_task],
        cancel,
        _instance: instance,
    })
}

/// The concurrent runs of one batch: no more than a client may have waiting, because nothing may start while an image
/// is pulled.
fn at_once(settings: &Settings) -> usize {
    supervisor::concurrency(settings).min(settings.per_client as usize).min(settings.queue as usize).max(1)
}

impl Service {
    /// Refuses new runs, ends live ones, answers the callers, and leaves no container behind if the engine answers.
    pub async fn shutdown(self) {
        let Self { supervisor, history, serving, actor, background, cancel, .. } = self;
        tokio::join!(supervisor.shutdown(), serving.stop());
        drop(supervisor);
        cancel.cancel();
        // It ends by itself unless the engine hangs. The next start sweeps the containers that it leaves.
        actor.abort();
        for task in background.into_iter().chain([actor]) {
            if let Err(failure) = task.await
                && failure.is_panic()
            {
                error!(%failure, "a part of the service failed");
            }
        }
        if let Err(failure) = history.close().await {
            warn!(%failure, "the history was not closed");
        }
    }
}
