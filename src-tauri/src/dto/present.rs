//! Converts the core's types to the window's. Pure.

use sandtray_core::engine::{self, EngineState};
use sandtray_core::event;
use sandtray_core::history;
use sandtray_core::run::Limits;
use sandtray_core::settings::is_pinned;
use sandtray_core::time::to_millis;

use super::history::{RunLimits, RunRow};
use super::snapshot::{
    EndpointView, EngineFacts, EngineView, HistoryTroubleView, ImageStateView, ImageView, LiveRunView,
};
use crate::remedy::{self, system::System};

pub fn engine(state: &EngineState) -> EngineView {
    match state {
        EngineState::Checking => EngineView::Checking,
        EngineState::Ready(info) => EngineView::Ready(EngineFacts {
            name: info.name.clone(),
            version: info.version.clone(),
            api_version: info.api_version.clone(),
            endpoint: endpoint(&info.endpoint),
            os: info.os.clone(),
            arch: info.arch.clone(),
            cpus: info.cpus,
            memory_bytes: info.memory_bytes,
        }),
        EngineState::Trouble(trouble) => EngineView::Trouble(remedy::view(trouble, System::here())),
    }
}

/// The warning about an engine in use, if there is one.
pub fn warning(state: &EngineState) -> Option<String> {
    match state {
        EngineState::Ready(info) => info.endpoint.warning(),
        EngineState::Checking | EngineState::Trouble(_) => None,
    }
}

fn endpoint(endpoint: &engine::Endpoint) -> EndpointView {
    EndpointView { url: endpoint.url.clone(), found: endpoint.found.clone() }
}

/// `bytes_per_second` is the speed of a pull.
pub fn image(status: &event::ImageStatus, bytes_per_second: f64) -> ImageView {
    let recipe = status.language.recipe();
    let state = match &status.state {
        event::ImageState::Unknown => ImageStateView::Unknown,
        event::ImageState::NotPulled => ImageStateView::NotPulled,
        event::ImageState::Pulling(figure) if figure.preparing => ImageStateView::Preparing,
        event::ImageState::Pulling(figure) => ImageStateView::Pulling {
            fraction: figure.fraction,
            downloaded_bytes: figure.downloaded_bytes,
            total_bytes: figure.total_bytes,
            bytes_per_second,
        },
        event::ImageState::Unprepared(info) => {
            ImageStateView::Unprepared { size_bytes: info.size_bytes, digest: info.digest.clone() }
        }
        event::ImageState::Ready(info) => {
            ImageStateView::Ready { size_bytes: info.size_bytes, digest: info.digest.clone() }
        }
        event::ImageState::Failed { error } => {
            ImageStateView::Failed { message: error.sentence(), hint: error.hint().into() }
        }
    };
    ImageView {
        language: status.language,
        title: recipe.title.into(),
        language_version: recipe.version.into(),
        image: status.image.clone(),
        pinned: is_pinned(&status.image),
        fetched: false,
        // The image is here, but cannot be used.
        state: status.wall_missing.as_deref().map_or(state, walled_off),
    }
}

fn walled_off(wall: &str) -> ImageStateView {
    ImageStateView::Failed {
        message: format!("Nothing runs in this image: a wall that keeps programs in is missing: {wall}."),
        hint: "Choose another image in the settings, or update the engine; then try again.".into(),
    }
}

/// The trouble, while runs cannot be recorded or not in full.
pub fn history_trouble(trouble: &history::Trouble) -> HistoryTroubleView {
    let what = if trouble.records { "old output is given up" } else { "runs aren\u{2019}t recorded" };
    let short = match &trouble.why {
        history::Why::DiskFull => format!("Disk full: {what}"),
        history::Why::NotUsable { .. } => "The history can\u{2019}t be written".into(),
    };
    HistoryTroubleView {
        short,
        message: trouble.to_string(),
        hint: trouble.why.hint().into(),
        records: trouble.records,
    }
}

pub fn live(run: &event::LiveRun) -> LiveRunView {
    LiveRunView {
        run_id: run.run_id.to_string(),
        language: run.language,
        client: run.client.clone(),
        program: run.program.clone(),
        label: run.label.clone(),
        title: run.title.clone(),
        started_ms: to_millis(run.since),
        limit_seconds: run.limit_seconds,
        waiting: run.waiting,
    }
}

pub fn row(row: history::RunRow) -> RunRow {
    let seconds = |time: Option<std::time::Duration>| time.map(|time| time.as_secs_f64());
    let (error, cut_off) = if row.happened() { (None, row.error) } else { (row.error, None) };
    RunRow {
        run_id: row.run_id.to_string(),
        at_ms: to_millis(row.queued_at),
        client: row.client,
        client_pid: row.client_pid,
        client_program: row.client_program,
        language: row.language,
        label: row.label,
        title: row.title,
        status: row.status,
        ended_by: row.ended_by,
        error,
        cut_off,
        exit_code: row.exit_code,
        seconds: seconds(row.wall),
        queued_seconds: seconds(row.queued),
        memory_bytes: row.memory_bytes,
        cpu_seconds: seconds(row.cpu),
        oom_kills: row.oom_kills,
        code_bytes: row.code_bytes,
        code_sha256: row.code_sha256,
        stdin_bytes: row.stdin_bytes,
        stdout: row.stdout,
        stderr: row.stderr,
        files_in: row.files_in,
        files_out: row.files_out,
        skipped_files: row.skipped_files,
        image: row.image,
        limits: limits(&row.limits),
        given_up: row.given_up,
    }
}

