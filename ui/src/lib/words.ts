// The sentences that the window says about a state. Pure, so that every state's words are tested.

import { bytes, percent, plural, seconds } from './format';
import { visible } from './output/hostile';
import type { Fault, ImageView, LiveRunView, OwnerSnapshot, RunRow, Saved, SkipReason, Status } from './ipc/types';

type Tone = 'off' | 'ready' | 'running' | 'trouble';

interface Headline {
  tone: Tone;
  text: string;
}

export function headline(snapshot: OwnerSnapshot): Headline {
  const { service } = snapshot;
  if (service.state === 'starting') return { tone: 'off', text: 'Starting…' };
  if (service.state === 'elsewhere') return { tone: 'trouble', text: ELSEWHERE };
  if (service.state === 'failed') return { tone: 'trouble', text: 'Sandtray couldn’t start' };
  if (!snapshot.enabled) return { tone: 'off', text: 'Off · agents can’t run code' };
  const { engine, running, queued, warm } = snapshot;
  if (engine.state === 'checking') return { tone: 'off', text: 'Looking for Docker…' };
  if (engine.state === 'trouble') return { tone: 'trouble', text: `On, but ${visible(engine.title, 160)}` };
  const more = (count: number) => (queued.length > count ? ` · ${queued.length} waiting` : '');
  if (running.length > 0) {
    const starting = running.every((run) => run.waiting !== undefined);
    return { tone: 'running', text: `${plural(running.length, 'program')} ${starting ? 'starting' : 'running'}${more(0)}` };
  }
  const next = queued[0];
  if (next) {
    const what = waitsFor(next);
    return { tone: 'ready', text: what === null ? `${queued.length} waiting` : `${what}${more(1)}` };
  }
  const pulling = snapshot.images.find((image) => image.state === 'pulling');
  const someReady = snapshot.images.some((image) => image.state === 'ready');
  if (pulling && !someReady) return { tone: 'ready', text: fetching(pulling.title, pulling.fraction) };
  const found = snapshot.images.find((image) => image.state === 'preparing');
  if (found && !someReady) return { tone: 'ready', text: preparing(found.title) };
  return { tone: 'ready', text: warm ? `Ready · ${warm} kept ready` : 'Ready' };
}

/** As the tray says it. */
export const ELSEWHERE = 'Sandtray runs in another program';

/** The same as a heading, in a row and in the header. */
const UNREAD = 'Waiting for its client to read';
const STARTING = 'Starting…';

function fetching(title: string, fraction: number): string {
  return `Fetching ${title}: ${percent(fraction)}`;
}

/** What an image needs before a program of its language can start. */
export function imageNote(image: ImageView): string | null {
  const { title } = image;
  switch (image.state) {
    case 'unknown':
      return `It isn’t known yet whether what ${title} programs need is here.`;
    case 'not_pulled':
      return `What ${title} programs need isn’t here yet: it is fetched first.`;
    case 'pulling':
      return fetching(title, image.fraction);
    case 'preparing':
      return preparing(title);
    case 'unprepared':
      return `${title} is prepared first, once.`;
    case 'failed':
      return visible(image.message, 300);
    case 'ready':
      return null;
  }
}

function preparing(title: string): string {
  return `Preparing ${title}`;
}

/** What keeps a run from starting, other than those before it. The tray says the same. */
export function waitsFor(run: LiveRunView): string | null {
  const title = languageTitle(run.language);
  switch (run.waiting?.why) {
    case 'engine':
      return 'Waiting for Docker';
    case 'pull':
      return fetching(title, run.waiting.fraction);
    case 'preparation':
      return preparing(title);
    case 'check':
      return `Checking ${title}`;
    case 'unread':
      return UNREAD;
    case 'starting':
      return STARTING;
    default:
      return null;
  }
}

/** In a row of a list; with the language, which else would be said twice. */
export function waitingWord(run: LiveRunView): string {
  return waitsFor(run) ?? `Waiting for its turn · ${languageTitle(run.language)}`;
}

