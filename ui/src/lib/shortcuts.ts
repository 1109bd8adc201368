// Keys that work everywhere in the window.

import { flushSync } from 'svelte';

import type { Page } from './ipc/types';
import { leaving } from './state/leaving.svelte';
import { route } from './state/route.svelte';

const PAGES: Record<string, Page> = { '1': 'overview', '2': 'runs', '3': 'agents', '4': 'settings' };

/** Pages answer these by listening on the window; nothing happens where nobody does. */
export const SEARCH = 'sandtray:search';
export const STOP = 'sandtray:stop';

export function shortcuts(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.altKey || document.querySelector('dialog[open]')) return;
  const command = event.ctrlKey || event.metaKey;
  const page = command ? PAGES[event.key] : undefined;
  if (page) take(event, () => route.to(page));
  else if ((command && event.key.toLowerCase() === 'f') || (!command && event.key === '/' && !typing(event))) {
    take(event, () => {
      // At once, so that no letter typed after it goes astray.
      flushSync(() => route.to('runs'));
      window.dispatchEvent(new Event(SEARCH));
    });
  } else if (command && event.key.toLowerCase() === 'q') take(event, () => leaving.ask('quit'));
  else if (command && event.key === '.') take(event, () => window.dispatchEvent(new Event(STOP)));
}

function take(event: KeyboardEvent, act: () => void): void {
  event.preventDefault();
  act();
}

function typing(event: KeyboardEvent): boolean {
  return event.target instanceof HTMLElement && event.target.matches('input, select, textarea');
}
