// A grid without columns grows with the longest word in it, and pushes what stands beside it out of the window.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from 'vitest';

const SOURCE = new URL('..', import.meta.url).pathname;

function grids(text: string): string[] {
  const rules = text.slice(Math.max(0, text.indexOf('<style>'))).match(/[^{}]*\{[^{}]*\}/g) ?? [];
  return rules.filter((rule) => /display:\s*(inline-)?grid/.test(rule));
}

it('says of every grid how wide its columns may be', () => {
  const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).filter((name) => /\.(svelte|css)$/.test(name));
  const found = files.flatMap((name) => grids(readFileSync(join(SOURCE, name), 'utf8')).map((rule) => ({ name, rule })));
  expect(found.length).toBeGreaterThan(15);
  expect(found.filter(({ rule }) => !rule.includes('grid-template-columns'))).toEqual([]);
});
