import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { BOUNDS, readNumber } from './bounds';

describe('a number in the settings', () => {
  const memory = BOUNDS['limits.memory_mb'];
  const seconds = BOUNDS['limits.seconds'];

  it('may be written as people write it', () => {
    expect([readNumber(' 512 ', memory), readNumber('100,000', memory), readNumber('0,5', seconds), readNumber('2.5', seconds)]).toEqual([
      512, 100_000, 0.5, 2.5,
    ]);
    expect([readNumber('1,024', memory), readNumber('0,125', seconds), readNumber('1 048 576', memory)]).toEqual([1024, 0.125, 1_048_576]);
  });

  it('is refused with the sentence that helps', () => {
    expect(readNumber('8', memory)).toBe('Enter a number from 32 to 1,048,576.');
    expect(readNumber('64.5', memory)).toBe('Enter a whole number.');
    expect([readNumber('', memory), readNumber('1e9', memory), readNumber('NaN', seconds), readNumber('-', seconds)]).toEqual([
      'Enter a whole number.', 'Enter a whole number.', 'Enter a number.', 'Enter a number.',
    ]);
  });

  it('has the bounds that the core has', () => {
    const rust = readFileSync(new URL('../../../src-tauri/core/src/settings/bounds.rs', import.meta.url), 'utf8');
    const found = new Map([...rust.matchAll(/const (\w+): RangeInclusive<\w+> = ([\d._]+)\.\.=([\d._]+);/g)].map(([, name, min, max]) => [name, [min, max].map((n) => Number(n!.replaceAll('_', '')))]));
    const name = (field: string) => field.replace('limits.', '').replace('history.max_', 'history_').toUpperCase();
    const own = Object.entries(BOUNDS).map(([field, { min, max }]) => [name(field), [min, max]] as const);
    // All of them: a number that the core has and the window lacks could not be set here.
    expect(new Map(own)).toEqual(found);
  });
});
