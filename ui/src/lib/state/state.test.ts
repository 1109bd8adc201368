import { beforeEach, describe, expect, it, vi } from 'vitest';

import type { HistoryFilter, HistoryPage, RunRow, Settings } from '../ipc/types';
import * as client from '../ipc/client';
import type { Who } from '../clients';
import { belongs, HistoryList, NO_FILTERS } from './history.svelte';
import { owner } from './owner.svelte';
import { settings } from './settings.svelte';
import { trial } from './trial.svelte';

vi.mock('../ipc/client', async (original) => ({
  ...(await original<typeof client>()),
  historyPage: vi.fn(),
  historyStats: vi.fn(),
  readSettings: vi.fn(),
  applySettings: vi.fn(),
  subscribe: vi.fn(),
  tryIt: vi.fn(),
}));

const run = (at: number, more: Partial<RunRow> = {}) =>
  ({ run_id: `r${at}`, at_ms: at, client: 'agent', client_program: null, language: 'python', label: null, status: 'ok', seconds: 1, ...more }) as RunRow;
const TOTAL = 3000;

function pages(filter: HistoryFilter): HistoryPage {
  const from = Number(filter.before ?? 0);
  const to = Math.min(TOTAL, from + filter.limit);
  return { runs: Array.from({ length: to - from }, (_, at) => run(from + at)), next: to < TOTAL ? String(to) : null };
}

describe('the list of past runs', () => {
  beforeEach(() => {
    vi.mocked(client.historyPage).mockReset().mockImplementation(async (filter) => pages(filter));
    vi.mocked(client.historyStats).mockReset().mockResolvedValue({ runs: TOTAL, bytes: 1, inputs: 0 });
  });

  it('is as tall as the history and reads only what is wanted', async () => {
    const list = new HistoryList();
    await list.start(NO_FILTERS);
    await list.need(20);
    expect([list.rows.length, list.count, list.complete]).toEqual([600, TOTAL, false]);
    await list.need(2999);
    expect([list.rows.length, list.count, list.complete]).toEqual([TOTAL, TOTAL, true]);
    expect(new Set(list.rows.map(({ id }) => id)).size).toBe(TOTAL);
  });

  it('asks one question at a time, and of those that came meanwhile only the last', async () => {
    const list = new HistoryList();
    let answer!: (page: HistoryPage) => void;
    vi.mocked(client.historyPage).mockImplementationOnce(() => new Promise((resolve) => (answer = resolve)));
    const asked = ['q', 'qu', 'qui', 'quick'].map((text) => list.start({ ...NO_FILTERS, text }));
    expect(vi.mocked(client.historyPage)).toHaveBeenCalledTimes(1);
    answer({ runs: [run(1, { run_id: 'late' })], next: null });
    await Promise.all(asked);
    const texts = vi.mocked(client.historyPage).mock.calls.map(([filter]) => filter.text);
    expect([...new Set(texts)]).toEqual(['q', 'quick']);
    expect(list.rows.some(({ id }) => id === 'late')).toBe(false);
    expect([list.filters.text, list.lists]).toEqual(['quick', 1]);
  });

  it('takes a run that just ended on top, once, and only where it belongs', async () => {
    const list = new HistoryList();
    await list.start({ ...NO_FILTERS, status: 'failed' });
    expect(list.prepend(run(9, { run_id: 'new', status: 'ok' }))).toBe(false);
    expect(list.prepend(run(9, { run_id: 'new', status: 'failed' }))).toBe(true);
    expect(list.prepend(run(9, { run_id: 'new', status: 'failed' }))).toBe(false);
    expect(list.rows[0]?.id).toBe('new');
    list.remove('new');
    expect(list.rows[0]?.id).toBe('r0');
    expect(belongs(run(1), { ...NO_FILTERS, text: 'a' })).toBe(false);
    expect(belongs(run(1), { ...NO_FILTERS, client: { client: 'agent', program: 'node' }, language: 'python' })).toBe(false);
    const unknown = { ...NO_FILTERS, client: { client: 'agent', program: null } };
    expect([belongs(run(1), unknown), belongs(run(1, { client_program: 'node' }), unknown)]).toEqual([true, false]);
    const now = Date.now();
    const day = (at: number, day: string) => belongs(run(at), { ...NO_FILTERS, day });
    expect([day(now, 'today'), day(now, 'yesterday'), day(now - 3 * 86_400_000, 'week'), day(now - 8 * 86_400_000, 'week')]).toEqual([true, false, true, false]);
  });

  it('is asked for the runs of one name and program, of an unknown program too', async () => {
    const list = new HistoryList();
    const asked = async (who: Who | null) => {
      await list.start({ ...NO_FILTERS, client: who });
      const filter = vi.mocked(client.historyPage).mock.lastCall?.[0];
      return [filter?.client, filter?.program];
    };
    expect(await asked({ client: 'agent', program: 'node' })).toEqual(['agent', 'node']);
    expect(await asked({ client: 'agent', program: null })).toEqual(['agent', '']);
    expect(await asked(null)).toEqual([undefined, undefined]);
  });

  it('is asked for the days that are chosen', async () => {
    const list = new HistoryList();
    await list.start({ ...NO_FILTERS, day: '2026-03-12' });
    const from = new Date(2026, 2, 12).getTime();
    expect(vi.mocked(client.historyPage).mock.calls[0]?.[0]).toMatchObject({ from_ms: from, until_ms: new Date(2026, 2, 13).getTime() });
    await list.start(NO_FILTERS);
    const all = vi.mocked(client.historyPage).mock.lastCall?.[0];
    expect([all?.from_ms, all?.until_ms]).toEqual([undefined, undefined]);
  });

  it('says when it can’t be read', async () => {
    const list = new HistoryList();
    vi.mocked(client.historyPage).mockRejectedValueOnce({ code: 'internal', message: 'The disk is gone.', faults: [] });
    await list.start(NO_FILTERS);
    expect(list.failure?.message).toBe('The disk is gone.');
    await list.start(NO_FILTERS);
    expect(list.failure).toBeNull();
  });
});

