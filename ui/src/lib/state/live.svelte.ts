// The runs that are being watched: their output and figures as they come.

import { watchRun, type Stop } from '../ipc/client';
import type { LiveEvent } from '../ipc/types';
import { bytes } from '../format';
import { LIVE_CAPS, TextStore } from '../output/store';

interface Sample {
  at: number;
  memory: number;
  cpu: number;
}

/** Watched at once; more than these run only where the owner asked for it. */
const MOST_WATCHED = 16;
const MOST_SAMPLES = 240;

export class Watch {
  readonly output = new TextStore(LIVE_CAPS);
  samples = $state.raw<Sample[]>([]);
  /** Counts what arrived; raised seldom enough to be painted each time. */
  version = $state(0);
  private stop: Stop | null = null;
  private over = false;

  constructor(readonly runId: string) {
    watchRun(runId, (event) => this.receive(event)).then(
      (stop) => {
        if (this.over) stop();
        else this.stop = stop;
      },
      // One that has just ended can't be watched: its record has the rest.
      () => {},
    );
  }

  close(): void {
    this.over = true;
    this.stop?.();
    stale.delete(this);
  }

  private receive(event: LiveEvent): void {
    if (this.over) return;
    if (event.kind === 'output') {
      if (event.missed > 0) this.output.note(`${bytes(event.missed)} left out here: the program printed faster than this window could follow`);
      this.output.append(event.stream, event.text);
      this.changed();
    } else if (event.kind === 'sample') {
      const { at_ms, memory_bytes, cpu } = event;
      this.samples = [...this.samples, { at: at_ms, memory: memory_bytes, cpu }].slice(-MOST_SAMPLES);
    } else {
      this.output.end();
      this.changed();
    }
  }

  private changed(): void {
    stale.add(this);
    if (!due) due = setTimeout(showAll, SHOW_EVERY_MS);
  }

  show(): void {
    this.version += 1;
  }
}

/** What arrived is shown so often: the app gathers as long, and each run has a clock of its own. */
const SHOW_EVERY_MS = 40;
const stale = new Set<Watch>();
let due: ReturnType<typeof setTimeout> | undefined;

/** All runs at once, with one painting. */
function showAll(): void {
  requestAnimationFrame(() => {
    due = undefined;
    for (const watch of stale) watch.show();
    stale.clear();
  });
}

class Live {
  watches = $state.raw<ReadonlyMap<string, Watch>>(new Map());

  /** Watches these, the first of them first, and lets the others go. */
  follow(runIds: readonly string[]): void {
    const wanted = runIds.slice(0, MOST_WATCHED);
    // First the old ones go: the app lets a window watch only so many.
    for (const [id, watch] of this.watches) if (!wanted.includes(id)) watch.close();
    const next = new Map<string, Watch>();
    for (const id of wanted) next.set(id, this.watches.get(id) ?? new Watch(id));
    const same = next.size === this.watches.size && [...next.keys()].every((id) => this.watches.has(id));
    if (!same) this.watches = next;
  }

  release(): void {
    for (const watch of this.watches.values()) watch.close();
    this.watches = new Map();
  }
}

export const live = new Live();
