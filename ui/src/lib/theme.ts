// Light or dark on the root element, so that the styles name each colour once.

import type { Theme } from './ipc/types';

let chosen: Theme = 'system';
const dark = typeof matchMedia === 'undefined' ? null : matchMedia('(prefers-color-scheme: dark)');

export function installTheme(): void {
  dark?.addEventListener('change', paint);
  paint();
}

export function chooseTheme(theme: Theme): void {
  chosen = theme;
  paint();
}

function paint(): void {
  const isDark = chosen === 'dark' || (chosen === 'system' && dark?.matches === true);
  document.documentElement.dataset['theme'] = isDark ? 'dark' : 'light';
}
