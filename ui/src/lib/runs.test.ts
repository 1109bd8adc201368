import { describe, expect, it } from 'vitest';

import { detailsOf, detailsOfLive } from './details';
import { inOrder } from './files';
import type { FileView, ImageView, LiveRequest, LiveRunView, RecentRun, RunRecord } from './ipc/types';
import { indentJson } from './output/json';
import { beginOf, frameOf, xTicks } from './picture';
import { tabsOf } from './tabs';
import { endedAt, exactImage, savedWords, versionWords } from './words';

const file = (name: string, kind: 'picture' | 'none' = 'none'): FileView => ({ name, size: 1, preview: { kind } });
const HOUR = 3_600_000;

describe('files', () => {
  it('come with pictures first, then by name as a person counts', () => {
    const files = ['data.json', 'plot-10.png', 'plot-2.png', 'a.txt', 'A.txt'].map((name) => file(name, name.endsWith('.png') ? 'picture' : 'none'));
    expect(inOrder(files).map(({ name }) => name)).toEqual(['plot-2.png', 'plot-10.png', 'a.txt', 'A.txt', 'data.json']);
  });

  it('of JSON are indented without a change of what they say', () => {
    expect(indentJson('{"a":[1,2.50,{}],"b":"x, {y}: \\"z\\"","c":12345678901234567890,"d":[]}')).toBe(
      '{\n  "a": [\n    1,\n    2.50,\n    {}\n  ],\n  "b": "x, {y}: \\"z\\"",\n  "c": 12345678901234567890,\n  "d": []\n}',
    );
    for (const text of ['{"a":1', '1', '"x"', '{\n "a": 1\n}', '', `${'['.repeat(60)}${']'.repeat(60)}`]) expect(indentJson(text)).toBe(null);
    const wide = JSON.stringify(Array.from({ length: 20_000 }, (_, at) => at));
    expect(JSON.parse(indentJson(wide)!)).toEqual(JSON.parse(wide));
  });

  it('that were saved are said with their place', () => {
    expect(savedWords({ folder: '/home/ada', name: 'a.png', count: 1 })).toBe('Saved as a.png in /home/ada');
    expect(savedWords({ folder: '/home/ada', name: 'a.png', count: 3 })).toBe('Saved 3 files in /home/ada');
  });
});

describe('a run', () => {
  it('was over after it had waited and run', () => {
    expect(endedAt({ at_ms: 1000, queued_seconds: 2, seconds: 20.5 })).toBe(23_500);
    expect(endedAt({ at_ms: 1000, queued_seconds: null, seconds: null })).toBe(1000);
  });

  it('has the same tabs in each of its states, but for files that are not there yet', () => {
    expect(tabsOf({ inputs: 2, files: null }).map(({ name }) => name)).toEqual(['Output', 'Code', 'Inputs (2)', 'Details']);
    expect(tabsOf({ inputs: 0, files: 4 }).map(({ name }) => name)).toEqual(['Output', 'Code', 'Inputs', 'Files (4)', 'Details']);
  });

  it('says its exact terms under Details', () => {
    const limits = { seconds: 60, memory_bytes: 512 * 2 ** 20, cpus: 1, processes: 128, output_bytes: 65_536, file_bytes: 5 * 2 ** 20 };
    const run = {
      at_ms: 0, client: 'agent', client_pid: 7, client_program: 'node', code_bytes: 3, code_sha256: 'ab', stdin_bytes: 0, run_id: 'r', status: 'timeout', ended_by: 'client_left', exit_code: 137,
      queued_seconds: 0, seconds: 60, cpu_seconds: 1, memory_bytes: 1, oom_kills: 0, stdout: { produced: 1, returned: 1 }, stderr: { produced: 0, returned: 0 }, image: 'python@sha256:1', limits,
    } as RunRecord['run'];
    const body = { args: ['--year', ''], inputs: [], skipped_files: [{ name: 'l', reason: 'symlink' }], left_behind: ['x'] } as unknown as RunRecord['body'];
    const groups = new Map(detailsOf({ run, body }).map(([title, rows]) => [title, new Map(rows)]));
    expect(groups.get('Result')?.get('Result')).toBe('Out of time (timeout)');
    expect(groups.get('Result')?.get('Ended by')).toBe('client left');
    expect(groups.get('Result')?.get('Image')).toBe('python@sha256:1');
    expect(groups.get('Request')?.get('Its program')).toBe('node, process 7');
    expect(detailsOf({ run, body })[0]![1].filter(([name]) => name === 'Argument')).toEqual([['Argument', '--year'], ['Argument', '(empty)']]);
    expect([...groups.get('Left out')!.values()]).toEqual(['a link, not a file', 'was not in the folder for results']);
    const request = { client_pid: null, client_program: null, code_bytes: 3, limits, overflow: 'truncate', args: ['-v'], inputs: [] } as unknown as LiveRequest;
    const live = new Map(detailsOfLive({ client: 'agent', run_id: 'r', started_ms: 0 } as LiveRunView, true, request).flatMap(([, rows]) => rows));
    expect(live.get('Argument')).toBe('-v');
    expect([live.has('Asked for'), live.get('Output')]).toEqual([true, '64\u00a0KB of each stream; what is longer is shortened']);
  });
});

describe('the picture of the day', () => {
  const now = new Date(2026, 2, 3, 15, 40).getTime();
  const runs = (...ago: number[]) => ago.map((ms) => ({ at_ms: now - ms }) as RecentRun);

  it('begins with the first run there ever was, on the first day', () => {
    expect(new Date(beginOf(runs(3 * HOUR + 1, HOUR), 2, now)).getHours()).toBe(12);
    expect(now - beginOf(runs(60_000), 1, now)).toBe(70 * 60_000);
    expect(now - beginOf(runs(60_000), 2, now)).toBe(24 * HOUR);
    expect(now - beginOf([], 0, now)).toBe(24 * HOUR);
    expect(now - beginOf(runs(60_000), null, now)).toBe(24 * HOUR);
  });

  it('has round times under it, whatever it covers', () => {
    const ticks = (span: number) => xTicks(frameOf([], { width: 700, height: 200, left: 50, bottom: 20 }, now - span, now), 70).map(({ text }) => text);
    expect(ticks(HOUR)).toEqual(['14:40', '14:50', '15:00', '15:10', '15:20', '15:30']);
    expect(ticks(24 * HOUR)).toEqual(['18:00', '21:00', '00:00', '03:00', '06:00', '09:00', '12:00']);
  });
});

describe('a language', () => {
  it('is told in plain words, with the exact ones at hand', () => {
    const shell = { language: 'shell', language_version: 'POSIX sh on Alpine', image: 'alpine:3.22', state: 'ready', size_bytes: 1, digest: 'sha256:ab' } as ImageView;
    expect([versionWords(shell), exactImage(shell)]).toEqual(['small scripts', 'alpine:3.22@sha256:ab']);
    expect(exactImage({ image: 'alpine@sha256:cd', state: 'unknown' } as ImageView)).toBe('alpine@sha256:cd');
    expect(versionWords({ language: 'python', language_version: '3.12' })).toBe('3.12');
  });
});
