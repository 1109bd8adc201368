//! Past runs: the list, a run's page, and the actions on them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use sandtray_core::history::{self as core, Cursor, FileIn, FileOut, MAX_PAGE, RunRecord, RunRow, Side};
use sandtray_core::policy;
use sandtray_core::protocol::request::{GivenFile, GivenLimits, RunRequest};
use sandtray_core::recorder::refusal;
use sandtray_core::run::{Cancel, Limits, Overflow, RunId, Status};
use sandtray_core::supervisor::Progress;
use sandtray_core::time::{from_millis, to_millis};

use super::agents::owner;
use super::{Answer, run_id};
use crate::app::App;
use crate::desk::Here;
use crate::dto::error::CommandError;
use crate::dto::history::{self as view, HistoryFilter, HistoryPage, RecentRun};
use crate::dto::picture::PictureView;
use crate::dto::{detail, present};
use crate::link::{ReturnedFile, ReturnedFiles};
use crate::thumbnail::Want;

/// The error for a run whose program was given up on a full disk.
pub(crate) const GIVEN_UP: &str = "It can\u{2019}t be run again: its program was given up when the disk was full.";

pub(super) async fn history_page(app: &App, filter: HistoryFilter) -> Answer<HistoryPage> {
    let HistoryFilter { before, limit, language, status, client, program, text, from_ms, until_ms } = filter;
    let fault = |_| CommandError::new("invalid_params", "That place in the history does not exist.");
    let before = before.map(|text| text.parse()).transpose().map_err(fault)?;
    let [from, until] = [from_ms, until_ms].map(|at| at.map(|at| Cursor::before(from_millis(at))));
    let limit = limit as usize;
    let query = core::HistoryQuery { before, limit, language, status, client, program, text, from, until };
    let page = app.desk.here()?.history.list(query).await?;
    let next = page.next.map(|cursor| cursor.to_string());
    Ok(HistoryPage { runs: page.runs.into_iter().map(present::row).collect(), next })
}

pub(super) async fn history_run(app: &App, run: &str) -> Answer<view::RunRecord> {
    let record = record(&app.desk.here()?, run_id(run)?).await?;
    let not_again = request(&record).err().map(|error| error.message);
    Ok(detail::detail(record, not_again))
}

/// Recent runs, newest first.
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

/// Runs a past run again, with its own limits but at most the owner's present ones. Returns once the run is accepted.
pub(super) async fn run_again(app: &App, run: &str) -> Answer<String> {
    let here = app.desk.here()?;
    let request = request(&record(&here, run_id(run)?).await?)?;
    let spec = policy::spec(request, &here.owner.settings().limits(), RunId::generate())?;
    let id = spec.id;
    // A run that is refused later for this reason is in no list, so the window would wait for it in vain.
    if here.owner.settings().history.required {
        here.history.ready().await.map_err(|trouble| refusal(&trouble))?;
    }
    let run = here.supervisor.submit(spec, owner(), Progress::default(), &Cancel::default()).await?;
    // The result goes into the history.
    app.spawn(async move { drop(run.wait().await) });
    Ok(id.to_string())
}

/// One file of a run, for the window to save.
pub(super) async fn returned_file(app: &App, run: &str, side: Side) -> Answer<ReturnedFile> {
    let here = app.desk.here()?;
    let bytes = kept(&here, run_id(run)?, side).await?;
    Ok(ReturnedFile { base64: STANDARD.encode(&bytes) })
}

/// All files that a run returned, for the window to save.
pub(super) async fn returned_files(app: &App, run: &str) -> Answer<ReturnedFiles> {
    let files = record(&app.desk.here()?, run_id(run)?).await?.body.unwrap_or_default().files_out;
    let files = files.into_iter().map(|FileOut { name, bytes }| (name, STANDARD.encode(&bytes))).collect();
    Ok(ReturnedFiles { files })
}

pub(super) async fn history_picture(app: &App, run: &str, side: Side, pixels: bool) -> Answer<PictureView> {
    let (here, run) = (app.desk.here()?, run_id(run)?);
    app.studio.picture(kept(&here, run, side), if pixels { Want::Pixels } else { Want::Size }).await
}

async fn kept(here: &Here, run: RunId, side: Side) -> Answer<Bytes> {
    let file = here.history.file(run, side).await?;
    file.ok_or_else(|| CommandError::new("no_such_file", "That file is gone."))
}

async fn record(here: &Arc<Here>, run: RunId) -> Answer<RunRecord> {
    here.history.get(run).await?.ok_or_else(CommandError::no_such_run)
}

