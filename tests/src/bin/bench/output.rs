//! Output: how fast it comes, what it costs the service, and that its memory stays flat.

use std::time::Instant;

use serde_json::{Value, json};

use crate::serving::Serving;
use crate::stats::round;

pub(crate) async fn measure() -> Value {
    let serving = Serving::start(|_| ()).await;
    let mut agent = serving.agent().await;
    agent.run(json!({ "language": "python", "code": "print(1)" })).await;
    let before = serving.memory().0;
    let mut report = Vec::new();
    for (name, code, bytes) in [
        ("64 KB of stdout", "import sys; sys.stdout.write('x' * 65536)", 65_536u64),
        ("5 MB file out", "open('out/f', 'wb').write(b'x' * 5_000_000)", 5_000_000),
        (
            "250 MiB of stdout, truncated",
            "import os\nb = b'x' * 65536\nfor _ in range(4000): os.write(1, b)",
            250 << 20,
        ),
    ] {
        serving.warm(&mut agent, 1).await;
        let cpu = serving.cpu();
        let begun = Instant::now();
        let result = agent.run(json!({ "language": "python", "code": code, "overflow": "truncate" })).await;
        let took = begun.elapsed();
        assert_eq!(result["status"], "ok", "{name}: {}", result["status"]);
        let (_, peak) = serving.memory();
        let rate = bytes as f64 / 1e6 / took.as_secs_f64();
        let cpu = serving.cpu() - cpu;
        println!(
            "{name:<26} {:>8.1} ms {rate:>8.1} MB/s   CPU of the service {:>6.0} ms   its peak memory {:>5.1} MB ({:.1} before)",
            took.as_secs_f64() * 1000.0,
            cpu.as_secs_f64() * 1000.0,
            peak as f64 / 1024.0,
            before as f64 / 1024.0
        );
        report.push(json!({
            "what": name, "ms": round(took.as_secs_f64() * 1000.0), "mb_per_second": round(rate),
            "service_cpu_ms": round(cpu.as_secs_f64() * 1000.0), "service_peak_kb": peak, "service_before_kb": before,
        }));
    }
    serving.stop().await;
    report.into()
}
