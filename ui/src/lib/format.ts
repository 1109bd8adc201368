// Numbers as a person reads them. Pure; the same everywhere.

const KB = 1024;
/** A number stays with its unit. */
const NB = '\u00a0';

/** 512 B, 84 KB, 1.5 MB, 131 MB, 2.1 GB. */
export function bytes(count: number): string {
  if (!Number.isFinite(count) || count < 0) return '–';
  if (count < KB) return `${Math.round(count)}${NB}B`;
  let value = count;
  let unit = 'B';
  for (const next of ['KB', 'MB', 'GB', 'TB']) {
    value /= KB;
    unit = next;
    if (value < 999.5) break;
  }
  return `${short(value)}${NB}${unit}`;
}

/** 0 ms, 14 ms, 1.2 s, 90 s, 3 min 5 s, 2 h 10 min. */
export function seconds(value: number | null): string {
  if (value === null || !Number.isFinite(value) || value < 0) return '–';
  if (value < 0.9995) return `${Math.round(value * 1000)}${NB}ms`;
  if (value < 119.5) return `${short(value)}${NB}s`;
  const whole = Math.round(value);
  if (whole < 3600) return joined(Math.floor(whole / 60), 'min', whole % 60, 's');
  const minutes = Math.round(whole / 60);
  return joined(Math.floor(minutes / 60), 'h', minutes % 60, 'min');
}

/** Whole seconds, for a figure that ticks. */
export function ticking(value: number): string {
  const whole = Math.max(0, Math.floor(value));
  return whole < 120 ? `${whole}${NB}s` : seconds(whole);
}

/** Never 100 % before all of it is there. */
export function percent(fraction: number): string {
  return `${Math.floor(Math.min(1, Math.max(0, fraction)) * 100)}${NB}%`;
}

/** 97 %, and never 100 % where one is missing or 0 % where one is there. */
export function share(part: number, whole: number): string {
  if (whole === 0) return '–';
  if (part === whole) return `100${NB}%`;
  if (part === 0) return `0${NB}%`;
  return `${Math.min(99, Math.max(1, Math.round((part / whole) * 100)))}${NB}%`;
}

export function rate(bytesPerSecond: number): string {
  return `${bytes(bytesPerSecond)}/s`;
}

/** 1 run, 128 runs, 100,000 runs. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

export function grouped(count: number): string {
  return Math.round(count)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ',');
}

/** just now, 3 min ago, 2 h ago, yesterday, 12 Mar, 12 Mar 2024. */
export function ago(atMs: number, nowMs: number): string {
  const past = Math.max(0, nowMs - atMs) / 1000;
  if (past < 10) return 'just now';
  if (past < 60) return `${Math.floor(past)} s ago`;
  if (past < 3600) return `${Math.floor(past / 60)} min ago`;
  const at = new Date(atMs);
  const now = new Date(nowMs);
  const days = calendarDays(at, now);
  if (days === 0 || past < 6 * 3600) return `${Math.floor(past / 3600)} h ago`;
  if (days === 1) return 'yesterday';
  const day = `${at.getDate()} ${MONTHS[at.getMonth()]}`;
  return at.getFullYear() === now.getFullYear() ? day : `${day} ${at.getFullYear()}`;
}

/** For a tooltip: exact, local time. */
export function exact(atMs: number): string {
  const at = new Date(atMs);
  const two = (part: number) => part.toString().padStart(2, '0');
  return (
    `${at.getDate()} ${MONTHS[at.getMonth()]} ${at.getFullYear()}, ` +
    `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
  );
}

export function clock(atMs: number): string {
  const at = new Date(atMs);
  return `${at.getHours().toString().padStart(2, '0')}:${at.getMinutes().toString().padStart(2, '0')}`;
}

export function median(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

function calendarDays(from: Date, to: Date): number {
  const day = (date: Date) => Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) / 86_400_000;
  return day(to) - day(from);
}

/** At most three digits that mean something: 1.2, 9.9, 42, 131. */
function short(value: number): string {
  return value < 9.95 ? value.toFixed(1).replace(/\.0$/, '') : Math.round(value).toString();
}

function joined(big: number, bigUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${big}${NB}${bigUnit}` : `${big}${NB}${bigUnit} ${small}${NB}${smallUnit}`;
}
