//! Streams one live run to the window: its output, and its memory and CPU.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant, SystemTime};

use sandtray_core::collector::CharacterGate;
use sandtray_core::engine::Usage;
use sandtray_core::run::{OutputChunk, Stream};
use sandtray_core::tap::Onlooker;
use sandtray_core::time::to_millis;
use tokio_util::sync::CancellationToken;

use super::{Answer, run_id};
use crate::app::App;
use crate::dto::detail;
use crate::dto::error::CommandError;
use crate::dto::live::{LiveEvent, LiveRequest};
use crate::picture::COALESCE;
use crate::views::WatchId;
use crate::window::Channel;

const SAMPLE_EVERY: Duration = Duration::from_millis(500);
/// Samples over which CPU is averaged, because some engines count in whole seconds.
const SMOOTH: usize = 4;

/// Sends the buffered output of a run and then the new output, until the run or the window ends or the watch is
/// cancelled by its id.
pub(super) async fn watch_run(app: &App, run: &str, channel: Channel) -> Answer<WatchId> {
    let onlooker = app.desk.here()?.supervisor.look(run_id(run)?).await.ok_or_else(CommandError::no_such_run)?;
    let Some((id, watch)) = app.desk.views.watch() else {
        return Err(CommandError::new("too_many", "The window watches too many runs at once."));
    };
    app.spawn(async move {
        let over = watch.clone();
        tokio::select! {
            // Ends with the run, or when the window stops listening.
            _ = futures_util::future::try_join(
                output(onlooker.clone(), &channel, &over),
                samples(onlooker, &channel, &over),
            ) => {}
            () = watch.cancelled() => {}
        }
        channel.end().await;
    });
    Ok(id)
}

/// The program and inputs of a run that is not over, from memory.
pub(super) async fn live_request(app: &App, run: &str) -> Answer<LiveRequest> {
    let request = app.desk.here()?.supervisor.request(run_id(run)?).await;
    request.map(detail::request).ok_or_else(CommandError::no_such_run)
}

pub(super) fn unwatch_run(app: &App, watch: WatchId) {
    app.desk.views.unwatch(watch);
}

async fn output(mut onlooker: Onlooker, channel: &Channel, over: &CancellationToken) -> io::Result<()> {
    let mut texts = Texts::default();
    while onlooker.changed().await {
        for chunk in onlooker.take() {
            if let Some(event) = texts.push(chunk) {
                channel.send(&event).await?;
            }
        }
        tokio::time::sleep(COALESCE).await;
    }
    for event in onlooker.take().into_iter().filter_map(|chunk| texts.push(chunk)).collect::<Vec<_>>() {
        channel.send(&event).await?;
    }
    for event in texts.finish() {
        channel.send(&event).await?;
    }
    channel.send(&LiveEvent::Ended).await?;
    over.cancel();
    Ok(())
}

/// Decodes the chunks of both streams. An incomplete character waits for its remaining bytes.
#[derive(Default)]
struct Texts {
    stdout: CharacterGate,
    stderr: CharacterGate,
}

impl Texts {
    fn push(&mut self, chunk: OutputChunk) -> Option<LiveEvent> {
        let OutputChunk { stream, bytes, missed } = chunk;
        let gate = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let whole = gate.push(bytes);
        let text = String::from_utf8_lossy(&whole).into_owned();
        (!text.is_empty() || missed > 0).then_some(LiveEvent::Output { stream, text, missed })
    }

    fn finish(self) -> impl Iterator<Item = LiveEvent> {
        let last = |stream, gate: CharacterGate| {
            let text = String::from_utf8_lossy(&gate.finish()).into_owned();
            LiveEvent::Output { stream, text, missed: 0 }
        };
        [last(Stream::Stdout, self.stdout), last(Stream::Stderr, self.stderr)]
            .into_iter()
            .filter(|event| !matches!(event, LiveEvent::Output { text, .. } if text.is_empty()))
    }
}

async fn samples(onlooker: Onlooker, channel: &Channel, over: &CancellationToken) -> io::Result<()> {
    let mut earlier: VecDeque<(Instant, Usage)> = VecDeque::with_capacity(SMOOTH);
    loop {
        // There is no meter before the run has a container, and none after the container is gone.
        if let Some(meter) = onlooker.meter()
            && let Ok(usage) = meter.read().await
            && !over.is_cancelled()
        {
            let now = Instant::now();
            let cpu = earlier.front().map_or(0.0, |(then, before)| share(*before, usage, now.duration_since(*then)));
            if earlier.len() == SMOOTH {
                earlier.pop_front();
            }
            earlier.push_back((now, usage));
            let at_ms = to_millis(SystemTime::now());
            // All figures are zero once the container has ended.
            if usage.memory_bytes > 0 {
                channel.send(&LiveEvent::Sample { at_ms, memory_bytes: usage.memory_bytes, cpu }).await?;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(SAMPLE_EVERY) => {}
            () = over.cancelled() => return Ok(()),
        }
    }
}

fn share(earlier: Usage, now: Usage, elapsed: Duration) -> f64 {
    let elapsed = elapsed.as_secs_f64();
    if elapsed > 0.0 { now.cpu.saturating_sub(earlier.cpu).as_secs_f64() / elapsed } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(bytes: &[u8], missed: u64) -> OutputChunk {
        OutputChunk { stream: Stream::Stdout, bytes: bytes.to_vec().into(), missed }
    }

    fn text(text: &str, missed: u64) -> LiveEvent {
        LiveEvent::Output { stream: Stream::Stdout, text: text.into(), missed }
    }

    #[test]
    fn no_character_is_shown_in_two_halves() {
        let mut texts = Texts::default();
        assert_eq!(texts.push(chunk(b"a\xe2\x82", 0)), Some(text("a", 0)));
        assert_eq!(texts.push(chunk(b"\xac", 0)), Some(text("\u{20ac}", 0)));
        assert_eq!(texts.push(chunk(b"\xe2", 0)), None);
        assert_eq!(texts.finish().collect::<Vec<_>>(), [text("\u{fffd}", 0)]);
    }

    #[test]
    fn the_share_of_a_cpu_is_time_over_time() {
        let usage = |millis| Usage { memory_bytes: 1, cpu: Duration::from_millis(millis) };
        assert_eq!(share(usage(100), usage(350), Duration::from_millis(500)), 0.5);
        assert_eq!(share(usage(100), usage(50), Duration::from_millis(500)), 0.0);
        assert_eq!(share(usage(0), usage(50), Duration::ZERO), 0.0);
    }
}
