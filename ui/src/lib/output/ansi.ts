// The escape sequences of terminals: colours are understood, everything else is dropped, nothing is obeyed.

import { hiddenPattern, markOf } from './hostile';

/** A style in one number: 0 is plain. */
export type Style = number;

export const MARK = 1 << 16;
const BOLD = 1 << 8;
const DIM = 1 << 9;
const ITALIC = 1 << 10;
const UNDERLINE = 1 << 11;
const STRIKE = 1 << 12;
const INVERSE = 1 << 13;

/** Foreground in bits 0-3 and background in bits 4-7: 0 is the default, 1 to 8 are the colours. */
const FG = 0x0f;
const BG = 0xf0;

const COLOURS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const;

export function classesOf(style: Style): string {
  const names: string[] = [];
  const inverse = (style & INVERSE) !== 0;
  const fg = COLOURS[(style & FG) - 1];
  const bg = COLOURS[((style & BG) >> 4) - 1];
  if (inverse) names.push('inv');
  if (fg) names.push(`fg-${fg}`);
  if (bg && !inverse) names.push(`bg-${bg}`);
  if (style & BOLD) names.push('bold');
  if (style & DIM) names.push('dim');
  if (style & ITALIC) names.push('italic');
  if (style & UNDERLINE) names.push('under');
  if (style & STRIKE) names.push('strike');
  if (style & MARK) names.push('mark');
  return names.join(' ');
}

const SGR = /^\x1b\[([\d;:]*)m$/;

/** `CSI ... m` on top of a style; any other sequence changes nothing. */
export function applySgr(style: Style, sequence: string): Style {
  const found = SGR.exec(sequence);
  if (!found) return style;
  const parts = (found[1] ?? '').split(/[;:]/, 64).map((part) => (part === '' ? 0 : Number(part)));
  let now = style;
  for (let at = 0; at < parts.length; at += 1) {
    const code = parts[at] ?? 0;
    if (code === 38 || code === 48) {
      const { colour, taken } = extended(parts, at + 1);
      at += taken;
      if (colour !== null) now = code === 38 ? (now & ~FG) | colour : (now & ~BG) | (colour << 4);
    } else {
      now = basic(now, code);
    }
  }
  return now;
}

function basic(style: Style, code: number): Style {
  if (code >= 30 && code <= 37) return (style & ~FG) | (code - 29);
  if (code >= 90 && code <= 97) return (style & ~FG) | (code - 89);
  if (code >= 40 && code <= 47) return (style & ~BG) | ((code - 39) << 4);
  if (code >= 100 && code <= 107) return (style & ~BG) | ((code - 99) << 4);
  switch (code) {
    case 0: return 0;
    case 1: return style | BOLD;
    case 2: return style | DIM;
    case 3: return style | ITALIC;
    case 4: return style | UNDERLINE;
    case 7: return style | INVERSE;
    case 9: return style | STRIKE;
    case 22: return style & ~(BOLD | DIM);
    case 23: return style & ~ITALIC;
    case 24: return style & ~UNDERLINE;
    case 27: return style & ~INVERSE;
    case 29: return style & ~STRIKE;
    case 39: return style & ~FG;
    case 49: return style & ~BG;
    default: return style; // 8 hides text: not obeyed.
  }
}

/** Any of millions of colours becomes the nearest of eight that can be read in both themes. */
function extended(parts: number[], at: number): { colour: number | null; taken: number } {
  const number = (index: number) => Math.min(255, Math.max(0, parts[index] ?? 0));
  if (parts[at] === 5) return { colour: indexed(number(at + 1)), taken: 2 };
  if (parts[at] === 2) return { colour: nearest(number(at + 1), number(at + 2), number(at + 3)), taken: 4 };
  return { colour: null, taken: 0 };
}

function indexed(index: number): number {
  if (index < 16) return (index % 8) + 1;
  if (index >= 232) return nearest((index - 232) * 10, (index - 232) * 10, (index - 232) * 10);
  const level = (step: number) => (step % 6) * 51;
  const cube = index - 16;
  return nearest(level(Math.floor(cube / 36)), level(Math.floor(cube / 6)), level(cube));
}

function nearest(red: number, green: number, blue: number): number {
  const top = Math.max(red, green, blue);
  if (top < 48) return 1;
  const on = (part: number) => (part > top * 0.6 ? 1 : 0);
  return 1 + on(red) + 2 * on(green) + 4 * on(blue);
}

const CSI = /\x1b\[[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]/y;
const STRING = /\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)/y;
const OTHER = /\x1b[\x20-\x2f]*[\x30-\x4f\x51-\x57\x59\x5a\x5c\x60-\x7e]/y;
const UNFINISHED = /\x1b(?:\[[\x30-\x3f]*[\x20-\x2f]*|[\]PX^_][^\x07\x1b\n]*\x1b?|[\x20-\x2f]*)$/y;
const SEQUENCES = new RegExp([CSI, STRING, OTHER].map(({ source }) => source).join('|'), 'g');

/** The text to copy: without colours and other sequences. */
export function withoutSequences(text: string): string {
  return text.replace(SEQUENCES, '');
}

const SPECIAL = hiddenPattern('[\\t\\r\\n]');
const LONGEST = 4096;

export interface Sink {
  text(text: string, style: Style): void;
  newline(): void;
  tab(): void;
}

/** Reads one stream piece by piece; a sequence that is cut in two is held back until it is whole. */
export class AnsiReader {
  private style: Style = 0;
  private held = '';

  write(piece: string, sink: Sink): void {
    const text = this.held + piece;
    this.held = '';
    let from = 0;
    SPECIAL.lastIndex = 0;
    for (let found = SPECIAL.exec(text); found; found = SPECIAL.exec(text)) {
      const at = found.index;
      if (at > from) sink.text(text.slice(from, at), this.style);
      const next = this.special(text, at, found[0], sink);
      if (next === null) return;
      from = next;
      SPECIAL.lastIndex = next;
    }
    if (from < text.length) sink.text(text.slice(from), this.style);
  }

  /** What is still held is no sequence after all. */
  end(sink: Sink): void {
    while (this.held !== '') {
      const held = this.held;
      this.held = '';
      sink.text(markOf(held.slice(0, 1)), MARK);
      this.write(held.slice(1), sink);
    }
  }

  /** Where to go on, or null where the rest is held back. */
  private special(text: string, at: number, found: string, sink: Sink): number | null {
    if (found === '\n') sink.newline();
    else if (found === '\t') sink.tab();
    else if (found === '\r') {
      if (at + 1 === text.length) {
        this.held = '\r';
        return null;
      }
      // A terminal would write over the line; here nothing that was printed is hidden.
      if (text[at + 1] !== '\n') {
        sink.text(markOf('\r'), MARK);
        sink.newline();
      }
    } else if (found === '\x1b') return this.escape(text, at, sink);
    else sink.text(markOf(found), MARK);
    return at + found.length;
  }

  private escape(text: string, at: number, sink: Sink): number | null {
    for (const pattern of [CSI, STRING, OTHER]) {
      pattern.lastIndex = at;
      const found = pattern.exec(text);
      if (!found) continue;
      if (pattern === CSI) this.style = applySgr(this.style, found[0]);
      return at + found[0].length;
    }
    UNFINISHED.lastIndex = at;
    if (text.length - at <= LONGEST && UNFINISHED.test(text)) {
      this.held = text.slice(at);
      return null;
    }
    sink.text(markOf('\x1b'), MARK);
    return at + 1;
  }
}
