// What a setting is until the owner changes it; a test of the app writes the figures.

import written from './ipc/generated/defaults.json';
import type { Language, Settings } from './ipc/types';

export const DEFAULTS = written.settings as Settings;
export const DEFAULT_IMAGES = written.images as Record<Language, string>;

/** By field, as the file names it: `limits.seconds`. */
export function valueOf(settings: Settings, field: string): unknown {
  return field.split('.').reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], settings);
}

export function defaultOf(field: string): unknown {
  return valueOf(DEFAULTS, field);
}

/** The change that gives a field this value. */
export function setOf(field: string, value: unknown): (settings: Settings) => void {
  const path = field.split('.');
  const last = path.pop() ?? '';
  return (settings) => {
    const group = path.length === 0 ? settings : valueOf(settings, path.join('.'));
    (group as Record<string, unknown>)[last] = value;
  };
}

/** What a row of the settings offers where its value is not the default. */
export interface Reset {
  /** The default, in words. */
  was: string;
  act: () => void;
}
