// The time. A timer runs only while a component shows it.

import { createSubscriber } from 'svelte/reactivity';

class Ticker {
  private readonly subscribe: () => void;
  private time: number | null = null;

  constructor(everyMs: number) {
    this.subscribe = createSubscriber((update) => {
      const timer = setInterval(() => {
        this.time = Date.now();
        update();
      }, everyMs);
      return () => {
        clearInterval(timer);
        this.time = null;
      };
    });
  }

  /** The same for all who show it at one moment, so that a list and a page agree. */
  get now(): number {
    this.subscribe();
    return $effect.tracking() ? (this.time ??= Date.now()) : Date.now();
  }
}

/** For "3 min ago". */
export const slow = new Ticker(15_000);
/** For what runs now. */
export const fast = new Ticker(250);
