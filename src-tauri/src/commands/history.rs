//! Runs that are over: the list, a run's page, and what can be done with them.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sandtray_core::error::RunError;
use sandtray_core::history::{self as core, Body, FileOut, MAX_PAGE, RunRecord};
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
use crate::dto::history::{self as view, HistoryFilter, HistoryPage, RecentRun};
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
pub(crate) async fn history_stats(desk: State<'_, Desk>) -> Answer<core::Stats> {
    Ok(desk.here()?.history.stats().await?)
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
    let file = returned(record(&desk.here()?, self::run_id(&run_id)?).await?, &name)?;
    let (chosen, choice) = oneshot::channel();
    app.dialog().file().set_file_name(suggestion(&file.name)).save_file(move |path| drop(chosen.send(path)));
    let Ok(Some(path)) = choice.await else { return Ok(false) };
    let path = path.into_path().map_err(not_saved)?;
    write(&path, &file.bytes).await.map(|()| true)
}

/// What came back from the run under this name.
fn returned(record: RunRecord, name: &str) -> Answer<FileOut> {
    let files = record.body.unwrap_or_default().files_out;
    files
        .into_iter()
        .find(|file| file.name == name)
        .ok_or_else(|| CommandError::new("no_such_file", "That file is gone."))
}

/// The last part of the name: a dialog takes the rest for folders.
fn suggestion(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

async fn write(path: &Path, bytes: &[u8]) -> Answer<()> {
    tokio::fs::write(path, bytes).await.map_err(not_saved)
}

fn not_saved(why: impl Display) -> CommandError {
    CommandError::new("not_saved", format!("The file was not saved: {why}."))
}

#[command]
pub(crate) async fn copy_text(app: AppHandle, text: String) -> Answer<()> {
    copyable(&text)?;
    let failed = |error: tauri_plugin_clipboard_manager::Error| {
        CommandError::new("not_copied", format!("It was not copied: {error}."))
    };
    app.clipboard().write_text(text).map_err(failed)
}

fn copyable(text: &str) -> Answer<()> {
    if text.len() > MAX_COPY { Err(CommandError::new("too_large", "That is too much to copy.")) } else { Ok(()) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use sandtray_core::history::FileIn;
    use sandtray_core::settings::{Keep, Settings};
    use std::time::SystemTime;

    /// As the history gives it, with this body.
    fn kept(body: Option<Body>) -> RunRecord {
        let request = RunRequest {
            language: "shell".parse().unwrap(),
            code: "echo".into(),
            files: Vec::new(),
            stdin: Default::default(),
            limits: GivenLimits::default(),
            overflow: Overflow::Kill,
            stream: false,
            label: Some("a label".into()),
        };
        let spec = policy::spec(request, &Settings::default().limits(), RunId::generate()).unwrap();
        let client = Client { id: ClientId(1), name: "agent".into(), pid: None, program: None };
        let error = RunError::ShuttingDown;
        let record = RunRecord::of(&spec, &client, SystemTime::now(), Err(&error), Keep::Metrics);
        RunRecord { body, ..record }
    }

    fn code_of<T: std::fmt::Debug>(answer: Answer<T>) -> String {
        answer.unwrap_err().code
    }

    #[tokio::test]
    async fn a_file_is_saved_byte_for_byte_where_the_owner_says() {
        let name = "plots/chart one.png";
        let file = FileOut { name: name.into(), bytes: b"\x89PNG\0\xff".to_vec().into() };
        let record = kept(Some(Body { files_out: vec![file], ..Body::default() }));
        let file = returned(record, name).unwrap();
        assert_eq!(suggestion(&file.name), "chart one.png");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.png");
        std::fs::write(&path, "what was there before, and longer").unwrap();
        write(&path, &file.bytes).await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"\x89PNG\0\xff");
    }

    #[tokio::test]
    async fn what_cannot_be_saved_says_why() {
        assert_eq!(code_of(returned(kept(Some(Body::default())), "gone.txt")), "no_such_file");
        assert_eq!(code_of(returned(kept(None), "not kept.txt")), "no_such_file");
        let folder = tempfile::tempdir().unwrap();
        let error = write(&folder.path().join("no such folder/a.txt"), b"x").await.unwrap_err();
        assert_eq!(error.code, "not_saved");
        assert!(error.message.starts_with("The file was not saved: "), "{}", error.message);
    }

    #[test]
    fn only_so_much_is_copied() {
        assert!(copyable(&"x".repeat(MAX_COPY)).is_ok());
        assert_eq!(code_of(copyable(&"x".repeat(MAX_COPY + 1))), "too_large");
    }

    #[test]
    fn only_what_was_kept_whole_runs_again() {
        let body = Body { code: "echo 1".into(), ..Body::default() };
        let again = request(kept(Some(body.clone()))).unwrap();
        assert_eq!((again.code.as_str(), again.label.as_deref()), ("echo 1", Some("a label")));
        assert_eq!(code_of(request(kept(None))), "cannot_run_again");
        let files_in = vec![FileIn { name: "a.csv".into(), size: 1 }];
        assert_eq!(code_of(request(kept(Some(Body { files_in, ..body.clone() })))), "cannot_run_again");
        assert_eq!(code_of(request(kept(Some(Body { code: b"\xff".to_vec().into(), ..body })))), "cannot_run_again");
    }
}
