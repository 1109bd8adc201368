// Who came in. Read anew after each coming, going and run.

import { asError, listAgents } from '../ipc/client';
import type { AgentView, CommandError } from '../ipc/types';

/** Between two readings, however much happens. */
const PAUSE_MS = 1000;

class Agents {
  list = $state.raw<AgentView[] | null>(null);
  failure = $state.raw<CommandError | null>(null);
  private wanted = 0;
  private reading: Promise<void> | null = null;

  /** At once, or after the pause: once for all that came meanwhile. */
  read(): Promise<void> {
    this.wanted += 1;
    this.reading ??= this.readOn();
    return this.reading;
  }

  private async readOn(): Promise<void> {
    for (let asked = 0; asked !== this.wanted; ) {
      asked = this.wanted;
      try {
        this.list = await listAgents();
        this.failure = null;
      } catch (error) {
        this.failure = asError(error);
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    this.reading = null;
  }
}

export const agents = new Agents();
