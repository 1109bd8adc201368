//! What the window may ask of the app: all of it. A command takes its arguments apart, asks, and puts the answer into the
//! window's words; what there is to decide is decided in the core.

pub(crate) mod history;
pub(crate) mod live;
pub(crate) mod overview;
pub(crate) mod settings;

use sandtray_core::run::RunId;

use crate::dto::error::CommandError;

pub(crate) type Answer<T> = Result<T, CommandError>;

fn run_id(text: &str) -> Answer<RunId> {
    text.parse().map_err(|_| CommandError::no_such_run())
}
