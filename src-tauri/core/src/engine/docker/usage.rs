//! A container's use of memory and CPU, from Docker's statistics. Pure.

use std::time::Duration;

use bollard::models::{ContainerStatsResponse, ContainerTopResponse};

use super::super::Usage;

/// Cache that the kernel may reclaim: the key of cgroup 2 first, then that of cgroup 1.
const RECLAIMABLE: [&str; 2] = ["inactive_file", "total_inactive_file"];

/// The columns of `ps`, for an engine without statistics. Some set-ups of control groups leave it without.
pub(super) const COLUMNS: &str = "-o pid,rss,cputimes";

/// `None` if the engine has no statistics; all of them are zero then.
pub(super) fn of(figures: ContainerStatsResponse) -> Option<Usage> {
    let memory = figures.memory_stats.unwrap_or_default();
    let details = memory.stats.unwrap_or_default();
    let cache = RECLAIMABLE.iter().find_map(|name| details.get(*name)).copied().unwrap_or(0);
    let nanos = figures.cpu_stats.and_then(|cpu| cpu.cpu_usage).and_then(|usage| usage.total_usage).unwrap_or(0);
    let used = memory.usage.unwrap_or(0);
    (used > 0).then(|| Usage { memory_bytes: used.saturating_sub(cache), cpu: Duration::from_nanos(nanos) })
}

/// Sums kibibytes and whole seconds over the processes. Shared memory is counted once for each process.
pub(super) fn of_table(table: &ContainerTopResponse) -> Usage {
    let titles = table.titles.as_deref().unwrap_or_default();
    let sum = |title: &str| -> u64 {
        let Some(column) = titles.iter().position(|found| found == title) else { return 0 };
        let rows = table.processes.iter().flatten();
        rows.filter_map(|row| row.get(column)?.trim().parse::<u64>().ok()).fold(0, u64::saturating_add)
    };
    Usage { memory_bytes: sum("RSS").saturating_mul(1024), cpu: Duration::from_secs(sum("TIME")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Option<Usage> {
        of(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn cache_that_can_be_taken_back_does_not_count_as_used() {
        let cpu = r#""cpu_stats": {"cpu_usage": {"total_usage": 1500000000}}"#;
        for cache in ["inactive_file", "total_inactive_file"] {
            let figures = read(&format!(r#"{{"memory_stats": {{"usage": 100, "stats": {{"{cache}": 30}}}}, {cpu}}}"#));
            assert_eq!(figures, Some(Usage { memory_bytes: 70, cpu: Duration::from_millis(1500) }));
        }
    }

    #[test]
    fn an_engine_without_figures_says_nothing() {
        assert_eq!(read("{}"), None);
        assert_eq!(read(r#"{"memory_stats": {}, "cpu_stats": {"cpu_usage": {"total_usage": 0}}}"#), None);
    }

    #[test]
    fn a_table_of_processes_is_summed_up() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let table = ContainerTopResponse {
            titles: Some(row(["PID", "RSS", "TIME"])),
            processes: Some(vec![row(["1", "1000", "0"]), row(["7", " 24", "3"]), row(["8", "-", "?"])]),
        };
        assert_eq!(of_table(&table), Usage { memory_bytes: 1024 << 10, cpu: Duration::from_secs(3) });
        let nothing = Usage { memory_bytes: 0, cpu: Duration::ZERO };
        assert_eq!(of_table(&ContainerTopResponse::default()), nothing);
    }
}
