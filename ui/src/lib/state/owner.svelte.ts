// What the app says of itself: the newest snapshot, and what happened since.

import { asError, subscribe, type Stop } from '../ipc/client';
import type { CommandError, OwnerSnapshot, RunRow, WindowEvent } from '../ipc/types';

const MOST_NOTICES = 5;

class Owner {
  snapshot = $state.raw<OwnerSnapshot | null>(null);
  failure = $state.raw<CommandError | null>(null);
  private told = $state.raw<string[]>([]);
  private closed = $state.raw<string[]>([]);
  private readonly onFinished = new Set<(run: RunRow) => void>();

  /** Lasting ones of the snapshot first, each once, without those that were closed. */
  notices = $derived(
    [...new Set([...(this.snapshot?.notices ?? []), ...this.told])].filter((text) => !this.closed.includes(text)),
  );

  start(): Stop {
    let stop: Stop | null = null;
    let over = false;
    subscribe((event) => {
      if (!over) this.receive(event);
    }).then(
      (end) => {
        if (over) end();
        else stop = end;
      },
      (error: unknown) => {
        this.failure = asError(error);
      },
    );
    return () => {
      over = true;
      stop?.();
    };
  }

  finished(handler: (run: RunRow) => void): Stop {
    this.onFinished.add(handler);
    return () => this.onFinished.delete(handler);
  }

  closeNotice(text: string): void {
    this.closed = [...this.closed, text];
    this.told = this.told.filter((other) => other !== text);
  }

  private receive(event: WindowEvent): void {
    if (event.kind === 'snapshot') {
      this.snapshot = event.snapshot;
      this.failure = null;
    } else if (event.kind === 'finished') {
      for (const handler of this.onFinished) handler(event.run);
    } else {
      this.closed = this.closed.filter((text) => text !== event.text);
      this.told = [...this.told, event.text].slice(-MOST_NOTICES);
    }
  }
}

export const owner = new Owner();
