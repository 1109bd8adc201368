// Hello world, run from the window. Outlives the page: a program that waits for its image is still there when one comes back.

import { asError, tryIt } from '../ipc/client';
import type { CommandError, Language, TryEvent } from '../ipc/types';

class Trial {
  language = $state<Language>('python');
  /** Of the program that is under way. */
  runId = $state<string | null>(null);
  busy = $state(false);
  result = $state.raw<Extract<TryEvent, { kind: 'ran' }> | null>(null);
  failure = $state.raw<CommandError | null>(null);

  async start(language: Language): Promise<void> {
    if (this.busy) return;
    this.language = language;
    this.busy = true;
    this.result = null;
    this.failure = null;
    try {
      let over = false;
      const id = await tryIt(language, (event) => {
        over = true;
        this.end(event);
      });
      // What came of it may arrive before its id.
      if (!over) this.runId = id;
    } catch (error) {
      this.end({ kind: 'refused', error: asError(error) });
    }
  }

  private end(event: TryEvent): void {
    this.busy = false;
    this.runId = null;
    if (event.kind === 'ran') this.result = event;
    else this.failure = event.error;
  }
}

export const trial = new Trial();
