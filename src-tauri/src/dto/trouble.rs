//! An engine's trouble as the window shows it: what is wrong, and the steps that fix it on this system.

use serde::{Deserialize, Serialize};

use super::snapshot::EndpointView;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TroubleView {
    pub trouble: TroubleKind,
    /// What is wrong, in a few words without a full stop: "Docker isn't answering". The tray says the same.
    pub title: String,
    /// The same in sentences. `Backticks` set off what is typed.
    pub text: String,
    /// What mends it, in this order.
    pub steps: Vec<StepView>,
    /// The address that was written down, where that may be what is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub named: Option<NamedView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub endpoint: Option<EndpointView>,
    /// Where an engine was looked for in vain.
    pub looked_at: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum TroubleKind {
    Absent,
    NotRunning,
    PermissionDenied,
    NotAnswering,
    Unusable,
    WallMissing,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct StepView {
    pub text: String,
    /// To be copied as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub copy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub link: Option<LinkView>,
    /// It is done under Settings.
    pub setting: bool,
}

/// A page of the net that the app opens in the owner's browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LinkView {
    pub link: Link,
    /// What the button says.
    pub name: String,
    pub url: String,
}

/// The pages that the app opens. The window names one of these, and never an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Link {
    InstallDocker,
    RootlessDocker,
}

/// Where the engine's address was written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct NamedView {
    pub url: String,
    /// A sentence: who named it, and what to change.
    pub text: String,
}
