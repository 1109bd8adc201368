//! Runs that are over: the list, a run's page, and what can be done with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sandtray_core::error::RunError;
use sandtray_core::history::{self as core, Body, MAX_PAGE, RunRecord};
use sandtray_core::policy;
use sandtray_core::protocol::request::{GivenLimits, RunRequest};
use sandtray_core::run::{Client, ClientId, Overflow, RunId};
use sandtray_core::supervisor::Progress;
use sandtray_core::time::to_millis;
use tauri::{AppHandle, State, command};
use tauri_plugin_clipboard_manager::ClipboardExt;
use tauri_plugin_dialog::DialogExt;
use tokio::sync::oneshot;

use super::{Answer, run_id};
use crate::desk::{Desk, Here};
use crate::dto::error::CommandError;
use crate::dto::history::{self as view, HistoryFilter, HistoryPage, HistoryStats, RecentRun};
use crate::dto::{detail, present};

/// Who asks for what is run again from the window.
pub(crate) const OWN_CLIENT: &str = "Sandtray";
/// Ids of connections count up from one; the window's runs count down from here and end with nobody.
const OWN_IDS: u64 = u64::MAX;
/// What is copied at most: more than any output that is kept.
const MAX_COPY: usize = 16 << 20;
/// What is refused is refused by then; a run that still waits is on its way.
const REFUSAL: Duration = Duration::from_millis(200);

#[command]
pub(crate) async fn history_page(desk: State<'_, Desk>, filter: HistoryFilter) -> Answer<HistoryPage> {
    let HistoryFilter { before, limit, language, status, client, text } = filter;
    let fault = |_| CommandError::new("invalid_params", "That place in the history does not exist.");
    let before = before.map(|text| text.parse()).transpose().map_err(fault)?;
    let query = core::HistoryQuery { before, limit: limit as usize, language, status, client, text };
    let page = desk.here()?.history.list(query).await?;
    let next = page.next.map(|cursor| cursor.to_string());
    Ok(HistoryPage { runs: page.runs.into_iter().map(present::row).collect(), next })
}

#[command]
pub(crate) async fn history_run(desk: State<'_, Desk>, run_id: String) -> Answer<view::RunRecord> {
    Ok(detail::detail(record(&desk.here()?, self::run_id(&run_id)?).await?))
}

/// Newest first.
#[command]
pub(crate) async fn history_recent(desk: State<'_, Desk>, since_ms: u64, max: usize) -> Answer<Vec<RecentRun>> {
    let query = core::HistoryQuery { limit: max.clamp(1, MAX_PAGE), ..core::HistoryQuery::default() };
    let page = desk.here()?.history.list(query).await?;
    let recent = page.runs.into_iter().map(|run| RecentRun {
        run_id: run.run_id.to_string(),
        at_ms: to_millis(run.queued_at),
        seconds: run.wall.map(|wall| wall.as_secs_f64()),
        status: run.status,
        language: run.language,
    });
    Ok(recent.take_while(|run| run.at_ms >= since_ms).collect())
}

#[command]
pub(crate) async fn history_delete(desk: State<'_, Desk>, run_id: String) -> Answer<()> {
    match desk.here()?.history.delete(self::run_id(&run_id)?).await? {
        true => Ok(()),
        false => Err(CommandError::no_such_run()),
    }
}

#[command]
pub(crate) async fn history_clear(desk: State<'_, Desk>) -> Answer<()> {
    Ok(desk.here()?.history.clear().await?)
}

#[command]
pub(crate) async fn history_stats(desk: State<'_, Desk>) -> Answer<HistoryStats> {
    let core::Stats { runs, bytes } = desk.here()?.history.stats().await?;
    Ok(HistoryStats { runs, bytes })
}

/// The same program under the limits that hold now. Returns once it waits or runs.
#[command]
pub(crate) async fn run_again(desk: State<'_, Desk>, run_id: String) -> Answer<String> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let here = desk.here()?;
    let request = request(record(&here, self::run_id(&run_id)?).await?)?;
    let spec = policy::spec(request, &here.owner.settings().limits(), RunId::generate())?;
    let id = spec.id;
    let client = Client {
        id: ClientId(OWN_IDS - COUNT.fetch_add(1, Ordering::Relaxed)),
        name: OWN_CLIENT.into(),
        pid: Some(std::process::id()),
        program: None,
    };
    let supervisor = here.supervisor.clone();
    let mut run = tauri::async_runtime::spawn(async move { supervisor.run(spec, client, Progress::default()).await });
    match tokio::time::timeout(REFUSAL, &mut run).await {
        Ok(Ok(Ok(_))) | Err(_) => Ok(id.to_string()),
        Ok(Ok(Err(error))) => Err(error.into()),
        Ok(Err(failure)) => Err(RunError::Internal(failure.to_string()).into()),
    }
}

/// Asks where, and writes it there. False where the owner thought better of it.
#[command]
pub(crate) async fn save_file(app: AppHandle, desk: State<'_, Desk>, run_id: String, name: String) -> Answer<bool> {
    let record = record(&desk.here()?, self::run_id(&run_id)?).await?;
    let body = record.body.unwrap_or_default();
    let Some(file) = body.files_out.into_iter().find(|file| file.name == name) else {
        return Err(CommandError::new("no_such_file", "That file is gone."));
    };
    let (chosen, choice) = oneshot::channel();
    // The last part of the name: a dialog takes the rest for folders.
    let suggestion = file.name.rsplit('/').next().unwrap_or_default().to_owned();
    app.dialog().file().set_file_name(suggestion).save_file(move |path| drop(chosen.send(path)));
    let Ok(Some(path)) = choice.await else { return Ok(false) };
    let failed = |why: String| CommandError::new("not_saved", format!("The file was not saved: {why}."));
    let path = path.into_path().map_err(|error| failed(error.to_string()))?;
    tokio::fs::write(path, &file.bytes).await.map_err(|error| failed(error.to_string()))?;
    Ok(true)
}

#[command]
pub(crate) async fn copy_text(app: AppHandle, text: String) -> Answer<()> {
    if text.len() > MAX_COPY {
        return Err(CommandError::new("too_large", "That is too much to copy."));
    }
    let failed = |error: tauri_plugin_clipboard_manager::Error| {
        CommandError::new("not_copied", format!("It was not copied: {error}."))
    };
    app.clipboard().write_text(text).map_err(failed)
}

async fn record(here: &Arc<Here>, run: RunId) -> Answer<RunRecord> {
    here.history.get(run).await?.ok_or_else(CommandError::no_such_run)
}

/// The history keeps what a run can be read by. What its agent sent beside the program it does not keep.
fn request(record: RunRecord) -> Answer<RunRequest> {
    let RunRecord { row, body } = record;
    let cannot = |why: &str| CommandError::new("cannot_run_again", format!("It cannot be run again: {why}."));
    let Some(Body { code, files_in, .. }) = body else {
        return Err(cannot("its program was not kept"));
    };
    if !files_in.is_empty() || row.stdin_bytes > 0 {
        return Err(cannot("the files and the input that it was given were not kept"));
    }
    let language = row.language.parse().map_err(|_| cannot("its language is unknown"))?;
    let code = String::from_utf8(code.into()).map_err(|_| cannot("its program is no text"))?;
    Ok(RunRequest {
        language,
        code,
        files: Vec::new(),
        stdin: Default::default(),
        limits: GivenLimits::default(),
        overflow: Overflow::Kill,
        stream: false,
        label: row.label,
    })
}
