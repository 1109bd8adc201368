// The runs of the last day, for the picture on the overview.

import { asError, historyRecent, historyStats } from '../ipc/client';
import type { CommandError, RecentRun, RunRow } from '../ipc/types';

export const DAY_MS = 24 * 3600 * 1000;
const MOST = 2000;

class Activity {
  runs = $state.raw<RecentRun[]>([]);
  /** Of the whole history; null until it was read. */
  total = $state<number | null>(null);
  failure = $state.raw<CommandError | null>(null);

  async read(now: number): Promise<void> {
    try {
      const [runs, stats] = await Promise.all([historyRecent(now - DAY_MS, MOST), historyStats()]);
      this.runs = runs;
      this.total = stats.runs;
      this.failure = null;
    } catch (error) {
      this.failure = asError(error);
    }
  }

  add(run: RunRow): void {
    const { run_id, at_ms, seconds, status, language } = run;
    this.runs = [...this.runs, { run_id, at_ms: at_ms, seconds, status, language }].slice(-MOST);
    if (this.total !== null) this.total += 1;
  }
}

export const activity = new Activity();