/** What a run waits for, and what that means. */
export function waitingSentence(run: LiveRunView): { title: string; note: string } {
  const title = languageTitle(run.language);
  const { waiting } = run;
  switch (waiting?.why) {
    case 'engine':
      return { title: 'Waiting for Docker', note: 'It starts once Docker has answered.' };
    case 'pull':
      return {
        title: `Waiting for the image of ${title}: ${percent(waiting.fraction)}`,
        note: `The files that ${title} programs need are fetched once. It starts when they are here.`,
      };
    case 'preparation':
      return {
        title: `Waiting for the image of ${title} to be prepared`,
        note: 'That is done once, so that programs start quickly. It may take a minute.',
      };
    case 'check':
      return {
        title: `Waiting for a check of the image of ${title}`,
        note: 'Sandtray proves once in each image that a program can’t get out of it.',
      };
    case 'unread':
      return {
        title: UNREAD,
        note: 'Its client has not read the results of earlier programs. It starts once some of them are read.',
      };
    case 'starting':
      return { title: STARTING, note: 'Its container is being made.' };
    default: {
      const ahead = waiting?.why === 'turn' ? waiting.ahead : 0;
      const after = ahead === 0 ? 'It is the next to start' : `It starts after ${ahead === 1 ? 'one other' : `${ahead} others`}`;
      return { title: 'Waiting for its turn', note: `${after}, as soon as a place is free.` };
    }
  }
}

/** Why a trouble matters, where its own sentence doesn't say. */
export function whyItMatters(snapshot: OwnerSnapshot): string {
  return snapshot.enabled
    ? 'Until then agents get an error when they try to run code. Your history and settings still work.'
    : 'Nothing is needed while the switch is off. Code can run once this is mended and the switch is on.';
}

/** What quitting does, and to how many. */
export function quitSentence(snapshot: OwnerSnapshot | null): string {
  const live = snapshot ? snapshot.running.length + snapshot.queued.length : 0;
  const ended = live === 0 ? '' : ` ${live === 1 ? 'One program that runs or waits is' : `${live} programs that run or wait are`} ended.`;
  return `Agents can’t run code until Sandtray is started again.${ended}`;
}

export function isStatus(word: string): word is Status {
  return word in VERDICTS;
}

interface Verdict {
  word: string;
  sentence: (run: RunRow) => string;
}

const VERDICTS: Record<Status, Verdict> = {
  ok: { word: 'Finished', sentence: (run) => `Finished in ${seconds(run.seconds)}.` },
  failed: { word: 'Failed', sentence: failed },
  timeout: {
    word: 'Out of time',
    sentence: (run) => `Stopped after ${seconds(run.limits.seconds)}, the time limit.`,
  },
  out_of_memory: {
    word: 'Out of memory',
    sentence: (run) => `Stopped because it needed more than ${bytes(run.limits.memory_bytes)} of memory.`,
  },
  output_limit: {
    word: 'Too much output',
    sentence: (run) => `Stopped because it printed more than ${bytes(run.limits.output_bytes)}.`,
  },
  cancelled: { word: 'Stopped', sentence: stopped },
  interrupted: { word: 'Cut off', sentence: cutOff },
};

/** Who ended it, in the sentence of a run that was cancelled. `when` is "after 3.7 s" or "before it started". */
function stopped(run: RunRow): string {
  // One that never started has run for no time at all.
  const when = run.seconds ? `after ${seconds(run.seconds)}` : 'before it started';
  switch (run.ended_by) {
    case 'owner':
      return `You stopped it ${when}.`;
    case 'client':
      return `${visible(run.client, 80)} cancelled it ${when}.`;
    case 'client_left':
      return `Stopped ${when}: its client went away.`;
    case 'switch':
      return `Stopped ${when}: Sandtray was turned off.`;
    case 'shutdown':
      return `Stopped ${when}: Sandtray was closed.`;
    default:
      return `Stopped on request ${when}.`;
  }
}

/** The app's own sentence names the engine. */
function cutOff(run: RunRow): string {
  return run.cut_off ?? `Cut off after ${seconds(run.seconds)}.`;
}

function failed(run: RunRow): string {
  const code = run.exit_code ?? 1;
  const signal = code > 128 && code <= 192 ? SIGNALS[code - 128] : undefined;
  if (signal) return `The program ${signal} after ${seconds(run.seconds)}.`;
  return `The program ended with an error (code ${code}) after ${seconds(run.seconds)}.`;
}

const SIGNALS: Record<number, string> = {
  4: 'crashed (illegal instruction)',
  6: 'gave up (abort)',
  7: 'crashed (bus error)',
  8: 'crashed (arithmetic error)',
  9: 'was killed',
  11: 'crashed (segmentation fault)',
  15: 'was ended by a signal',
  31: 'tried something that isn’t allowed',
};

