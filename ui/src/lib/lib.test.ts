import { describe, expect, it } from 'vitest';

import * as format from './format';
import type { ImageView, LiveRunView, OwnerSnapshot, RunRow } from './ipc/types';
import { scrollTo, TALLEST, viewOf } from './virtual';
import {
  copiedWords, diskUsed, elapsedOf, ENDINGS, faultSentence, headline, imageNote, noOutput, quitSentence, runTitle, verdictSentence, verdictWord,
  waitingSentence, waitingWord,
} from './words';

// With plain spaces, to be read here.
const plain = (text: string) => text.replaceAll('\u00a0', ' ');
const bytes = (count: number) => plain(format.bytes(count));
const seconds = (value: number | null) => plain(format.seconds(value));
const ticking = (value: number) => plain(format.ticking(value));
const percent = (value: number) => plain(format.percent(value));
const share = (part: number, whole: number) => plain(format.share(part, whole));
const { ago, grouped, median, plural } = format;

describe('numbers', () => {
  it('are short', () => {
    expect([0, 512, 1536, 84 << 20, 131.4 * 2 ** 20, 1023.9 * 1024, 2 ** 40].map(bytes)).toEqual([
      '0 B', '512 B', '1.5 KB', '84 MB', '131 MB', '1 MB', '1 TB',
    ]);
    expect([0, 0.014, 0.9996, 1.24, 9.96, 42, 119.7, 185, 3600, 7800].map(seconds)).toEqual([
      '0 ms', '14 ms', '1 s', '1.2 s', '10 s', '42 s', '2 min', '3 min 5 s', '1 h', '2 h 10 min',
    ]);
    expect([bytes(NaN), seconds(null), seconds(-1)]).toEqual(['–', '–', '–']);
    expect([ticking(0.9), ticking(121.5)]).toEqual(['0 s', '2 min 1 s']);
    expect([percent(0.614), percent(2), grouped(1234567), plural(1, 'run'), plural(100_000, 'run')]).toEqual([
      '61 %', '100 %', '1,234,567', '1 run', '100,000 runs',
    ]);
    expect([share(999, 1000), share(1, 1000), share(3, 3), share(0, 0)]).toEqual(['99 %', '1 %', '100 %', '–']);
    expect([median([]), median([3, 1, 2]), median([1, 2])]).toEqual([null, 2, 1.5]);
  });

  it('tell how long ago', () => {
    const now = new Date(2026, 2, 12, 15, 0, 0).getTime();
    const before = (s: number) => ago(now - s * 1000, now);
    expect([3, 42, 185, 7200, 30 * 3600, 5 * 86400, 500 * 86400].map(before)).toEqual([
      'just now', '42 s ago', '3 min ago', '2 h ago', 'yesterday', '7 Mar', '28 Oct 2024',
    ]);
    expect(ago(now + 5000, now)).toBe('just now');
  });
});

describe('a long list', () => {
  const list = { count: 100_000, rowHeight: 50, viewport: 600, scrollTop: 0, overscan: 0 };

  it('draws only what is in view', () => {
    expect(viewOf({ ...list, scrollTop: 5025 })).toEqual({ first: 100, last: 113, top: 5000, height: 5_000_000 });
    expect(viewOf({ ...list, count: 0 })).toEqual({ first: 0, last: 0, top: 0, height: 0 });
    expect(viewOf({ ...list, count: 3 })).toMatchObject({ first: 0, last: 3 });
    expect(viewOf({ ...list, scrollTop: 9e9 }).last).toBe(100_000);
    expect(viewOf({ ...list, scrollTop: -50 })).toMatchObject({ first: 0, top: 0 });
  });

  it('reaches both ends of a list that is too tall for a browser', () => {
    const tall = { ...list, count: 2_000_000 };
    expect(viewOf(tall)).toMatchObject({ first: 0, top: 0, height: TALLEST });
    const end = viewOf({ ...tall, scrollTop: TALLEST - 600 });
    expect(end.last).toBe(2_000_000);
    expect(end.top + (end.last - end.first) * 50).toBeCloseTo(TALLEST, 0);
  });

  it('moves no more than it must to show a row', () => {
    expect(scrollTo(5, list)).toBe(0);
    expect(scrollTo(20, list)).toBe(21 * 50 - 600);
    expect(scrollTo(2, { ...list, scrollTop: 1000 })).toBe(100);
    const tall = { ...list, count: 2_000_000 };
    const at = scrollTo(1_999_999, tall);
    expect(viewOf({ ...tall, scrollTop: at }).last).toBe(2_000_000);
  });
});

