//! Runs that are over: the list, a run's page, and what can be done with them.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sandtray_core::error::RunError;
use sandtray_core::history::{self as core, Body, FileOut, MAX_PAGE, RunRecord};
use sandtray_core::policy;
use sandtray_core::protocol::request::{GivenLimits, RunRequest};
use sandtray_core::run::{Overflow, RunId};
use sandtray_core::supervisor::Progress;
use sandtray_core::time::to_millis;

use super::agents::owner;
use super::{Answer, run_id};
use crate::app::App;
use crate::desk::Here;
use crate::dto::error::CommandError;
use crate::dto::history::{self as view, HistoryFilter, HistoryPage, RecentRun};
use crate::dto::picture::PictureView;
use crate::dto::{detail, present};
use crate::link::ReturnedFile;
use crate::thumbnail::Want;

/// What is refused is refused by then; a run that still waits is on its way.
const REFUSAL: Duration = Duration::from_millis(200);

pub(super) async fn history_page(app: &App, filter: HistoryFilter) -> Answer<HistoryPage> {
    let HistoryFilter { before, limit, language, status, client, program, text } = filter;
    let fault = |_| CommandError::new("invalid_params", "That place in the history does not exist.");
    let before = before.map(|text| text.parse()).transpose().map_err(fault)?;
    let query = core::HistoryQuery { before, limit: limit as usize, language, status, client, program, text };
    let page = app.desk.here()?.history.list(query).await?;
    let next = page.next.map(|cursor| cursor.to_string());
    Ok(HistoryPage { runs: page.runs.into_iter().map(present::row).collect(), next })
}

pub(super) async fn history_run(app: &App, run: &str) -> Answer<view::RunRecord> {
    Ok(detail::detail(record(&app.desk.here()?, run_id(run)?).await?))
}

/// Newest first.
pub(super) async fn history_recent(app: &App, since_ms: u64, max: usize) -> Answer<Vec<RecentRun>> {
    let query = core::HistoryQuery { limit: max.clamp(1, MAX_PAGE), ..core::HistoryQuery::default() };
    let page = app.desk.here()?.history.list(query).await?;
    let recent = page.runs.into_iter().map(|run| RecentRun {
        run_id: run.run_id.to_string(),
        at_ms: to_millis(run.queued_at),
        seconds: run.wall.map(|wall| wall.as_secs_f64()),
        status: run.status,
        language: run.language,
    });
    Ok(recent.take_while(|run| run.at_ms >= since_ms).collect())
}

pub(super) async fn history_delete(app: &App, run: &str) -> Answer<()> {
    match app.desk.here()?.history.delete(run_id(run)?).await? {
        true => Ok(()),
        false => Err(CommandError::no_such_run()),
    }
}

pub(super) async fn history_clear(app: &App) -> Answer<()> {
    Ok(app.desk.here()?.history.clear().await?)
}

pub(super) async fn history_stats(app: &App) -> Answer<core::Stats> {
    Ok(app.desk.here()?.history.stats().await?)
}

/// The same program under the limits that hold now. Returns once it waits or runs.
pub(super) async fn run_again(app: &App, run: &str) -> Answer<String> {
    let here = app.desk.here()?;
    let request = request(record(&here, run_id(run)?).await?)?;
    let spec = policy::spec(request, &here.owner.settings().limits(), RunId::generate())?;
    let id = spec.id;
    let supervisor = here.supervisor.clone();
    let mut run = tokio::spawn(async move { supervisor.run(spec, owner(), Progress::default()).await });
    match tokio::time::timeout(REFUSAL, &mut run).await {
        Ok(Ok(Ok(_))) | Err(_) => Ok(id.to_string()),
        Ok(Ok(Err(error))) => Err(error.into()),
        Ok(Err(failure)) => Err(RunError::Internal(failure.to_string()).into()),
    }
}

/// For the window, which asks its owner where to put it.
pub(super) async fn returned_file(app: &App, run: &str, name: &str) -> Answer<ReturnedFile> {
    let file = returned(record(&app.desk.here()?, run_id(run)?).await?, name)?;
    Ok(ReturnedFile { base64: STANDARD.encode(&file.bytes) })
}

pub(super) async fn history_picture(app: &App, run: &str, name: &str, pixels: bool) -> Answer<PictureView> {
    let (here, run) = (app.desk.here()?, run_id(run)?);
    let file = async { Ok(returned(record(&here, run).await?, name)?.bytes) };
    app.studio.picture(file, if pixels { Want::Pixels } else { Want::Size }).await
}

/// What came back from the run under this name.
fn returned(record: RunRecord, name: &str) -> Answer<FileOut> {
    let files = record.body.unwrap_or_default().files_out;
    files
        .into_iter()
        .find(|file| file.name == name)
        .ok_or_else(|| CommandError::new("no_such_file", "That file is gone."))
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
    use sandtray_core::run::{Client, ClientId};
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

    #[test]
    fn a_file_is_found_by_its_whole_name() {
        let name = "plots/chart one.png";
        let file = FileOut { name: name.into(), bytes: b"\x89PNG\0\xff".to_vec().into() };
        let record = kept(Some(Body { files_out: vec![file], ..Body::default() }));
        assert_eq!(returned(record, name).unwrap().bytes, b"\x89PNG\0\xff"[..]);
        assert_eq!(code_of(returned(kept(Some(Body::default())), "gone.txt")), "no_such_file");
        assert_eq!(code_of(returned(kept(None), "not kept.txt")), "no_such_file");
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