const REFUSALS: Record<string, string> = {
  invalid_params: 'Bad request',
  capability_off: 'Turned off',
  engine_unavailable: 'No engine',
  image_unavailable: 'No image',
  queue_full: 'Too many waiting',
  shutting_down: 'Shutting down',
  internal: 'Internal error',
};

/** How a run in the history may have ended, each once: the verdicts, and what keeps a run from happening. */
export const ENDINGS: string[] = [
  ...Object.keys(VERDICTS), 'capability_off', 'engine_unavailable', 'image_unavailable', 'shutting_down', 'internal',
];

export function verdictWord(status: string): string {
  return isStatus(status) ? VERDICTS[status].word : (REFUSALS[status] ?? 'Didn’t run');
}

export function verdictSentence(run: RunRow): string {
  if (isStatus(run.status) && run.error === null) return VERDICTS[run.status].sentence(run);
  return `Didn’t run. ${run.error ?? verdictWord(run.status)}`;
}

/** What stands in place of the output of a run that has none. */
export function noOutput(run: RunRow): string {
  if (run.error !== null || (run.status === 'cancelled' && !run.seconds)) return 'There is no output: the program didn’t run.';
  return run.status === 'interrupted' ? 'The program had printed nothing when it was cut off.' : 'The program printed nothing.';
}

const TITLES: Record<string, string> = {
  python: 'Python',
  javascript: 'JavaScript',
  shell: 'Shell',
  go: 'Go',
  rust: 'Rust',
};

export function languageTitle(language: string): string {
  return TITLES[language] ?? language;
}

/** Seconds so far. The engine needs a moment to stop it: the figure waits at the limit. */
export function elapsedOf(run: LiveRunView, nowMs: number): number {
  if (run.waiting !== undefined) return 0;
  return Math.min(run.limit_seconds, Math.max(0, (nowMs - run.started_ms) / 1000));
}

/** What a run is called, wherever it is named: its label, or a few words of its program. */
export function runTitle(run: { label: string | null; title: string | null; language: string }): string {
  return run.label?.trim() || run.title?.trim() || `${languageTitle(run.language)} program`;
}

/** The exact name of what a language runs in, for those who know images: with its digest where that is known. */
export function exactImage(image: ImageView): string {
  const [name = ''] = image.image.split('@');
  return 'digest' in image && image.digest !== undefined ? `${name}@${image.digest}` : image.image;
}

/** Beside a language's name. The exact words are on hover. */
export function versionWords({ language, language_version }: Pick<ImageView, 'language' | 'language_version'>): string {
  return language === 'shell' ? 'small scripts' : language_version;
}

export function diskUsed(images: readonly ImageView[]): number {
  return images.reduce((sum, image) => sum + ('size_bytes' in image ? image.size_bytes : 0), 0);
}

/** What the app says of a setting, in the words of the page: its fields have other names there than in the file. */
export function faultSentence(field: string, { field: at, with: other, message }: Fault): string {
  if (other !== undefined) return `${FIELDS[at] ?? at} and ${FIELDS[other] ?? other} ${message}.`;
  return `${at === field ? 'It' : (FIELDS[at] ?? 'It')} ${message}.`;
}

const FIELDS: Record<string, string> = { 'limits.output_kb': '“Output”', 'limits.files_mb': '“Files”' };

/** Control characters are left out, since a terminal would obey them when they are pasted. */
export function copiedWords(leftOut: number): string {
  return leftOut === 0 ? 'Copied' : `Copied, without ${plural(leftOut, 'control character')}`;
}

export function savedWords({ folder, name, count }: Saved): string {
  return count === 1 ? `Saved as ${name} in ${folder}` : `Saved ${plural(count, 'file')} in ${folder}`;
}

/** When it was over: what “3 min ago” counts from. */
export function endedAt(run: Pick<RunRow, 'at_ms' | 'queued_seconds' | 'seconds'>): number {
  return run.at_ms + ((run.queued_seconds ?? 0) + (run.seconds ?? 0)) * 1000;
}

/** Why something that the program left is not among its files. */
export const SKIPPED: Record<SkipReason, string> = {
  symlink: 'a link, not a file',
  hard_link: 'a second name of another file',
  special_file: 'not a plain file',
  too_large: 'passes the limit for files',
  too_many: 'one file too many',
  bad_name: 'its name can’t be used',
  too_deep: 'too many folders deep',
  unreadable: 'the program made it unreadable',
  not_read: 'came after the limit',
};
