//! The parsers of foreign input, on random inputs: valid ones that were damaged, and noise. Nothing panics, kept bytes
//! stay within their bound, and each parser's own properties hold.
//!
//! `SANDTRAY_FUZZ` says how many inputs each parser gets. A failure prints the seed of its input; `SANDTRAY_FUZZ_SEED` runs that one.

mod frames;
mod input;
mod requests;
mod stream;
mod tar;

use std::sync::Mutex;
use std::time::Instant;

use fastrand::Rng;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Memory is counted for the whole process, so only one parser reads at a time.
static TURN: Mutex<()> = Mutex::new(());

/// One or two seconds for each parser in a debug build.
const INPUTS: u64 = 2_000;

/// Calls `check` with one seeded source after another.
fn each(parser: &str, check: impl Fn(&mut Rng)) {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a whole number"));
    let seeds = match number("SANDTRAY_FUZZ_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SANDTRAY_FUZZ").unwrap_or(INPUTS),
    };
    let (start, count) = (Instant::now(), seeds.end - seeds.start);
    for seed in seeds {
        let _told = Told { parser, seed };
        check(&mut Rng::with_seed(seed));
    }
    println!("{parser}: {count} inputs in {:.1} s", start.elapsed().as_secs_f64());
}

struct Told<'a> {
    parser: &'a str,
    seed: u64,
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: this input has the seed {}; SANDTRAY_FUZZ_SEED={1} runs it alone", self.parser, self.seed);
        }
    }
}

/// Runs `read` and checks that it never used more than `most` bytes of memory beyond those in use before.
fn within<T>(most: usize, read: impl FnOnce() -> T) -> T {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let result = read();
    let used = MEMORY.peak_usage().saturating_sub(before);
    assert!(used <= most, "{used} bytes were in use, at most {most} may be");
    result
}
