// Short words at the foot of the window about what was just pressed.

import { asError, setEnabled } from '../ipc/client';
import type { Mend } from '../ipc/types';
import { route } from './route.svelte';

interface Message {
  id: number;
  text: string;
  hint: string | null;
  bad: boolean;
  /** What can be done about it, on a button. */
  act?: Act | undefined;
}

export interface Act {
  name: string;
  do: () => Promise<unknown>;
}

const MENDS: Record<Mend, Act> = {
  turn_on: { name: 'Turn on', do: () => setEnabled(true) },
  see_overview: { name: 'See what to do', do: async () => route.to('overview') },
};

const STAY_MS = 4000;
/** Long enough to reach its button. */
const STAY_WITH_ACT_MS = 12_000;
const MOST = 3;

class Messages {
  list = $state<Message[]>([]);
  private last = 0;

  say(text: string, act?: Act): void {
    this.add({ text, hint: null, bad: false, act });
  }

  /** Stays until it is closed. */
  fail(thrown: unknown): void {
    const { message, hint, mend } = asError(thrown);
    this.add({ text: message, hint: hint ?? null, bad: true, act: mend && MENDS[mend] });
  }

  close(id: number): void {
    this.list = this.list.filter((message) => message.id !== id);
  }

  private add(said: Omit<Message, 'id'>): void {
    this.last += 1;
    const id = this.last;
    const others = this.list.filter((message) => message.text !== said.text);
    this.list = [...others, { ...said, id }].slice(-MOST);
    if (!said.bad) setTimeout(() => this.close(id), said.act ? STAY_WITH_ACT_MS : STAY_MS);
  }
}

export const messages = new Messages();

/** True where it was done; otherwise the person is told why not. */
export async function attempt(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    messages.fail(error);
    return false;
  }
}
