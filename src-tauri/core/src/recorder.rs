//! Writes finished runs into the history, as the owner's settings say.

use async_trait::async_trait;
use tokio::sync::watch;

use crate::error::RunError;
use crate::history::{History, RunRecord, Trouble};
use crate::settings::Settings;
use crate::supervisor::{Record, Recorder};

#[derive(Debug)]
pub struct HistoryRecorder {
    pub history: History,
    pub settings: watch::Receiver<Settings>,
}

#[async_trait]
impl Recorder for HistoryRecorder {
    async fn ready(&self) -> Result<(), RunError> {
        if !self.settings.borrow().history.required {
            return Ok(());
        }
        self.history.ready().await.map_err(|trouble| refusal(&trouble))
    }

    async fn record(&self, record: Record<'_>) -> bool {
        let keep = self.settings.borrow().history.keep;
        let Record { spec, client, asked, result } = record;
        // The run was refused because it could not be recorded.
        if let Err(RunError::History { .. }) = result {
            return false;
        }
        // A full disk must not keep an agent from its result; the history reports the failure to the owner.
        self.history.record(RunRecord::of(spec, client, asked, result, keep)).await.is_ok()
    }
}

/// The answer to a run that may not start, because the history could not record it.
pub fn refusal(trouble: &Trouble) -> RunError {
    let message =
        format!("The run was not started: {}, and the owner wants every run on record.", trouble.why.sentence());
    let hint = format!(
        "{} Or the owner lets runs start that cannot be recorded: `history.required` in the settings.",
        trouble.why.hint()
    );
    RunError::History { message, hint }
}
