// A word that goes away by itself.

const STAY_MS = 1600;

export class Saved {
  shown = $state(false);
  private timer: ReturnType<typeof setTimeout> | undefined;

  show(): void {
    clearTimeout(this.timer);
    this.shown = true;
    this.timer = setTimeout(() => (this.shown = false), STAY_MS);
  }
}
