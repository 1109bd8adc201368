// Says what was saved and where, and opens the folder.

import { openSaved } from './ipc/client';
import type { Saved } from './ipc/types';
import { attempt, messages } from './state/messages.svelte';
import { savedWords } from './words';

/** Nothing where the owner thought better of it. */
export async function tellSaved(work: Promise<Saved | null>): Promise<void> {
  await attempt(
    work.then((saved) => {
      if (!saved) return;
      const { place } = saved;
      messages.say(savedWords(saved), place === undefined ? undefined : { name: 'Open folder', do: () => openSaved(place) });
    }),
  );
}
