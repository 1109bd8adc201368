import { beforeEach, describe, expect, it, vi } from 'vitest';

import { watchRun } from './client';
import type { LiveEvent } from './types';

interface Sent {
  command: string;
  args: Record<string, unknown>;
  answer: (value?: unknown) => void;
}

const sent = vi.hoisted(() => [] as Sent[]);

vi.mock('@tauri-apps/api/core', () => ({
  Channel: class {
    onmessage: (event: unknown) => void = () => {};
  },
  invoke: (command: string, args: Record<string, unknown>) =>
    new Promise((answer) => {
      sent.push({ command, args, answer });
    }),
}));

const line: LiveEvent = { kind: 'output', stream: 'stdout', text: 'x', missed: 0 };
const tell = (watch: Sent | undefined, event: LiveEvent) => (watch?.args['channel'] as { onmessage: (event: LiveEvent) => void }).onmessage(event);

describe('watching a run', () => {
  beforeEach(() => void (sent.length = 0));

  it('ends by its own number, so a later watch of the same run goes on', async () => {
    const [first, second] = [vi.fn(), vi.fn()];
    const leaving = watchRun('a', first);
    const opening = watchRun('a', second);
    // The app answers the later one first.
    sent[1]?.answer(2);
    await opening;
    sent[0]?.answer(1);
    const leave = await leaving;
    leave();
    leave();
    expect(sent.slice(2).map(({ command, args }) => [command, args])).toEqual([['unwatch_run', { watch: 1 }]]);
    tell(sent[0], line);
    tell(sent[1], line);
    expect([first.mock.calls.length, second.mock.calls.length]).toEqual([0, 1]);
  });

  it('that ended by itself is not ended again', async () => {
    const heard = vi.fn();
    const watching = watchRun('a', heard);
    sent[0]?.answer(1);
    const leave = await watching;
    tell(sent[0], { kind: 'ended' });
    tell(sent[0], line);
    leave();
    expect(heard.mock.calls).toEqual([[{ kind: 'ended' }]]);
    expect(sent.length).toBe(1);
  });
});
