//! Writes finished runs into the history, as the owner's settings say.

use async_trait::async_trait;
use tokio::sync::watch;
use tracing::error;

use crate::history::{History, RunRecord};
use crate::settings::Settings;
use crate::supervisor::{Record, Recorder};

#[derive(Debug)]
pub struct HistoryRecorder {
    pub history: History,
    pub settings: watch::Receiver<Settings>,
}

#[async_trait]
impl Recorder for HistoryRecorder {
    async fn record(&self, record: Record<'_>) {
        let keep = self.settings.borrow().history.keep;
        let Record { spec, client, asked, result } = record;
        // A full disk must not keep an agent from its result; the owner reads of it in the log.
        if let Err(error) = self.history.record(RunRecord::of(spec, client, asked, result, keep)).await {
            error!(run = %spec.id, %error, "a run could not be written into the history");
        }
    }
}
