// The owner's settings: a change is sent at once and stands only when the app has it.

import { applySettings, asError, readSettings } from '../ipc/client';
import type { CommandError, Settings } from '../ipc/types';
import { faultSentence } from '../words';

class SettingsState {
  saved = $state.raw<Settings | null>(null);
  failure = $state.raw<CommandError | null>(null);
  /** By field, as the file names it: `limits.seconds`. */
  faults = $state<Record<string, string>>({});
  private queue: Promise<unknown> = Promise.resolve();

  async read(): Promise<void> {
    try {
      this.saved = await readSettings();
      this.failure = null;
    } catch (error) {
      this.failure = asError(error);
    }
  }

  /** One after the other, each on top of what is saved by then. */
  change(field: string, edit: (settings: Settings) => void): Promise<boolean> {
    const turn = this.queue.then(() => this.apply(field, edit));
    this.queue = turn;
    return turn;
  }

  fault(field: string, message: string | null): void {
    if (message === null) delete this.faults[field];
    else this.faults[field] = message;
  }

  private async apply(field: string, edit: (settings: Settings) => void): Promise<boolean> {
    try {
      // What is saved by now: the tray, or a hand in the file, may have changed something else.
      const wanted = structuredClone(await readSettings());
      edit(wanted);
      this.saved = (await applySettings(wanted)) ?? wanted;
      this.fault(field, null);
      return true;
    } catch (error) {
      const { message, hint, faults } = asError(error);
      // Shown beside what was changed, even where the app names another field: that one may not be in view.
      const own = faults.find((fault) => fault.field === field) ?? faults[0];
      this.fault(field, own ? faultSentence(field, own) : [message, hint].filter(Boolean).join(' '));
      return false;
    }
  }
}

export const settings = new SettingsState();
