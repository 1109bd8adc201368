//! One of the program's streams on its two ways: into the bounded capture, and to whoever watches it live.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::collector::{CharacterGate, Collector};
use crate::run::{Captured, Limits, OutputChunk, Overflow, Stream};
use crate::tap::Tap;

/// The last piece may wait this long for a slow watcher, since it carries the count of what was missed.
const LAST_PIECE_LIMIT: Duration = Duration::from_millis(500);

pub(super) struct Output {
    stream: Stream,
    collector: Collector,
    live: Option<Live>,
    tap: Tap,
}

struct Live {
    watcher: mpsc::Sender<OutputChunk>,
    gate: CharacterGate,
    missed: u64,
}

impl Output {
    pub(super) fn new(
        stream: Stream,
        limits: &Limits,
        overflow: Overflow,
        watcher: Option<mpsc::Sender<OutputChunk>>,
        tap: Tap,
    ) -> Self {
        let live = watcher.map(|watcher| Live { watcher, gate: CharacterGate::default(), missed: 0 });
        Self { stream, collector: Collector::new(limits.output_bytes, overflow), live, tap }
    }

    pub(super) fn push(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        self.collector.push(&bytes);
        self.tap.push(self.stream, &bytes);
        if let Some(live) = &mut self.live {
            let whole = live.gate.push(bytes);
            live.send(self.stream, whole);
        }
    }

    pub(super) fn is_fatal(&self) -> bool {
        self.collector.is_fatal()
    }

    pub(super) async fn finish(self) -> Captured {
        if let Some(live) = self.live {
            let last = OutputChunk { stream: self.stream, bytes: live.gate.finish(), missed: live.missed };
            if !last.bytes.is_empty() || last.missed > 0 {
                // A watcher that is gone or stuck has the whole result coming all the same.
                let _ = live.watcher.send_timeout(last, LAST_PIECE_LIMIT).await;
            }
        }
        self.collector.finish()
    }
}

impl Live {
    /// Never waits: a slow watcher must not hold up reading, for a container that is not read cannot be killed.
    fn send(&mut self, stream: Stream, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        let length = bytes.len() as u64;
        match self.watcher.try_send(OutputChunk { stream, bytes, missed: self.missed }) {
            Ok(()) => self.missed = 0,
            Err(TrySendError::Full(_)) => self.missed += length,
            Err(TrySendError::Closed(_)) => {}
        }
    }
}
