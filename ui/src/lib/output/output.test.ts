import { describe, expect, it } from 'vitest';

import { AnsiReader, applySgr, classesOf, MARK } from './ansi';
import { parseCsv } from './csv';
import { codeClasses, highlightLines } from './highlight';
import type { RunBody, RunRow } from '../ipc/types';
import { visible, visibleLines } from './hostile';
import { copyOf, outputOf } from './pieces';
import { rasterUrl } from './raster';
import { segments, TextStore } from './store';
import { breaks, Rows, wordBreaks } from './wrap';

function shown(...pieces: string[]): TextStore {
  const store = new TextStore();
  for (const piece of pieces) store.append('stdout', piece);
  store.end();
  return store;
}

const texts = (store: TextStore) => store.lines.map((line) => line.text);

describe('escape sequences', () => {
  it('turns colours into styles and keeps the words', () => {
    const store = shown('plain \x1b[1;31mred\x1b[0m after\n');
    expect(texts(store)).toEqual(['plain red after']);
    const line = store.lines[0]!;
    expect(segments(line, 0, 99).map(({ text, style }) => [text, classesOf(style)])).toEqual([
      ['plain ', ''],
      ['red', 'fg-red bold'],
      [' after', ''],
    ]);
  });

  it('reads a sequence that is cut anywhere', () => {
    const whole = 'a\x1b[38;2;250;10;10mb\x1b[0m\x1b]8;;http://x/\x07c\x1b]8;;\x1b\\d\r\ne';
    for (let cut = 1; cut < whole.length; cut += 1) {
      expect(texts(shown(whole.slice(0, cut), whole.slice(cut))), `cut at ${cut}`).toEqual(['abcd', 'e']);
    }
  });

  it('obeys nothing that moves, clears, hides or names', () => {
    expect(texts(shown('a\x1b[2J\x1b[1;1Hb\x1b[8mc\x1b]0;title\x07d\x1bPq...\x1b\\e'))).toEqual(['abcde']);
    expect(applySgr(0, '\x1b[8m')).toBe(0);
  });

  it('does not let an open sequence swallow what follows', () => {
    expect(texts(shown('\x1b]0;never closed\nnext line\n'))[1]).toBe('next line');
    expect(texts(shown(`\x1b]${'x'.repeat(5000)}`, 'seen'))[0]).toContain('seen');
    expect(texts(shown('end\x1b['))).toEqual(['end␛[']);
    expect(texts(shown('\x1b\x1b\x1b[')).join('')).toContain('␛');
  });

  it('shows what was written before a carriage return', () => {
    expect(texts(shown('50%\r100%\r\ndone'))).toEqual(['50%␍', '100%', 'done']);
    expect(texts(shown('a\r', '\nb'))).toEqual(['a', 'b']);
  });

  it('makes any colour one of eight', () => {
    expect(classesOf(applySgr(0, '\x1b[38;5;196m'))).toBe('fg-red');
    expect(classesOf(applySgr(0, '\x1b[38;2;255;255;255m'))).toBe('fg-white');
    expect(classesOf(applySgr(0, '\x1b[48;5;21m'))).toBe('bg-blue');
    expect(classesOf(applySgr(0, '\x1b[38m'))).toBe('');
    expect(classesOf(applySgr(0, `\x1b[${'1;'.repeat(10_000)}m`))).toBe('bold');
    expect(applySgr(7, '\x1b[999999999999999999m')).toBe(7);
  });

  it('marks control characters, bidirectional controls and invisible ones', () => {
    expect(texts(shown('a\x00b\x07c\x7fd\u202ee\u2066f\u200bg\ufeffh'))).toEqual([
      'a␀b␇c␡d⟦U+202E⟧e⟦U+2066⟧f⟦U+200B⟧g⟦U+FEFF⟧h',
    ]);
    const marks = segments(shown('a\u202eb').lines[0]!, 0, 99).map(({ style }) => style & MARK);
    expect(marks).toEqual([0, MARK, 0]);
  });

  it('takes HTML for what it is: text', () => {
    const attack = '<img src=x onerror="alert(1)"><script>alert(1)</script>';
    expect(texts(shown(attack))).toEqual([attack]);
  });

  it('is linear in the length of hostile input', () => {
    const began = performance.now();
    shown('\x1b['.repeat(200_000), '\x1b]'.repeat(200_000), `\x1b[${'1'.repeat(1_000_000)}`, '\r'.repeat(100_000));
    expect(performance.now() - began).toBeLessThan(3000);
    const reader = new AnsiReader();
    const sink = { text() {}, newline() {}, tab() {} };
    for (let at = 0; at < 20_000; at += 1) reader.write('\x1b', sink);
  });
});

