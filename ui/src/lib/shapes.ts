// The shape and colour of a verdict: the same in lists, on a run's page and in the picture of the day. Pure.

import type { IconName } from '../components/Icon.svelte';
import { isStatus } from './words';

export type Look = 'ok' | 'failed' | 'timeout' | 'out_of_memory' | 'output_limit' | 'cancelled' | 'interrupted' | 'refused';

export const LOOKS: readonly Look[] = ['ok', 'failed', 'timeout', 'out_of_memory', 'output_limit', 'cancelled', 'interrupted', 'refused'];

export function lookOf(status: string): Look {
  return isStatus(status) ? status : 'refused';
}

export const ICON_OF: Record<Look, IconName> = {
  ok: 'check',
  failed: 'cross',
  timeout: 'clock',
  out_of_memory: 'chip',
  output_limit: 'overflow',
  cancelled: 'dash',
  interrupted: 'torn',
  refused: 'barred',
};

export function colourOf(look: Look): string {
  return `var(--${look === 'refused' ? 'cancelled' : look})`;
}

/** A small mark around a point, as a piece of an SVG path; `ok` is filled, the others are lines. */
export function markPath(look: Look, x: number, y: number, r: number): string {
  const at = `M${f(x)} ${f(y)}`;
  switch (look) {
    case 'ok':
      return `${at}m${f(-r * 0.7)} 0${circle(r * 0.7)}`;
    case 'failed':
      return `${at}m${f(-r)} ${f(-r)}l${f(2 * r)} ${f(2 * r)}m0 ${f(-2 * r)}l${f(-2 * r)} ${f(2 * r)}`;
    case 'timeout':
      return `${at}m${f(-r)} 0${circle(r)}M${f(x)} ${f(y - r * 0.6)}v${f(r * 0.6)}h${f(r * 0.5)}`;
    case 'out_of_memory':
      return `${at}m${f(-r)} ${f(-r)}h${f(2 * r)}v${f(2 * r)}h${f(-2 * r)}z`;
    case 'output_limit':
      return `${at}m0 ${f(-r)}l${f(r)} ${f(1.8 * r)}h${f(-2 * r)}z`;
    case 'cancelled':
      return `${at}m${f(-r)} 0h${f(2 * r)}`;
    case 'interrupted':
      return `${at}m${f(-r)} 0h${f(0.7 * r)}m${f(0.6 * r)} 0h${f(0.7 * r)}m${f(-1.3 * r)} ${f(-0.8 * r)}v${f(1.6 * r)}m${f(0.6 * r)} ${f(-1.6 * r)}v${f(1.6 * r)}`;
    case 'refused':
      return `${at}m${f(-r)} 0${circle(r)}m${f(0.3 * r)} ${f(-0.7 * r)}l${f(1.4 * r)} ${f(1.4 * r)}`;
  }
}

function circle(r: number): string {
  return `a${f(r)} ${f(r)} 0 1 0 ${f(2 * r)} 0a${f(r)} ${f(r)} 0 1 0 ${f(-2 * r)} 0`;
}

const f = (value: number) => Math.round(value * 10) / 10;
