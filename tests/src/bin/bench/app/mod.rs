//! The desktop app as it is shipped: what it costs while it waits in the tray, how soon its window is there, and how it
//! bears a long history. On a screen, a bus and a home of its own, beside whatever the machine's owner uses.

pub(crate) mod idle;
pub(crate) mod opening;
mod processes;
pub(crate) mod runs;

use sandtray_tests::desktop::Desktop;
use serde_json::{Value, json};

/// A machine without a screen costs the sections that need one and no other.
async fn desktop() -> Result<Desktop, Value> {
    Desktop::try_start().await.map_err(not_measured)
}

fn not_measured(why: impl Into<String>) -> Value {
    let why = why.into();
    println!("Not measured. {why}");
    json!({ "not_measured": why })
}
