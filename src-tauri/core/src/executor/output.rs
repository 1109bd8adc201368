//! One of the program's streams: into the bounded capture, the live output buffer, and the caller's channel.

use bytes::Bytes;
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::collector::{CharacterGate, Collector};
use crate::run::{Captured, Limits, Missed, OutputChunk, Overflow, Stream};
use crate::tap::Tap;

pub(super) struct Output {
    stream: Stream,
    collector: Collector,
    live: Option<Live>,
    tap: Tap,
}

struct Live {
    watcher: mpsc::Sender<OutputChunk>,
    gate: CharacterGate,
    missed: Missed,
}

impl Output {
    pub(super) fn new(
        stream: Stream,
        limits: &Limits,
        overflow: Overflow,
        watcher: Option<mpsc::Sender<OutputChunk>>,
        missed: Missed,
        tap: Tap,
    ) -> Self {
        let live = watcher.map(|watcher| Live { watcher, gate: CharacterGate::default(), missed });
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

    pub(super) fn finish(self) -> Captured {
        if let Some(mut live) = self.live {
            let last = std::mem::take(&mut live.gate).finish();
            live.send(self.stream, last);
        }
        self.collector.finish()
    }
}

impl Live {
    /// Never waits: a slow receiver must not hold up reading, because an engine cannot kill a container that is not
    /// read.
    fn send(&mut self, stream: Stream, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        let length = bytes.len() as u64;
        let missed = self.missed.take(stream);
        match self.watcher.try_send(OutputChunk { stream, bytes, missed }) {
            Ok(()) | Err(TrySendError::Closed(_)) => {}
            Err(TrySendError::Full(_)) => self.missed.add(stream, missed + length),
        }
    }
}
