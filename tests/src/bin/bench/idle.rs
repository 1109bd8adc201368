//! What it costs to have it there: memory and CPU of the service while nothing happens.

use std::time::Duration;

use serde_json::{Value, json};

use crate::serving::{Serving, print_call};
use crate::stats::round;

const WHILE: Duration = Duration::from_secs(60);

pub(crate) async fn measure() -> Value {
    let mut report = Vec::new();
    for warm in [false, true] {
        let serving = Serving::start(|settings| settings.warm = if warm { 4 } else { 0 }).await;
        let mut agent = serving.agent().await;
        for _ in 0..4 {
            agent.run(print_call("shell")).await;
        }
        if warm {
            serving.warm(&mut agent, 4).await;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        let cpu = serving.cpu();
        tokio::time::sleep(WHILE).await;
        let cpu = (serving.cpu() - cpu).as_secs_f64() * 1000.0;
        let memory = serving.proportional() as f64 / 1024.0;
        let name = if warm { "4 warm containers" } else { "nothing warm" };
        println!("{name:<18} {memory:>6.1} MB (proportional set size)   {cpu:>5.0} ms of CPU in {} s", WHILE.as_secs());
        report.push(json!({ "what": name, "pss_mb": round(memory), "cpu_ms": cpu, "seconds": WHILE.as_secs() }));
        serving.stop().await;
    }
    report.into()
}
