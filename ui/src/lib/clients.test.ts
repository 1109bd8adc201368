import { describe, expect, it } from 'vitest';

import { isOwn, keyOf, whoText } from './clients';
import { EXAMPLES, told, WAYS } from './connect';
import { DEFAULT_IMAGES, defaultOf, DEFAULTS, setOf, valueOf } from './defaults';
import type { ImageView } from './ipc/types';
import { NOTIFICATIONS_HINT } from './notices';

describe('a client', () => {
  it('is named with its program, which no claim can replace', () => {
    expect(whoText({ client: 'claude', program: 'node' })).toBe('claude (node)');
    expect(whoText({ client: 'node', program: 'node' })).toBe('node');
    expect(whoText({ client: 'claude', program: null })).toBe('claude (unknown program)');
    expect(whoText({ client: 'Sandtray', program: null })).toBe('Sandtray (this window)');
    expect(whoText({ client: 'Sandtray', program: 'python3' })).toBe('Sandtray (python3)');
    expect([isOwn({ client: 'Sandtray', program: null }), isOwn({ client: 'Sandtray', program: 'python3' })]).toEqual([true, false]);
    expect(whoText({ client: 'a\u202eb', program: 'c\nd' })).toBe('a⟦U+202E⟧b (c␊d)');
  });

  it('of another program is another choice', () => {
    expect(new Set([keyOf({ client: 'a', program: 'b' }), keyOf({ client: 'a', program: null }), keyOf({ client: 'a","b', program: null })]).size).toBe(3);
  });
});

describe('connecting', () => {
  it('has the socket in each example that opens it, as a text of that language', () => {
    const socket = '/run/a "b"\\c/é.sock';
    for (const way of WAYS) expect(EXAMPLES[way].text(socket).includes('"/run/a \\"b\\"\\\\c/é.sock"')).toBe(way !== 'terminal');
  });

  it('says what an agent is told, with the owner’s limits', () => {
    const image = (title: string, language_version: string) => ({ title, language_version }) as ImageView;
    const limits = { ...DEFAULTS.limits, seconds: 5, cpus: 2 };
    const text = told([image('Python', '3.12'), image('JavaScript', 'Node 22'), image('Shell', 'POSIX sh on Alpine')], limits).replaceAll('\u00a0', ' ');
    expect(text).toContain('a short program in Python 3.12, JavaScript (Node 22) or Shell.');
    expect(text).toContain('may take 5 s, 2 processors and 512 MB of memory; it may print 64 KB and be given or write 5 MB of files.');
  });
});

describe('the settings', () => {
  it('know what each was by default', () => {
    expect([defaultOf('limits.memory_mb'), defaultOf('concurrency'), defaultOf('history.keep'), defaultOf('no.such')]).toEqual([512, null, 'everything', undefined]);
    const settings = structuredClone(DEFAULTS);
    setOf('limits.seconds', 5)(settings);
    setOf('concurrency', 3)(settings);
    expect([settings.limits.seconds, settings.concurrency, valueOf(settings, 'limits.seconds')]).toEqual([5, 3, 5]);
    expect(settings).toEqual({ ...DEFAULTS, concurrency: 3, limits: { ...DEFAULTS.limits, seconds: 5 } });
    expect(DEFAULT_IMAGES.python).toBe('python:3.12-slim');
  });

  it('name every kind of notification', () => {
    expect(NOTIFICATIONS_HINT).toBe(
      'When a new agent runs code; a program is stopped by a limit or cut off; an image has been fetched or can’t be; Docker goes away or comes back; ' +
        'runs can’t be recorded, or can again; this app takes over from another Sandtray; or running code is turned on. A press on one shows what it tells of. ' +
        'Always told: when settings can’t be written; the window closes for the first time or ends by itself; or Sandtray was updated. ' +
        'Turned off, the window and the tray still say when running code was turned on.',
    );
  });
});