describe('hello world', () => {
  const error = { code: 'internal', message: 'No.', faults: [] };

  it('has no id any more once it is over, even where its id comes last', async () => {
    vi.mocked(client.tryIt).mockImplementationOnce(async (_, tell) => {
      tell({ kind: 'refused', error });
      return 'first';
    });
    await trial.start('python');
    expect([trial.busy, trial.runId, trial.failure]).toEqual([false, null, error]);
    let tell!: Parameters<typeof client.tryIt>[1];
    vi.mocked(client.tryIt).mockImplementationOnce(async (_, handler) => {
      tell = handler;
      return 'second';
    });
    await trial.start('python');
    expect([trial.busy, trial.runId]).toEqual([true, 'second']);
    tell({ kind: 'refused', error });
    expect([trial.busy, trial.runId]).toEqual([false, null]);
  });
});

describe('settings', () => {
  const saved = { enabled: true, theme: 'system', limits: { seconds: 60 } } as Settings;

  it('change one thing on top of what is saved by then', async () => {
    let disk = saved;
    vi.mocked(client.readSettings).mockImplementation(async () => disk);
    vi.mocked(client.applySettings).mockImplementation(async (wanted) => (disk = wanted));
    await settings.read();
    disk = { ...disk, enabled: false };
    const both = [settings.change('theme', (s) => (s.theme = 'dark')), settings.change('limits.seconds', (s) => (s.limits.seconds = 5))];
    expect(await Promise.all(both)).toEqual([true, true]);
    expect(disk).toMatchObject({ enabled: false, theme: 'dark', limits: { seconds: 5 } });
  });

  it('keep what they were where the app refuses, and say why beside the field', async () => {
    vi.mocked(client.readSettings).mockResolvedValue(saved);
    vi.mocked(client.applySettings).mockRejectedValueOnce({
      code: 'invalid_params', message: 'No.', faults: [{ field: 'limits.seconds', message: 'must be from 0.1 to 3600' }],
    });
    await settings.read();
    expect(await settings.change('limits.seconds', (s) => (s.limits.seconds = 0))).toBe(false);
    expect(settings.faults['limits.seconds']).toBe('It must be from 0.1 to 3600.');
    expect(settings.saved?.limits.seconds).toBe(60);
  });
});

describe('what the app says of itself', () => {
  it('is heard until the window stops listening', async () => {
    let tell!: Parameters<typeof client.subscribe>[0];
    const ended = vi.fn();
    vi.mocked(client.subscribe).mockImplementation(async (handler) => {
      tell = handler;
      return ended;
    });
    const finished = vi.fn();
    const stopHearing = owner.finished(finished);
    const stop = owner.start();
    await Promise.resolve();
    tell({ kind: 'snapshot', snapshot: { notices: ['set aside'] } as never });
    tell({ kind: 'notice', text: 'set aside' });
    tell({ kind: 'notice', text: 'lost' });
    expect(owner.notices.map(({ text }) => text)).toEqual(['set aside', 'lost']);
    owner.closeNotice('set aside');
    expect(owner.notices.map(({ text }) => text)).toEqual(['lost']);
    tell({ kind: 'finished', run: run(1) });
    stopHearing();
    stop();
    tell({ kind: 'finished', run: run(2) });
    expect(finished).toHaveBeenCalledTimes(1);
    expect(ended).toHaveBeenCalledTimes(1);
  });
});
