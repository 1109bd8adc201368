// What is asked before the window closes for the first time, and before Sandtray quits.

class Leaving {
  /** `close`: there is no tray to come back by, so the window says first what closing means. */
  asks = $state<'close' | 'quit' | null>(null);

  ask(what: 'close' | 'quit'): void {
    this.asks = what;
  }

  done(): void {
    this.asks = null;
  }
}

export const leaving = new Leaving();