/// The request of a past run: the same program, inputs, limits and overflow. An error says why that is not possible.
fn request(record: &RunRecord) -> Answer<RunRequest> {
    let RunRecord { row, body } = record;
    let cannot = |why: &str| CommandError::new("cannot_run_again", format!("It can\u{2019}t be run again: {why}."));
    let Some(body) = body else {
        let given_up = CommandError::new("cannot_run_again", GIVEN_UP);
        return Err(if row.given_up { given_up } else { cannot("its program was not kept") });
    };
    if !body.has_inputs() {
        return Err(cannot("what came in with it was not kept"));
    }
    let language = row.language.parse().map_err(|_| cannot("its language is unknown"))?;
    let code = String::from_utf8(body.code.to_vec()).map_err(|_| cannot("its program is no text"))?;
    let file = |file: &FileIn| Some(GivenFile { name: file.name.clone(), bytes: file.bytes.clone()? });
    Ok(RunRequest {
        language,
        code,
        args: body.args.clone(),
        files: body.files_in.iter().filter_map(file).collect(),
        stdin: body.stdin.clone().unwrap_or_default(),
        limits: limits(&row.limits),
        overflow: row.overflow.unwrap_or_else(|| overflow(row)),
        stream: false,
        label: row.label.clone(),
    })
}

fn limits(limits: &Limits) -> GivenLimits {
    GivenLimits {
        seconds: Some(limits.wall().as_secs_f64()),
        memory_mb: Some(limits.memory_bytes as f64 / f64::from(1 << 20)),
        cpus: Some(f64::from(limits.milli_cpus) / 1000.0),
    }
}

/// The overflow of a run from a version that did not record it. A run that produced more than was returned, and was not
/// ended for it, was truncated.
fn overflow(row: &RunRow) -> Overflow {
    let more = [row.stdout, row.stderr].iter().any(|stream| stream.produced > stream.returned);
    if more && row.status != Status::OutputLimit.as_str() { Overflow::Truncate } else { Overflow::Kill }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandtray_core::history::{Body, StreamFigure};
    use sandtray_core::run::{Client, ClientId};
    use sandtray_core::settings::{Keep, Settings};
    use std::time::SystemTime;

    fn asked() -> RunRequest {
        RunRequest {
            language: "shell".parse().unwrap(),
            code: "cat in".into(),
            args: Vec::new(),
            files: vec![GivenFile { name: "in".into(), bytes: b"a\xff".to_vec().into() }],
            stdin: "stdin".into(),
            limits: GivenLimits { seconds: Some(1.5), memory_mb: Some(64.0), cpus: Some(0.25) },
            overflow: Overflow::Truncate,
            stream: false,
            label: Some("a label".into()),
        }
    }

    fn kept() -> RunRecord {
        let spec = policy::spec(asked(), &Settings::default().limits(), RunId::generate()).unwrap();
        let client = Client { id: ClientId(1), name: "agent".into(), pid: None, program: None };
        let error = sandtray_core::error::RunError::ShuttingDown;
        RunRecord::of(&spec, &client, SystemTime::now(), Err(&error), Keep::Everything)
    }

    #[test]
    fn a_run_that_was_kept_whole_is_asked_for_as_it_was() {
        assert_eq!(request(&kept()).unwrap(), asked());
    }

    #[test]
    fn what_was_not_kept_whole_says_why_it_cannot_be_run_again() {
        let why = |change: fn(&mut RunRecord)| {
            let mut record = kept();
            change(&mut record);
            request(&record).unwrap_err().message
        };
        let body = |record: &mut RunRecord| record.body.clone().unwrap();
        assert_eq!(why(|record| record.body = None), "It can\u{2019}t be run again: its program was not kept.");
        let given_up = why(|record| (record.body, record.row.given_up) = (None, true));
        assert_eq!(given_up, "It can\u{2019}t be run again: its program was given up when the disk was full.");
        for change in [
            |record: &mut RunRecord| record.body.as_mut().unwrap().stdin = None,
            |record: &mut RunRecord| record.body.as_mut().unwrap().files_in[0].bytes = None,
        ] {
            assert_eq!(why(change), "It can\u{2019}t be run again: what came in with it was not kept.");
        }
        let no_text = Body { code: b"\xff".to_vec().into(), ..body(&mut kept()) };
        assert!(request(&RunRecord { body: Some(no_text), ..kept() }).is_err());
    }

    #[test]
    fn a_run_of_an_earlier_version_overflows_as_it_did() {
        let overflow = |produced, status: &str| {
            let mut record = kept();
            record.row.overflow = None;
            record.row.stdout = StreamFigure { produced, returned: 10 };
            record.row.status = status.into();
            request(&record).unwrap().overflow
        };
        assert_eq!(overflow(10, "ok"), Overflow::Kill);
        assert_eq!(overflow(11, "ok"), Overflow::Truncate);
        assert_eq!(overflow(11, "output_limit"), Overflow::Kill);
    }
}
