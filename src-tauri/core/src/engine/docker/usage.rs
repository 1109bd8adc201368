//! What a container uses, out of Docker's many figures. Pure.

use std::time::Duration;

use bollard::models::ContainerStatsResponse;

use super::super::Usage;

/// Cache that the kernel may take back: cgroup 2 first, then cgroup 1.
const RECLAIMABLE: [&str; 2] = ["inactive_file", "total_inactive_file"];

/// A container that has ended has no figures: all zero.
pub(super) fn of(figures: ContainerStatsResponse) -> Usage {
    let memory = figures.memory_stats.unwrap_or_default();
    let details = memory.stats.unwrap_or_default();
    let cache = RECLAIMABLE.iter().find_map(|name| details.get(*name)).copied().unwrap_or(0);
    let nanos = figures.cpu_stats.and_then(|cpu| cpu.cpu_usage).and_then(|usage| usage.total_usage).unwrap_or(0);
    Usage { memory_bytes: memory.usage.unwrap_or(0).saturating_sub(cache), cpu: Duration::from_nanos(nanos) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Usage {
        of(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn cache_that_can_be_taken_back_does_not_count_as_used() {
        let cpu = r#""cpu_stats": {"cpu_usage": {"total_usage": 1500000000}}"#;
        for cache in ["inactive_file", "total_inactive_file"] {
            let figures = read(&format!(r#"{{"memory_stats": {{"usage": 100, "stats": {{"{cache}": 30}}}}, {cpu}}}"#));
            assert_eq!(figures, Usage { memory_bytes: 70, cpu: Duration::from_millis(1500) });
        }
    }

    #[test]
    fn a_container_that_has_ended_uses_nothing() {
        let nothing = Usage { memory_bytes: 0, cpu: Duration::ZERO };
        assert_eq!(read("{}"), nothing);
        assert_eq!(read(r#"{"memory_stats": {}, "cpu_stats": {"cpu_usage": {"total_usage": 0}}}"#), nothing);
    }
}
