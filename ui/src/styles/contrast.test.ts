import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

const css = readFileSync(new URL('./tokens.css', import.meta.url), 'utf8');

function theme(name: string): Record<string, string> {
  const block = css.split(`[data-theme='${name}']`)[1]!.split('}')[0]!;
  return Object.fromEntries([...block.matchAll(/--([\w-]+):\s*(#[0-9a-f]{6})/g)].map(([, key, value]) => [key, value]));
}

function luminance(hex: string): number {
  const part = (at: number) => {
    const value = parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

const WORDS = ['text', 'muted', 'accent', 'ok', 'failed', 'timeout', 'out_of_memory', 'output_limit', 'cancelled', 'interrupted'];
const TERMINAL = ['t-black', 't-red', 't-green', 't-yellow', 't-blue', 't-magenta', 't-cyan', 't-white'];

describe.each(['light', 'dark'])('%s', (name) => {
  const colours = theme(name);

  it('has words that can be read wherever they stand', () => {
    const poor: string[] = [];
    const check = (words: string[], grounds: string[], least: number) => {
      for (const word of words) {
        for (const ground of grounds) {
          const found = contrast(colours[word]!, colours[ground]!);
          if (!(found >= least)) poor.push(`${word} on ${ground}: ${found.toFixed(2)}`);
        }
      }
    };
    check(WORDS, ['ground', 'card', 'sunk', 'rail', 'accent-soft'], 4.5);
    check(['text', 'muted', 'accent'], ['hover'], 4.5);
    check(TERMINAL, ['sunk', 'bad-soft'], 4.5);
    check(['text', 'muted', 'timeout', 'accent'], ['warn-soft'], 4.5);
    check(['muted', 'failed'], ['bad-soft'], 4.5);
    check(['on-accent'], ['accent-fill'], 4.5);
    // What is no text but must be seen: the outlines of fields, the switch, the bars.
    check(['line-strong', 'accent'], ['ground', 'card', 'sunk'], 3);
    expect(poor).toEqual([]);
  });
});
