import { describe, expect, it } from 'vitest';

import { dateOf, DAYS, isDate, spanOf } from './days';

// In the time of whatever computer runs the test, as the window does.
const at = (...parts: [number, number, number, number?, number?]) => new Date(...parts).getTime();
const NOON = at(2026, 2, 12, 12, 30);

describe('days', () => {
  it('begin and end at midnight of this computer', () => {
    expect(spanOf('today', NOON)).toEqual({ from: at(2026, 2, 12) });
    expect(spanOf('yesterday', NOON)).toEqual({ from: at(2026, 2, 11), until: at(2026, 2, 12) });
    expect(spanOf('week', NOON)).toEqual({ from: at(2026, 2, 6) });
    expect(spanOf('2026-03-29', NOON)).toEqual({ from: at(2026, 2, 29), until: at(2026, 2, 30) });
    expect(spanOf('yesterday', at(2026, 0, 1))).toEqual({ from: at(2025, 11, 31), until: at(2026, 0, 1) });
    expect(spanOf('', NOON)).toBeNull();
    expect(DAYS.every(([day]) => spanOf(day, NOON) !== null)).toBe(true);
  });

  it('are dates only where there is such a date', () => {
    expect(['2026-03-12', '2026-3-1', '2024-02-29'].map(isDate)).toEqual([true, true, true]);
    expect(['', 'today', '2026-02-30', '2026-13-01', '2026-00-10', '12.3.2026', '2026-03'].map(isDate)).toEqual(Array(7).fill(false));
    expect(dateOf(at(2026, 2, 5, 23, 59))).toBe('2026-03-05');
    expect(isDate(dateOf(NOON))).toBe(true);
  });
});
