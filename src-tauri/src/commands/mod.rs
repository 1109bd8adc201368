//! The commands that the window can call. A command parses its arguments, calls the core, and converts the answer. The
//! decisions are made in the core.

mod agents;
pub(crate) mod history;
mod live;
mod overview;
mod settings;

use std::sync::Arc;

use sandtray_core::language::Language;
use sandtray_core::run::RunId;
use sandtray_core::settings::Settings;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::app::App;
use crate::clipboard;
use crate::dto::error::CommandError;
use crate::dto::history::{FileSide, HistoryFilter};
use crate::dto::trouble::Link;
use crate::link::{ChannelId, ToWindow};
use crate::remedy::links;
use crate::views::WatchId;
use crate::window::Page;

pub(crate) type Answer<T> = Result<T, CommandError>;

/// A command as the page writes it: `{"command": "watch_run", "args": {"runId": "...", "channel": "..."}}`. Each is
/// also a permission of the page: see `build.rs` and `capabilities/main.json`.
#[derive(Debug, Deserialize)]
#[serde(tag = "command", content = "args", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[expect(clippy::enum_variant_names, reason = "each is named as its command")]
pub(crate) enum Request {
    Subscribe {
        channel: ChannelId,
    },
    SetEnabled {
        enabled: bool,
    },
    /// The owner has seen that running code was turned on.
    SawTurnedOn {},
    RetryEngine {},
    PullImage {
        language: Language,
    },
    CancelPull {
        language: Language,
    },
    RemoveImage {
        language: Language,
    },
    PinImage {
        language: Language,
        /// `false` returns to the image's tag.
        pinned: bool,
    },
    StopRun {
        run_id: String,
    },
    StopAll {},
    WatchRun {
        run_id: String,
        channel: ChannelId,
    },
    UnwatchRun {
        watch: WatchId,
    },
    LiveRequest {
        run_id: String,
    },
    HistoryPage {
        filter: HistoryFilter,
    },
    HistoryRun {
        run_id: String,
    },
    HistoryRecent {
        since_ms: u64,
        max: usize,
    },
    HistoryPicture {
        run_id: String,
        name: String,
        /// `false` asks for the size only.
        pixels: bool,
        #[serde(default)]
        side: FileSide,
    },
    HistoryDelete {
        run_id: String,
    },
    HistoryClear {},
    HistoryStats {},
    RunAgain {
        run_id: String,
    },
    /// Called by the window for the page: see [`crate::link::ReturnedFile`].
    ReturnedFile {
        run_id: String,
        name: String,
        #[serde(default)]
        side: FileSide,
    },
    /// Called by the window for the page, for all files of a run: see [`crate::link::ReturnedFiles`].
    ReturnedFiles {
        run_id: String,
    },
    Agents {},
    /// Runs hello world in this language; the result is sent on the channel.
    TryIt {
        language: Language,
        channel: ChannelId,
    },
    CopyText {
        text: String,
    },
    /// Opens a page in the owner's browser.
    OpenLink {
        link: Link,
    },
    /// The owner has read the explanation of closing.
    CloseWindow {},
    Quit {},
    Settings {},
    ApplySettings {
        settings: Box<Settings>,
    },
}