const engine = {
  state: 'ready', name: 'Docker', version: '27.3', api_version: '1.47',
  endpoint: { url: 'unix:///x', found: 'the default socket' }, os: 'linux', arch: 'x86_64', cpus: 2, memory_bytes: 1,
} as const;
const base: OwnerSnapshot = {
  enabled: true, engine, warm: 2, images: [], running: [], queued: [], notices: [], socket: '', visits: 0, first_start: false, version: '1',
  service: { state: 'here' },
};
const live = { run_id: 'a', language: 'python', client: 'c', program: 'node', label: null, title: null, started_ms: 0, limit_seconds: 60 } as const;

describe('words', () => {
  it('say the state in a few of them', () => {
    const trouble = (title: string) =>
      headline({ ...base, engine: { state: 'trouble', trouble: 'not_running', title, text: '', steps: [], looked_at: [] } });
    expect(headline(base)).toEqual({ tone: 'ready', text: 'Ready · 2 kept ready' });
    expect(headline({ ...base, warm: undefined }).text).toBe('Ready');
    expect(headline({ ...base, enabled: false }).tone).toBe('off');
    expect(headline({ ...base, engine: { state: 'checking' } }).text).toBe('Looking for Docker…');
    expect(trouble("Docker isn't running")).toEqual({ tone: 'trouble', text: "On, but Docker isn't running" });
    expect(trouble('a\u202eb').text).toBe('On, but a⟦U+202E⟧b');
    const go = { language: 'go', title: 'Go', language_version: '', image: 'golang', pinned: false, fetched: false, state: 'preparing' } as const;
    expect(headline({ ...base, images: [go] }).text).toBe('Preparing Go');
    expect(headline({ ...base, service: { state: 'elsewhere', message: '', hint: '' } }).tone).toBe('trouble');
    expect(headline({ ...base, running: [live], queued: [live, live] })).toEqual({
      tone: 'running', text: '1 program running · 2 waiting',
    });
  });

  it('say what an image needs before a program can start, in each of its states', () => {
    const image = { language: 'go', title: 'Go', language_version: '', image: 'golang', pinned: false, fetched: false } as const;
    const states = [
      { state: 'ready', size_bytes: 5 }, { state: 'unknown' }, { state: 'not_pulled' }, { state: 'unprepared', size_bytes: 7 }, { state: 'preparing' },
      { state: 'pulling', fraction: 0.469, downloaded_bytes: 1, total_bytes: 2, bytes_per_second: 0 }, { state: 'failed', message: 'No\u202e network.', hint: '' },
    ] as const;
    expect(states.map((state) => imageNote({ ...image, ...state })?.replaceAll('\u00a0', ' '))).toEqual([
      undefined, 'It isn’t known yet whether what Go programs need is here.', 'What Go programs need isn’t here yet: it is fetched first.',
      'Go is prepared first, once.', 'Preparing Go', 'Fetching Go: 46 %', 'No⟦U+202E⟧ network.',
    ]);
  });

  const pull = { why: 'pull', fraction: 0.469, downloaded_bytes: 3, total_bytes: 7 } as const;
  const waits = (waiting: LiveRunView['waiting']): LiveRunView => ({ ...live, ...(waiting && { waiting }) });
  const shown = (snapshot: Partial<OwnerSnapshot>) => plain(headline({ ...base, ...snapshot }).text);

  it('say in the header what is waited for, as the tray does', () => {
    expect(shown({ queued: [waits(pull)] })).toBe('Fetching Python: 46 %');
    expect(shown({ queued: [waits(pull), waits(pull)] })).toBe('Fetching Python: 46 % · 2 waiting');
    expect(shown({ queued: [waits({ why: 'preparation' })] })).toBe('Preparing Python');
    expect(shown({ queued: [waits({ why: 'check' })] })).toBe('Checking Python');
    expect(shown({ queued: [waits({ why: 'engine' })] })).toBe('Waiting for Docker');
    expect(shown({ queued: [waits({ why: 'turn', ahead: 0 })] })).toBe('1 waiting');
    expect(shown({ running: [live], queued: [waits(pull)] })).toBe('1 program running · 1 waiting');
    expect(shown({ running: [waits({ why: 'starting' })] })).toBe('1 program starting');
    const pulling = { state: 'pulling', title: 'Go', fraction: 0.5 } as ImageView;
    expect(shown({ images: [pulling] })).toBe('Fetching Go: 50 %');
  });

  it('tell a pull from a queue in the run and in its row', () => {
    expect(plain(waitingSentence(waits(pull)).title)).toBe('Waiting for the image of Python: 46 %');
    expect(plain(waitingWord(waits(pull)))).toBe('Fetching Python: 46 %');
    expect([waitingWord(waits({ why: 'unread' })), waitingWord(waits({ why: 'starting' }))]).toEqual(['Waiting for its client to read', 'Starting…']);
    expect(waitingWord(waits({ why: 'turn', ahead: 0 }))).toBe('Waiting for its turn · Python');
    const turn = (ahead: number) => waitingSentence(waits({ why: 'turn', ahead }));
    expect([turn(0).title, turn(0).note]).toEqual(['Waiting for its turn', 'It is the next to start, as soon as a place is free.']);
    expect(turn(1).note).toBe('It starts after one other, as soon as a place is free.');
    expect(turn(5).note).toBe('It starts after 5 others, as soon as a place is free.');
    const titles = (['engine', 'unread', 'preparation', 'check', 'starting'] as const).map((why) => waitingSentence(waits({ why })).title);
    expect(new Set(titles).size).toBe(5);
  });

  it('count no time before the program runs', () => {
    expect(elapsedOf(waits({ why: 'starting' }), 9000)).toBe(0);
    expect(elapsedOf(live, 9000)).toBe(9);
  });

  it('say what quitting ends', () => {
    const none = 'Agents can’t run code until Sandtray is started again.';
    expect(quitSentence(base)).toBe(none);
    expect(quitSentence({ ...base, running: [live] })).toBe(`${none} One program that runs or waits is ended.`);
    expect(quitSentence({ ...base, running: [live], queued: [live, live] })).toBe(`${none} 3 programs that run or wait are ended.`);
  });

  it('call a setting what the page calls it', () => {
    const together = { field: 'limits.files_mb', with: 'limits.output_kb', message: 'together make replies larger than 16 MB; lower one' };
    const said = '“Files” and “Output” together make replies larger than 16 MB; lower one.';
    expect([faultSentence('limits.files_mb', together), faultSentence('limits.output_kb', together)]).toEqual([said, said]);
    expect(faultSentence('warm', { field: 'warm', message: 'must be from 0 to 64' })).toBe('It must be from 0 to 64.');
  });

  it('say what was left out of what was copied', () => {
    expect([0, 1, 2].map(copiedWords)).toEqual(['Copied', 'Copied, without 1 control character', 'Copied, without 2 control characters']);
  });

  it('count the disk of every image that is here, prepared or not', () => {
    const image = { language: 'go', title: 'Go', language_version: '', image: 'golang', pinned: false, fetched: false } as const;
    const states = [{ state: 'ready', size_bytes: 5 }, { state: 'unprepared', size_bytes: 7 }, { state: 'not_pulled' }] as const;
    expect(diskUsed(states.map((state) => ({ ...image, ...state })))).toBe(12);
  });

  it('give every verdict one plain sentence', () => {
    const run = {
      status: 'ok', error: null, exit_code: 0, seconds: 1.24,
      limits: { seconds: 60, memory_bytes: 512 << 20, output_bytes: 64 << 10 },
    } as unknown as RunRow;
    const said = (change: Partial<RunRow>) => plain(verdictSentence({ ...run, ...change }));
    expect(said({})).toBe('Finished in 1.2 s.');
    expect(said({ status: 'failed', exit_code: 1 })).toBe('The program ended with an error (code 1) after 1.2 s.');
    expect(said({ status: 'failed', exit_code: 139 })).toContain('segmentation fault');
    expect(said({ status: 'timeout' })).toBe('Stopped after 60 s, the time limit.');
    expect(said({ status: 'out_of_memory' })).toContain('512 MB');
    expect(said({ status: 'output_limit' })).toContain('64 KB');
    expect(said({ status: 'cancelled', seconds: null })).toBe('Stopped on request before it started.');
    expect(said({ status: 'engine_unavailable', error: 'Docker isn’t running.' })).toBe('Didn’t run. Docker isn’t running.');
    expect(verdictWord('of another version')).toBe('Didn’t run');
  });

  it('name every way a run may end, each once and each with words of its own', () => {
    const words = ENDINGS.map(verdictWord);
    expect(new Set(words).size).toBe(ENDINGS.length);
    expect(words).not.toContain(verdictWord('of another version'));
    expect(words).toContain('Turned off');
  });

  it('call a run by its label, its program or its language', () => {
    const run = { label: null, title: null, language: 'python' };
    expect(runTitle({ ...run, label: ' a label ', title: 'words' })).toBe('a label');
    expect(runTitle({ ...run, label: ' ', title: 'Sum the sales' })).toBe('Sum the sales');
    expect(runTitle(run)).toBe('Python program');
  });

  it('say who ended a run', () => {
    const run = { status: 'cancelled', error: null, exit_code: 137, seconds: 3.7, client: 'Claude Desktop' } as unknown as RunRow;
    const said = (ended_by: string | null, ran = 3.7) => plain(verdictSentence({ ...run, ended_by, seconds: ran }));
    expect(said('owner')).toBe('You stopped it after 3.7 s.');
    expect(said('client')).toBe('Claude Desktop cancelled it after 3.7 s.');
    expect(said('client_left')).toBe('Stopped after 3.7 s: its client went away.');
    expect(said('switch')).toBe('Stopped after 3.7 s: Sandtray was turned off.');
    expect(said('shutdown')).toBe('Stopped after 3.7 s: Sandtray was closed.');
    expect(said(null)).toBe('Stopped on request after 3.7 s.');
    expect(['owner', 'client', 'client_left'].map((by) => said(by, 0))).toEqual([
      'You stopped it before it started.',
      'Claude Desktop cancelled it before it started.',
      'Stopped before it started: its client went away.',
    ]);
    const hostile = { ...run, ended_by: 'client', client: 'a\u202eb'.repeat(200) };
    expect(verdictSentence(hostile).length).toBeLessThan(600);
    expect(verdictSentence(hostile)).not.toContain('\u202e');
  });

  it('never call a run that was cut off one that failed or did not run', () => {
    const cut_off = 'Cut off after 3.7 s: Podman went away.';
    const run = { status: 'interrupted', ended_by: 'engine', error: null, cut_off, exit_code: null, seconds: 3.7 } as unknown as RunRow;
    expect([verdictWord('interrupted'), verdictSentence(run)]).toEqual(['Cut off', cut_off]);
    expect(plain(verdictSentence({ ...run, cut_off: null }))).toBe('Cut off after 3.7 s.');
    expect(noOutput(run)).toBe('The program had printed nothing when it was cut off.');
    expect(noOutput({ ...run, status: 'ok' })).toBe('The program printed nothing.');
    expect(noOutput({ ...run, status: 'cancelled', seconds: 0 })).toContain('didn’t run');
    expect(noOutput({ ...run, status: 'engine_unavailable', error: 'x' })).toContain('didn’t run');
  });
});
