// A day, or a few, as a person chooses them: in the time of this computer. Pure.

/** '' for all, a word, or a date as `2026-03-12`. */
export type Day = string;

export const DAYS: [Day, string][] = [
  ['today', 'Today'],
  ['yesterday', 'Yesterday'],
  ['week', 'Last 7 days'],
];

interface Span {
  from: number;
  /** Not of it any more; none: it goes on. */
  until?: number;
}

/** `null`: all days, or what is no date. */
export function spanOf(day: Day, nowMs: number): Span | null {
  const now = new Date(nowMs);
  // Midnight of another day, however long the days between are.
  const midnight = (days: number) => new Date(now.getFullYear(), now.getMonth(), now.getDate() + days).getTime();
  if (day === 'today') return { from: midnight(0) };
  if (day === 'yesterday') return { from: midnight(-1), until: midnight(0) };
  if (day === 'week') return { from: midnight(-6) };
  const [, year, month, date] = (/^(\d{4})-(\d{1,2})-(\d{1,2})$/.exec(day.trim()) ?? []).map(Number);
  if (year === undefined || month === undefined || date === undefined) return null;
  const from = new Date(year, month - 1, date);
  if (from.getMonth() !== month - 1 || from.getDate() !== date) return null;
  return { from: from.getTime(), until: new Date(year, month - 1, date + 1).getTime() };
}

export function isDate(day: Day): boolean {
  return spanOf(day, 0) !== null && /^\d/.test(day.trim());
}

/** Today, as a date that can be chosen. */
export function dateOf(nowMs: number): Day {
  const now = new Date(nowMs);
  const two = (part: number) => part.toString().padStart(2, '0');
  return `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
}
