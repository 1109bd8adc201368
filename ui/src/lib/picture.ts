// Where the dots of the last day go. Pure.

import { clock, seconds } from './format';
import type { RecentRun } from './ipc/types';
import { LOOKS, lookOf, markPath, type Look } from './shapes';

interface Frame {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
  from: number;
  to: number;
  /** Seconds at the top. */
  most: number;
}

const LEAST = 0.01;
const MINUTE = 60 * 1000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function frameOf(runs: readonly RecentRun[], box: { width: number; height: number; left: number; bottom: number }, from: number, to: number): Frame {
  const longest = runs.reduce((most, run) => Math.max(most, run.seconds ?? 0), 0);
  const most = [1, 10, 100, 1000].find((step) => longest <= step * 0.8) ?? 4000;
  return { ...box, right: 8, top: 8, from, to, most };
}

export function xOf(frame: Frame, atMs: number): number {
  const share = (atMs - frame.from) / (frame.to - frame.from);
  return frame.left + Math.min(1, Math.max(0, share)) * (frame.width - frame.left - frame.right);
}

/** Logarithmic: 10 ms and a minute have a place in one picture. */
export function yOf(frame: Frame, value: number | null): number {
  const bounded = Math.min(frame.most, Math.max(LEAST, value ?? LEAST));
  const share = Math.log(bounded / LEAST) / Math.log(frame.most / LEAST);
  return frame.height - frame.bottom - share * (frame.height - frame.bottom - frame.top);
}

export function yTicks(frame: Frame): { y: number; text: string }[] {
  return [0.01, 0.1, 1, 10, 100, 1000]
    .filter((value) => value <= frame.most)
    .map((value) => ({ y: yOf(frame, value), text: seconds(value) }));
}

/** Steps of time that a clock has a name for. */
const STEPS = [5, 10, 15, 30, 60, 120, 180, 240, 360, 720].map((minutes) => minutes * MINUTE);

/** Round times of the day, as many as have room. */
export function xTicks(frame: Frame, room: number): { x: number; text: string }[] {
  const inside = frame.width - frame.left - frame.right;
  const step = STEPS.find((time) => (inside * time) / (frame.to - frame.from) >= room) ?? 12 * HOUR;
  const ticks = [];
  // Midnight here, whatever the time of the world.
  const midnight = new Date(frame.from).setHours(0, 0, 0, 0);
  for (let at = midnight + Math.ceil((frame.from - midnight) / step) * step; at <= frame.to; at += step) {
    const x = xOf(frame, at);
    if (x > frame.width - room / 2 || x < frame.left) continue;
    ticks.push({ x, text: clock(at) });
  }
  return ticks;
}

/** Where the picture begins: on the first day with the first run there ever was, so that it is not one stripe at the edge. */
export function beginOf(inside: readonly RecentRun[], total: number | null, now: number): number {
  if (inside.length === 0 || total === null || inside.length < total) return now - DAY;
  const first = inside.reduce((least, run) => Math.min(least, run.at_ms), now);
  const quarter = 15 * MINUTE;
  // A round time, and an hour at least.
  return Math.max(now - DAY, Math.floor(Math.min(first, now - HOUR) / quarter) * quarter);
}

/** One path for all runs of one look: a thousand dots are seven elements. */
export function paths(frame: Frame, runs: readonly RecentRun[], radius: number): { look: Look; path: string }[] {
  const found = new Map<Look, string[]>();
  for (const run of runs) {
    if (run.at_ms < frame.from) continue;
    const look = lookOf(run.status);
    const path = found.get(look) ?? [];
    path.push(markPath(look, xOf(frame, run.at_ms), yOf(frame, run.seconds), radius));
    found.set(look, path);
  }
  return LOOKS.flatMap((look) => {
    const path = found.get(look);
    return path ? [{ look, path: path.join('') }] : [];
  });
}

export function nearest(frame: Frame, runs: readonly RecentRun[], x: number, y: number, within: number): RecentRun | null {
  let best: RecentRun | null = null;
  let least = within * within;
  for (const run of runs) {
    if (run.at_ms < frame.from) continue;
    const distance = (xOf(frame, run.at_ms) - x) ** 2 + (yOf(frame, run.seconds) - y) ** 2;
    if (distance < least) [best, least] = [run, distance];
  }
  return best;
}