describe('the store', () => {
  it('keeps the order of arrival and tells the streams apart', () => {
    const store = new TextStore();
    store.append('stdout', 'one\ntw');
    store.append('stderr', 'bad\n');
    store.append('stdout', 'o\n');
    expect(store.lines.map(({ origin, text }) => `${origin} ${text}`)).toEqual([
      'stdout one', 'stdout tw', 'stderr bad', 'stdout o',
    ]);
  });

  it('drops the oldest lines beyond its caps and counts them', () => {
    const store = new TextStore({ lines: 1000, characters: 1_000_000 });
    for (let at = 0; at < 5000; at += 1) store.append('stdout', `line ${at}\n`);
    expect(store.lines.length).toBeLessThanOrEqual(1000);
    expect(store.lines.at(-1)?.text).toBe('line 4999');
    expect(store.dropped + store.lines.length).toBe(5000);
  });

  it('bounds one line without an end', () => {
    const store = new TextStore({ lines: 100, characters: 10_000 });
    for (let at = 0; at < 100; at += 1) store.append('stdout', 'x'.repeat(1000));
    expect(store.lines).toHaveLength(1);
    expect(store.lines[0]!.text.length).toBeLessThanOrEqual(10_000);
  });

  it('takes ten megabytes in one line and a million lines in its stride', () => {
    const began = performance.now();
    const long = shown('y'.repeat(10_000_000));
    const rows = new Rows(long);
    rows.sync(100);
    expect(rows.count).toBe(100_000);
    const many = shown('z\n'.repeat(1_000_000));
    const short = new Rows(many);
    short.sync(100);
    expect(short.count).toBe(1_000_000);
    expect(performance.now() - began).toBeLessThan(4000);
  });

  it('expands tabs', () => {
    expect(texts(shown('a\tb\n\tc'))).toEqual(['a       b', '        c']);
  });
});

describe('rows', () => {
  it('follow a store that grows at its end', () => {
    const store = new TextStore();
    const rows = new Rows(store);
    store.append('stdout', 'x'.repeat(25));
    rows.sync(10);
    expect(rows.count).toBe(3);
    store.append('stdout', `${'x'.repeat(10)}\nnext`);
    rows.sync(10);
    expect(rows.count).toBe(5);
    expect(rows.at(3)).toEqual({ line: 0, from: 30, to: 35, first: false });
    expect(rows.at(4)).toEqual({ line: 1, from: 0, to: 4, first: true });
    rows.sync(20);
    expect(rows.count).toBe(3);
  });

  it('follow a store that forgets its start, and keep a reader’s place', () => {
    const store = new TextStore({ lines: 100, characters: Infinity });
    const rows = new Rows(store);
    const whole = () => Array.from({ length: rows.count }, (_, row) => rows.at(row)!).map(({ line, from, to }) => store.lines[line]!.text.slice(from, to));
    for (let line = 0; line < 100; line += 1) store.append('stdout', `${line}: ${'x'.repeat(12)}\n`);
    rows.sync(10);
    expect(rows.count).toBe(200);
    const read = rows.anchorOf(171);
    expect([read, rows.rowOf(read)]).toEqual([{ line: 85, from: 10 }, 171]);
    const shifts = rows.shifts;
    store.append('stdout', '100: y\n');
    rows.sync(10);
    // 80 of the 101 lines are left: 79 of two rows and the last of one.
    expect([store.dropped, rows.count, rows.shifts]).toEqual([21, 159, shifts + 1]);
    expect(rows.rowOf(read)).toBe(171 - 42);
    expect(whole()[rows.rowOf(read)]).toBe('xxxxxx');
    expect(rows.rowOf({ line: 3, from: 0 })).toBe(0);
    rows.sync(20);
    expect([rows.count, whole()[rows.rowOf(read)]]).toEqual([80, '85: xxxxxxxxxxxx']);
    expect(new Set(whole()).size).toBe(80);
  });

  it('of one line that grows are counted from its last row on', () => {
    const store = new TextStore();
    const rows = new Rows(store);
    let text = '';
    for (const piece of ['ab漢字', '漢字漢', 'x'.repeat(9), '😀'.repeat(7), 'e\u0301'.repeat(9)]) {
      text += piece;
      store.append('stdout', piece);
      rows.sync(8);
      expect(Array.from({ length: rows.count }, (_, row) => rows.at(row)!.from)).toEqual(breaks(text, 8));
    }
  });

  it('count wide letters twice and never cut a character', () => {
    expect(breaks('漢字漢字漢字', 8)).toEqual([0, 4]);
    const emoji = '😀'.repeat(10);
    for (const start of breaks(emoji, 8)) expect(start % 2).toBe(0);
    expect(breaks(`a${'\u0301'.repeat(1000)}`, 20).length).toBeGreaterThan(5);
  });
});

