//! The owner's hand on a running service: the switch and the settings, saved first and then in force, without a restart.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Mutex, watch};

use crate::engine::health::HealthHandle;
use crate::history::History;
use crate::settings::{Settings, SettingsError};
use crate::supervisor::Supervisor;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Owner {
    supervisor: Supervisor,
    history: History,
    health: HealthHandle,
    file: PathBuf,
    settings: Arc<watch::Sender<Settings>>,
    /// Held from the file to the last part that is told, so that what is in force is what was saved last.
    turn: Arc<Mutex<()>>,
}

impl Owner {
    pub(crate) fn new(
        supervisor: Supervisor,
        history: History,
        health: HealthHandle,
        file: PathBuf,
        settings: watch::Sender<Settings>,
    ) -> Self {
        Self { supervisor, history, health, file, settings: Arc::new(settings), turn: Arc::default() }
    }

    pub fn settings(&self) -> Settings {
        self.settings.borrow().clone()
    }

    pub fn watch(&self) -> watch::Receiver<Settings> {
        self.settings.subscribe()
    }

    /// All of it or nothing: settings out of their bounds, or a file that cannot be written, change nothing.
    pub async fn apply(&self, settings: Settings) -> Result<Settings, SettingsError> {
        let _turn = self.turn.lock().await;
        self.save(&settings).await?;
        let before = self.settings.send_replace(settings.clone());
        self.supervisor.configure(settings.clone()).await;
        if before.engine != settings.engine {
            self.health.choose(settings.engine.clone());
        }
        if before.history != settings.history
            && let Err(error) = self.history.configure(settings.history.clone()).await
        {
            tracing::error!(%error, "the history does not know of its new settings");
        }
        if before.enabled != settings.enabled {
            self.supervisor.set_enabled(settings.enabled).await;
        }
        Ok(settings)
    }

    /// Off returns once no container is left. A switch that cannot be saved is turned all the same, and the failure told:
    /// turning off must never depend on a disk.
    pub async fn set_enabled(&self, enabled: bool) -> Result<(), SettingsError> {
        let _turn = self.turn.lock().await;
        let settings = Settings { enabled, ..self.settings() };
        let saved = self.save(&settings).await;
        self.settings.send_replace(settings);
        self.supervisor.set_enabled(enabled).await;
        saved
    }

    async fn save(&self, settings: &Settings) -> Result<(), SettingsError> {
        let (settings, file) = (settings.clone(), self.file.clone());
        let path = self.file.clone();
        tokio::task::spawn_blocking(move || settings.save(&file))
            .await
            .unwrap_or_else(|error| Err(SettingsError::Save { path, source: std::io::Error::other(error) }))
    }
}