pub(super) fn limits(limits: &Limits) -> RunLimits {
    RunLimits {
        seconds: limits.wall().as_secs_f64(),
        memory_bytes: limits.memory_bytes,
        cpus: f64::from(limits.milli_cpus) / 1000.0,
        processes: limits.processes,
        output_bytes: limits.output_bytes,
        file_bytes: limits.file_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandtray_core::engine::{ImageInfo, PullError};
    use sandtray_core::error::RunError;
    use sandtray_core::language::Language;
    use sandtray_core::run::{Captured, Client, ClientId, CutBy, Interrupted, RunId};
    use sandtray_core::settings::Keep;

    fn shown(state: event::ImageState) -> ImageStateView {
        image_view(&status(state)).state
    }

    fn status(state: event::ImageState) -> event::ImageStatus {
        let (language, image) = (Language::Python, "python".into());
        event::ImageStatus { language, image, state, wall_missing: None, launcher: None }
    }

    fn image_view(status: &event::ImageStatus) -> ImageView {
        image(status, 0.0)
    }

    #[test]
    fn an_image_with_a_missing_wall_cannot_be_used_though_it_is_here() {
        let info = ImageInfo { id: "1".into(), digest: None, size_bytes: 5 };
        let wall_missing = Some("a device of the machine's can be reached".into());
        let missing = event::ImageStatus { wall_missing, ..status(event::ImageState::Ready(info)) };
        let ImageStateView::Failed { message, .. } = image_view(&missing).state else { panic!("it is of no use") };
        assert!(message.ends_with("is missing: a device of the machine's can be reached."), "{message}");
    }

    #[test]
    fn an_image_that_is_here_says_which_version_it_is() {
        let digest = Some("sha256:0123".to_owned());
        let info = ImageInfo { id: "sha256:1".into(), digest: digest.clone(), size_bytes: 5 };
        let expected = ImageStateView::Ready { size_bytes: 5, digest: digest.clone() };
        assert_eq!(shown(event::ImageState::Ready(info.clone())), expected);
        let expected = ImageStateView::Unprepared { size_bytes: 5, digest };
        assert_eq!(shown(event::ImageState::Unprepared(info)), expected);
        let pinned = |image: &str| {
            let state = event::ImageState::NotPulled;
            image_view(&event::ImageStatus { image: image.into(), ..status(state) }).pinned
        };
        assert_eq!((pinned("python:3.12-slim"), pinned("python:3.12-slim@sha256:0123")), (false, true));
    }

    #[test]
    fn an_engine_of_another_computer_is_warned_of() {
        let ready = |url: &str| {
            EngineState::Ready(engine::EngineInfo {
                name: "Docker".into(),
                version: "27.0".into(),
                api_version: "1.46".into(),
                endpoint: engine::Endpoint { url: url.into(), found: "Sandtray's settings".into() },
                os: "linux".into(),
                arch: "x86_64".into(),
                cpus: 2,
                memory_bytes: 1,
                fingerprint: String::new(),
            })
        };
        assert_eq!(warning(&ready("tcp://127.0.0.1:2375")), None);
        assert!(warning(&ready("tcp://10.0.0.1:2375")).unwrap().contains("unencrypted"));
        assert_eq!(warning(&EngineState::Checking), None);
    }

    #[test]
    fn a_run_that_was_cut_off_happened_and_one_that_was_refused_did_not() {
        let request = sandtray_core::protocol::request::RunRequest {
            language: Language::Shell,
            code: "echo".into(),
            args: Vec::new(),
            files: Vec::new(),
            stdin: Default::default(),
            limits: Default::default(),
            overflow: Default::default(),
            stream: false,
            label: None,
        };
        let owner = sandtray_core::settings::Settings::default().limits();
        let spec = sandtray_core::policy::spec(request, &owner, RunId::generate()).unwrap();
        let client = Client { id: ClientId(1), name: "agent".into(), pid: None, program: None };
        let shown = |error: RunError| {
            let now = std::time::SystemTime::now();
            row(history::RunRecord::of(&spec, &client, now, Err(&error), Keep::Metrics).row)
        };
        let cut = shown(RunError::Interrupted(Box::new(Interrupted {
            run: spec.id,
            by: CutBy::Engine,
            engine: "Docker",
            wall: std::time::Duration::from_millis(3700),
            queued: std::time::Duration::ZERO,
            stdout: Captured::default(),
            stderr: Captured::default(),
            memory_bytes: None,
            cpu: None,
            image: String::new(),
            limits: spec.limits,
            recorded: true,
        })));
        assert_eq!((cut.status.as_str(), cut.ended_by.as_deref(), cut.error), ("interrupted", Some("engine"), None));
        assert_eq!(cut.cut_off.as_deref(), Some("Cut off after 3.7 s: Docker went away."));
        let refused = shown(RunError::ShuttingDown);
        assert_eq!((refused.error.as_deref(), refused.cut_off), (Some("Sandtray is shutting down."), None));
    }

    #[test]
    fn preparing_is_told_from_pulling() {
        let figure = event::PullFigure { fraction: 0.5, downloaded_bytes: 1, total_bytes: 2, preparing: false };
        assert!(matches!(shown(event::ImageState::Pulling(figure)), ImageStateView::Pulling { .. }));
        assert_eq!(shown(event::ImageState::Pulling(event::PullFigure::PREPARING)), ImageStateView::Preparing);
    }

    #[test]
    fn a_failed_pull_says_why_in_a_sentence_of_its_own() {
        let ImageStateView::Failed { message, hint } = shown(event::ImageState::Failed { error: PullError::DiskFull })
        else {
            panic!("it failed");
        };
        assert_eq!(message, "The disk is full.");
        assert!(hint.starts_with("Free some disk space"));
    }
}
