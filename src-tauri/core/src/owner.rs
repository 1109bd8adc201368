//! The owner's changes to a running service: the switch and the settings. They are saved first, then take effect
//! without a restart.

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
    /// Locked from the write of the file until every part has the settings, so that the settings in force are those
    /// saved last.
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

    /// Applies settings, all or nothing.
    ///
    /// # Errors
    ///
    /// If a setting is out of its bounds, or the file cannot be written. Nothing is changed then.
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

    /// Turns the switch. Off returns once no container is left. The switch is turned even if it cannot be saved,
    /// because turning off must never depend on a disk.
    ///
    /// # Errors
    ///
    /// If the switch cannot be saved; it is turned all the same.
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
