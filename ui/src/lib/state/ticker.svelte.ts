// The time, for as long as somebody shows it: no timer runs otherwise.

import { createSubscriber } from 'svelte/reactivity';

class Ticker {
  private readonly subscribe: () => void;

  constructor(everyMs: number) {
    this.subscribe = createSubscriber((update) => {
      const timer = setInterval(update, everyMs);
      return () => clearInterval(timer);
    });
  }

  get now(): number {
    this.subscribe();
    return Date.now();
  }
}

/** For "3 min ago". */
export const slow = new Ticker(15_000);
/** For what runs now. */
export const fast = new Ticker(250);
