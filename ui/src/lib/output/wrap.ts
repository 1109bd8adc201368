// Lines broken into rows of a width, so that every row has one height whatever the text. Pure.

import { isLow } from './hostile';

export interface Lines {
  readonly lines: readonly { text: string; origin?: string }[];
  readonly generation: number;
}

/** Where each row starts. Follows a store that grows without starting anew. */
export class Rows {
  private line: number[] = [];
  private start: number[] = [];
  private columns = 0;
  private generation = -1;
  private done = 0;
  private lastLength = 0;

  constructor(private readonly store: Lines) {}

  get count(): number {
    return this.line.length;
  }

  sync(columns: number): void {
    const wide = Math.max(8, Math.floor(columns));
    if (wide !== this.columns || this.generation !== this.store.generation) this.reset(wide);
    this.reopenLast();
    const { lines } = this.store;
    for (; this.done < lines.length; this.done += 1) {
      const { text, origin } = lines[this.done] ?? { text: '' };
      const ours = origin === 'note' || origin === 'heading';
      for (const start of ours ? wordBreaks(text, wide) : breaks(text, wide)) {
        this.line.push(this.done);
        this.start.push(start);
      }
      this.lastLength = text.length;
    }
  }

  /** The line, its piece, and whether it is the line's first row. */
  at(row: number): { line: number; from: number; to: number; first: boolean } | null {
    const line = this.line[row];
    const from = this.start[row];
    if (line === undefined || from === undefined) return null;
    const to = this.line[row + 1] === line ? (this.start[row + 1] ?? 0) : (this.store.lines[line]?.text.length ?? 0);
    return { line, from, to, first: from === 0 };
  }

  private reset(columns: number): void {
    this.line = [];
    this.start = [];
    this.done = 0;
    this.columns = columns;
    this.generation = this.store.generation;
  }

  /** The last line may have grown since. */
  private reopenLast(): void {
    const last = this.done - 1;
    if (last < 0 || this.store.lines[last]?.text.length === this.lastLength) return;
    while (this.line.at(-1) === last) {
      this.line.pop();
      this.start.pop();
    }
    this.done = last;
  }
}

const NARROW = /^[\x20-\u02ff]*$/;

/** The start of every row of one line. */
export function breaks(text: string, columns: number): number[] {
  const starts = [0];
  if (text.length <= columns / 2) return starts;
  if (NARROW.test(text)) {
    for (let at = columns; at < text.length; at += columns) starts.push(at);
    return starts;
  }
  let used = 0;
  let units = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (isLow(text, at)) continue;
    const wide = widthAt(text, at);
    // Marks that stack on one letter take no column but a row holds only so many.
    if (used + wide > columns || units > columns * 4) {
      starts.push(at);
      used = 0;
      units = 0;
    }
    used += wide;
    units += 1;
  }
  return starts;
}

/** The same for a sentence of ours, which is broken between words. */
export function wordBreaks(text: string, columns: number): number[] {
  const starts = [0];
  for (let from = 0; text.length - from > columns; ) {
    const space = text.lastIndexOf(' ', from + columns);
    from = space > from ? space + 1 : from + columns;
    starts.push(from);
  }
  return starts;
}

const STACKED = /^\p{Mn}|^\p{Me}|^\u200d/u;

function widthAt(text: string, at: number): number {
  const code = text.codePointAt(at) ?? 0;
  if (code < 0x300) return 1;
  if (code < 0x1100) return STACKED.test(String.fromCodePoint(code)) ? 0 : 1;
  const wide =
    code <= 0x115f ||
    (code >= 0x2e80 && code <= 0xa4cf) ||
    (code >= 0xac00 && code <= 0xd7a3) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0xfe30 && code <= 0xfe6f) ||
    (code >= 0xff00 && code <= 0xff60) ||
    code >= 0x1f000;
  return wide ? 2 : 1;
}