pub(crate) async fn answer(app: &Arc<App>, page: &Page, request: &RawValue) -> Answer<Box<RawValue>> {
    let request = serde_json::from_str(request.get()).map_err(|failure| {
        CommandError::new("invalid_params", format!("The window asked for what the app does not know: {failure}."))
    })?;
    match request {
        Request::Subscribe { channel } => written(overview::subscribe(app, page, page.channel(channel)).await?),
        Request::SetEnabled { enabled } => written(overview::set_enabled(app, enabled).await?),
        Request::SawTurnedOn {} => {
            app.desk.saw_turned_on();
            written(())
        }
        Request::RetryEngine {} => {
            overview::retry_engine(app);
            written(())
        }
        Request::PullImage { language } => written(overview::pull_image(app, language).await?),
        Request::CancelPull { language } => written(overview::cancel_pull(app, language).await?),
        Request::RemoveImage { language } => written(overview::remove_image(app, language).await?),
        Request::PinImage { language, pinned } => written(overview::pin_image(app, language, pinned).await?),
        Request::StopRun { run_id } => written(overview::stop_run(app, &run_id).await?),
        Request::StopAll {} => written(overview::stop_all(app).await?),
        Request::WatchRun { run_id, channel } => written(live::watch_run(app, &run_id, page.channel(channel)).await?),
        Request::UnwatchRun { watch } => {
            live::unwatch_run(app, watch);
            written(())
        }
        Request::LiveRequest { run_id } => written(live::live_request(app, &run_id).await?),
        Request::HistoryPage { filter } => written(history::history_page(app, filter).await?),
        Request::HistoryRun { run_id } => written(history::history_run(app, &run_id).await?),
        Request::HistoryRecent { since_ms, max } => written(history::history_recent(app, since_ms, max).await?),
        Request::HistoryPicture { run_id, name, pixels, side } => {
            written(history::history_picture(app, &run_id, side.named(&name), pixels).await?)
        }
        Request::HistoryDelete { run_id } => written(history::history_delete(app, &run_id).await?),
        Request::HistoryClear {} => written(history::history_clear(app).await?),
        Request::HistoryStats {} => written(history::history_stats(app).await?),
        Request::RunAgain { run_id } => written(history::run_again(app, &run_id).await?),
        Request::ReturnedFile { run_id, name, side } => {
            written(history::returned_file(app, &run_id, side.named(&name)).await?)
        }
        Request::ReturnedFiles { run_id } => written(history::returned_files(app, &run_id).await?),
        Request::Agents {} => written(agents::agents(app).await?),
        Request::TryIt { language, channel } => written(agents::try_it(app, language, page.channel(channel)).await?),
        Request::CopyText { text } => written(clipboard::copy(app, text).await?),
        Request::OpenLink { link } => written(links::open(link).await?),
        Request::CloseWindow {} => {
            app.closing.was_told();
            written(page.send(&ToWindow::Close).await?)
        }
        Request::Quit {} => {
            app.desk.quit.cancel();
            written(())
        }
        Request::Settings {} => written(settings::settings(app)?),
        Request::ApplySettings { settings } => written(settings::apply_settings(app, *settings).await?),
    }
}

fn written(answer: impl Serialize) -> Answer<Box<RawValue>> {
    to_raw_value(&answer).map_err(|failure| CommandError::new("internal", failure.to_string()))
}

fn run_id(text: &str) -> Answer<RunId> {
    text.parse().map_err(|_| CommandError::no_such_run())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::link::{OPEN_SAVED, RETURNED_FILE, RETURNED_FILES, SAVE_ALL, SAVE_FILE};

    /// The commands that serde knows, parsed from its error message.
    fn known() -> BTreeSet<String> {
        let refusal = serde_json::from_value::<Request>(json!({ "command": "no such", "args": {} })).unwrap_err();
        let names = refusal.to_string();
        names.split('`').skip(3).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn the_page_may_ask_what_the_app_answers_and_nothing_else() {
        let capability: Value = serde_json::from_str(include_str!("../../capabilities/main.json")).unwrap();
        let permissions = capability["permissions"].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
        let mut allowed: BTreeSet<String> =
            permissions.filter_map(|text| text.strip_prefix("allow-")).map(|name| name.replace('-', "_")).collect();
        // The window handles these itself, and calls the app for the files.
        assert!(allowed.remove(SAVE_FILE) && allowed.insert(RETURNED_FILE.to_owned()));
        assert!(allowed.remove(SAVE_ALL) && allowed.insert(RETURNED_FILES.to_owned()));
        // The window handles this itself: it knows where it saved files.
        assert!(allowed.remove(OPEN_SAVED));
        assert_eq!(known(), allowed);
    }

    #[test]
    fn a_command_is_read_as_the_page_writes_it() {
        let request = |text: &str| serde_json::from_str::<Request>(text);
        let watch = request(r#"{"command":"watch_run","args":{"runId":"r","channel":"__CHANNEL__:7"}}"#).unwrap();
        assert!(matches!(watch, Request::WatchRun { run_id, channel } if run_id == "r" && channel == "__CHANNEL__:7"));
        assert!(matches!(request(r#"{"args":{},"command":"stop_all"}"#).unwrap(), Request::StopAll {}));
        assert!(request(r#"{"command":"set_enabled","args":{}}"#).is_err());
    }
}
