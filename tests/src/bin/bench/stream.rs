//! Live output: from a program's write to the client that reads it.

use sandtray_tests::delay;
use serde_json::Value;

use crate::serving::Serving;
use crate::stats::Sample;

const LINES: usize = 100;

pub(crate) async fn measure() -> Value {
    let serving = Serving::start(|_| ()).await;
    let mut agent = serving.agent().await;
    // The first call brings the image and proves the walls.
    delay::of_lines(&mut agent, 2).await;
    let mut sample = Sample::default();
    delay::of_lines(&mut agent, LINES).await.into_iter().for_each(|delay| sample.add(delay));
    println!("write to client   median {:>5.2} ms   p95 {:>5.2} ms   of {LINES} lines", sample.median(), sample.p95());
    serving.stop().await;
    sample.json()
}
