//! What the suites share.

pub mod contract;
