//! (being written)
use std::sync::Arc;
use super::{Engine, EngineState};
#[derive(Debug, Clone)]
pub struct Connection { pub state: EngineState, pub engine: Option<Arc<dyn Engine>> }
