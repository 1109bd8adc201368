//! The list of clients, and the example program that the owner can run from the window, on the same path as an agent's.

use std::sync::Arc;
use std::time::Instant;

use sandtray_core::language::Language;
use sandtray_core::policy;
use sandtray_core::protocol::own_name::OWN_NAME;
use sandtray_core::protocol::request::{GivenLimits, RunRequest};
use sandtray_core::run::{Cancel, Client, ClientId, Overflow, RunId};
use sandtray_core::supervisor::Progress;

use super::Answer;
use crate::app::App;
use crate::dto::agents::{self, AgentView, TryEvent};
use crate::dto::error::CommandError;
use crate::window::Channel;

pub(super) async fn agents(app: &App) -> Answer<Vec<AgentView>> {
    let here = app.desk.here()?;
    let figures = here.history.clients().await?;
    Ok(agents::agents(here.visitors.all(), figures))
}

/// Runs hello world. Returns the run's id at once; the result is sent on the channel. Closing the window ends the run.
pub(super) async fn try_it(app: &Arc<App>, language: Language, channel: Channel) -> Answer<String> {
    let here = app.desk.here()?;
    let spec = policy::spec(hello(language), &here.owner.settings().limits(), RunId::generate())?;
    let Some((_, over)) = app.desk.views.watch() else {
        return Err(CommandError::new("too_many", "The window watches too many runs at once."));
    };
    let id = spec.id;
    app.spawn(async move {
        let begun = Instant::now();
        let cancel = Cancel::default();
        let run = async { here.supervisor.submit(spec, owner(), Progress::default(), &cancel).await?.wait().await };
        let event = tokio::select! {
            ended = run => Some(match ended {
                Ok(outcome) => TryEvent::ran(id, &outcome, begun.elapsed()),
                Err(error) => TryEvent::Refused { error: error.into() },
            }),
            () = over.cancelled() => None,
        };
        if let Some(event) = event {
            // The window may be closed; the run is in the history anyway.
            let _ = channel.send(&event).await;
        }
        over.cancel();
        channel.end().await;
    });
    Ok(id.to_string())
}

/// The client of the window's own runs.
pub(super) fn owner() -> Client {
    Client { id: ClientId::next_of_owner(), name: OWN_NAME.into(), pid: Some(std::process::id()), program: None }
}

fn hello(language: Language) -> RunRequest {
    let code = match language {
        Language::Python => "print(\"Hello, world\")\n",
        Language::Javascript => "console.log(\"Hello, world\");\n",
        Language::Shell => "echo 'Hello, world'\n",
        Language::Go => "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"Hello, world\")\n}\n",
        Language::Rust => "fn main() {\n    println!(\"Hello, world\");\n}\n",
    };
    RunRequest {
        language,
        code: code.into(),
        args: Vec::new(),
        files: Vec::new(),
        stdin: Default::default(),
        limits: GivenLimits::default(),
        overflow: Overflow::Kill,
        stream: false,
        label: Some("Hello, world".into()),
    }
}
