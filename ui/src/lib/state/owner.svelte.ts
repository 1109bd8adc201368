// What the app says of itself: the newest snapshot, and what happened since.

import { asError, subscribe, type Stop } from '../ipc/client';
import type { CommandError, Navigate, OwnerSnapshot, RunRow, WindowEvent } from '../ipc/types';

const MOST_NOTICES = 5;

interface Notice {
  text: string;
  /** Where it can be seen. */
  to?: Navigate | undefined;
}

class Owner {
  snapshot = $state.raw<OwnerSnapshot | null>(null);
  failure = $state.raw<CommandError | null>(null);
  private told = $state.raw<Notice[]>([]);
  private closed = $state.raw<string[]>([]);
  private readonly onFinished = new Set<(run: RunRow) => void>();

  /** Lasting ones of the snapshot first, each once, without those that were closed. */
  notices = $derived.by(() => {
    const all: Notice[] = [...(this.snapshot?.notices ?? []).map((text) => ({ text })), ...this.told];
    const first = new Map(all.toReversed().map((notice) => [notice.text, notice]));
    return all.filter((notice) => first.get(notice.text) === notice && !this.closed.includes(notice.text));
  });

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
    this.told = this.told.filter((other) => other.text !== text);
  }

  private receive(event: WindowEvent): void {
    if (event.kind === 'snapshot') {
      this.snapshot = event.snapshot;
      this.failure = null;
    } else if (event.kind === 'finished') {
      for (const handler of this.onFinished) handler(event.run);
    } else {
      this.closed = this.closed.filter((text) => text !== event.text);
      const { text, to } = event;
      this.told = [...this.told.filter((other) => other.text !== text), { text, to }].slice(-MOST_NOTICES);
    }
  }
}

export const owner = new Owner();
