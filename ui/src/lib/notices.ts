// What the desktop's notifications tell, in words for the settings. Typed by the app's own list: a new kind has to be named here.

import type { NoticeKind } from './ipc/types';

/** Kinds with the same words are named once. `answer`: shown with notifications off too, since it answers an act of the owner. */
const WORDS: Record<NoticeKind, readonly ['news' | 'answer', string]> = {
  new_client: ['news', 'a new agent runs code'],
  run_killed: ['news', 'a program is stopped by a limit or cut off'],
  run_cut_off: ['news', 'a program is stopped by a limit or cut off'],
  pull_finished: ['news', 'an image has been fetched or can’t be'],
  pull_failed: ['news', 'an image has been fetched or can’t be'],
  engine_lost: ['news', 'Docker goes away or comes back'],
  engine_back: ['news', 'Docker goes away or comes back'],
  history_lost: ['news', 'runs can’t be recorded, or can again'],
  history_back: ['news', 'runs can’t be recorded, or can again'],
  took_over: ['news', 'this app takes over from another Sandtray'],
  turned_on: ['news', 'running code is turned on'],
  not_saved: ['answer', 'settings can’t be written'],
  stays_in_tray: ['answer', 'the window closes for the first time or ends by itself'],
  no_window: ['answer', 'the window closes for the first time or ends by itself'],
  updated: ['answer', 'Sandtray was updated'],
};

function told(which: 'news' | 'answer'): string {
  const words = [...new Set(Object.values(WORDS).filter(([kind]) => kind === which).map(([, when]) => when))];
  return `${words.slice(0, -1).join('; ')}; or ${words.at(-1)}`;
}

export const NOTIFICATIONS_HINT =
  `When ${told('news')}. A press on one shows what it tells of. Always told: when ${told('answer')}. ` +
  `Turned off, the window and the tray still say when running code was turned on.`;