describe('code', () => {
  it('gets colours in every language, as data', () => {
    const samples: Record<string, string> = {
      python: 'import os\nprint("x") # c',
      javascript: 'const a = "x"; // c',
      shell: 'if true; then echo "x"; fi # c',
      go: 'package main // c\nvar a = "x"',
      rust: 'fn main() { let a = "x"; } // c',
    };
    for (const [language, code] of Object.entries(samples)) {
      const lines = highlightLines(code, language);
      expect(lines.map((line) => line.text).join('\n')).toBe(code);
      const classes = lines.flatMap((line) => segments(line, 0, 999).map(({ style }) => codeClasses(style)));
      expect(classes, language).toEqual(expect.arrayContaining(['hl-keyword', 'hl-string', 'hl-comment']));
    }
  });

  it('shows reordering tricks and keeps HTML as text', () => {
    const [line] = highlightLines('x = 1 # \u202e </script><b>', 'python');
    expect(line!.text).toBe('x = 1 # ⟦U+202E⟧ </script><b>');
    expect(highlightLines('a\r\n\tb', 'unknown').map(({ text }) => text)).toEqual(['a', '    b']);
  });
});

describe('files', () => {
  it('reads quotes, separators and line ends', () => {
    expect(parseCsv('a,b\r\n"x, ""y""",2\n', false)).toMatchObject({ head: ['a', 'b'], rows: [['x, "y"', '2']] });
    expect(parseCsv('a;b\n1;2', false).rows).toEqual([['1', '2']]);
    expect(parseCsv('a\n"open', false).rows).toEqual([['open']]);
    expect(parseCsv('', false)).toMatchObject({ head: [], rows: [] });
  });

  it('bounds a table each way', () => {
    const wide = parseCsv(`${'c,'.repeat(1000)}\n`.repeat(1000), false);
    expect([wide.head.length, wide.rows.length, wide.moreRows, wide.moreColumns]).toEqual([30, 200, true, true]);
    expect(parseCsv('a,b\n1,2\n3', true).rows).toEqual([['1', '2']]);
  });

  it('shows only what the app wrote as a picture', () => {
    const base64 = (text: string) => Buffer.from(text, 'latin1').toString('base64');
    expect(rasterUrl(base64('\x89PNG\r\n\x1a\nrest'))).toMatch(/^data:image\/png;/);
    for (const other of ['\xff\xd8\xff\xe0', 'GIF89a', 'RIFF\0\0\0\0WEBPVP8L']) expect(rasterUrl(base64(`${other}rest`))).toBeNull();
    expect(rasterUrl(base64('<svg onload="alert(1)"/>'))).toBeNull();
    expect(rasterUrl('"><script>')).toBeNull();
    expect(rasterUrl('')).toBeNull();
  });

  it('makes names safe for one line', () => {
    expect(visible('a\u202egnp.exe\nb\tc')).toBe('a⟦U+202E⟧gnp.exe␊b c');
    expect(visibleLines('a\tb\r\n\u202ec\u001b')).toBe('a\tb␍\n⟦U+202E⟧c␛');
    expect(visible('😀'.repeat(300), 99)).toBe(`${'😀'.repeat(49)}…`);
  });
});

describe('a sentence of ours', () => {
  const pieces = (text: string, columns: number) => wordBreaks(text, columns).map((start, at, all) => text.slice(start, all[at + 1]).trim());

  it('is broken between words, and within one only where it must', () => {
    expect(pieces('the order isn’t kept', 12)).toEqual(['the order', 'isn’t kept']);
    expect(pieces('short', 12)).toEqual(['short']);
    expect(pieces('abcdefghijklmnopq rs', 12)).toEqual(['abcdefghijkl', 'mnopq rs']);
  });
});

describe('what the history kept of the output', () => {
  const figure = (text: string, produced = text.length) => ({ produced, returned: text.length });
  const shown = (stdout: string, stderr: string) => {
    const run = { stdout: figure(stdout), stderr: figure(stderr) } as RunRow;
    const body = { stdout: { text: stdout, cut: false }, stderr: { text: stderr, cut: false } } as RunBody;
    return outputOf(run, body).lines.map(({ origin, text }) => `${origin} ${text}`);
  };

  it('says which of the two a part is, and that they were not kept in order', () => {
    expect(shown('a\n', 'b\n')).toEqual([
      'note Normal output first, then errors: the order in which they came isn’t kept.',
      'heading Normal output (stdout)', 'stdout a', 'heading Errors and messages (stderr)', 'stderr b',
    ]);
    expect(shown('', 'b')).toEqual(['heading Errors and messages (stderr)', 'stderr b']);
  });

  it('needs no label where there is only the one that everybody expects', () => {
    expect(shown('a', '')).toEqual(['stdout a']);
    expect(shown('', '')).toEqual([]);
  });
});

describe('what is copied', () => {
  it('is the printed text without its colours', () => {
    const copied = (stdout: string, stderr: string) => copyOf({ stdout: { text: stdout, cut: false }, stderr: { text: stderr, cut: false } } as RunBody);
    expect(copied('\x1b[1;31mred\x1b[0m\n', '')).toBe('red\n');
    expect(copied('a\x1b]8;;http://x/\x07b\x1b]8;;\x1b\\', 'c')).toBe('ab\nc');
    expect(copied('a\n', '\x1b(Bc')).toBe('a\nc');
    // Incomplete sequences are left to the app.
    expect(copied('\x1b[201', '')).toBe('\x1b[201');
  });
});
