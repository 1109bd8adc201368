// What the desktop's notifications tell, in words for the settings. Typed by the app's own list: a new kind has to be named here.

import type { NoticeKind } from './ipc/types';

/** As `always` too to an owner who wants none: they answer what was just done. */
type Words = { when: string; always?: true };

const WORDS: Record<NoticeKind, Words> = {
  new_client: { when: 'a new agent runs code' },
  run_killed: { when: 'a limit stops a program' },
  run_cut_off: { when: 'a program is cut off' },
  pull_finished: { when: 'an image has been fetched' },
  pull_failed: { when: 'an image could not be fetched' },
  engine_lost: { when: 'Docker goes away' },
  engine_back: { when: 'Docker comes back' },
  history_lost: { when: 'runs cannot be recorded' },
  history_back: { when: 'runs can be recorded again' },
  turned_on: { when: 'running code is turned on' },
  took_over: { when: 'this app takes over from another Sandtray' },
  not_saved: { when: 'settings could not be written', always: true },
  stays_in_tray: { when: 'the window closes for the first time', always: true },
  no_window: { when: 'the window ends by itself', always: true },
  updated: { when: 'Sandtray was updated and has to be started again', always: true },
};

function joined(words: readonly string[]): string {
  const last = words.at(-1) ?? '';
  return words.length > 1 ? `${words.slice(0, -1).join(', ')} or ${last}` : last;
}

const told = (always: boolean) => Object.values(WORDS).filter((words) => (words.always ?? false) === always).map(({ when }) => when);

export const NOTIFICATIONS_HINT =
  `When ${joined(told(false))}. A press on one shows what it tells of. ` +
  `Turned off, you are still told when ${joined(told(true))}; that running code was turned on is then said in the window and the tray.`;
