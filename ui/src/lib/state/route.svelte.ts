// Which page is shown, and which run on it.

import type { Navigate, Page } from '../ipc/types';

class Route {
  page = $state<Page>('overview');
  runId = $state<string | null>(null);
  /** The setting that is to have the focus once it is there. */
  field = $state<string | null>(null);

  toSetting(field: string): void {
    this.page = 'settings';
    this.field = field;
  }

  to(page: Page): void {
    this.page = page;
  }

  openRun(runId: string): void {
    this.page = 'runs';
    this.runId = runId;
  }

  closeRun(): void {
    this.runId = null;
  }

  follow({ page, run_id }: Navigate): void {
    if (run_id) this.openRun(run_id);
    else this.to(page);
  }
}

export const route = new Route();
