// Lines broken into rows of a width, so that every row has one height whatever the text. Pure.

import { isLow } from './hostile';

export interface Lines {
  readonly lines: readonly { text: string; origin?: string }[];
  /** Raised when a line changed that was there before. */
  readonly generation: number;
  /** Lines that went away at the start. */
  readonly dropped?: number;
}

/** A place in the text that outlives new widths and lines that go. */
interface Anchor {
  /** Counted from the first line there ever was. */
  line: number;
  from: number;
}

/** Where each row starts. Follows a store that grows at its end and goes at its start, without starting anew. */
export class Rows {
  /** Of each row, counted from the first line there ever was. */
  private line: number[] = [];
  private start: number[] = [];
  private columns = 0;
  private generation = -1;
  /** The line that comes next. */
  private next = 0;
  private lastLength = 0;
  /** Raised when rows that were there have another number now. */
  shifts = 0;

  constructor(private readonly store: Lines) {}

  get count(): number {
    return this.line.length;
  }

  sync(columns: number): void {
    const wide = Math.max(8, Math.floor(columns));
    if (wide !== this.columns || this.generation !== this.store.generation) this.reset(wide);
    this.forget();
    this.goOn();
    const { lines } = this.store;
    for (let line = lines[this.next - this.dropped]; line; line = lines[this.next - this.dropped]) {
      this.add(line, 0);
      this.next += 1;
    }
  }

  /** The line, its piece, and whether it is the line's first row. */
  at(row: number): { line: number; from: number; to: number; first: boolean } | null {
    const line = this.line[row];
    const from = this.start[row];
    if (line === undefined || from === undefined) return null;
    const at = line - this.dropped;
    const to = this.line[row + 1] === line ? (this.start[row + 1] ?? 0) : (this.store.lines[at]?.text.length ?? 0);
    return { line: at, from, to, first: from === 0 };
  }

  anchorOf(row: number): Anchor {
    const last = this.line.length - 1;
    const at = Math.min(Math.max(0, row), Math.max(0, last));
    return { line: this.line[at] ?? 0, from: this.start[at] ?? 0 };
  }

  /** The row that a place is in now; the first one where it is gone. */
  rowOf({ line, from }: Anchor): number {
    let low = 0;
    let high = this.line.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      const [at, start] = [this.line[middle] ?? 0, this.start[middle] ?? 0];
      if (at < line || (at === line && start <= from)) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  private get dropped(): number {
    return this.store.dropped ?? 0;
  }

  private reset(columns: number): void {
    this.line = [];
    this.start = [];
    this.next = this.dropped;
    this.columns = columns;
    this.generation = this.store.generation;
    this.shifts += 1;
  }

  /** Rows of lines that are gone. */
  private forget(): void {
    if (this.line.length === 0 || (this.line[0] ?? 0) >= this.dropped) {
      this.next = Math.max(this.next, this.dropped);
      return;
    }
    const gone = this.next <= this.dropped ? this.line.length : this.rowOf({ line: this.dropped, from: 0 });
    this.line.splice(0, gone);
    this.start.splice(0, gone);
    this.next = Math.max(this.next, this.dropped);
    this.shifts += 1;
  }

  /** The last line may have grown since: what follows its last row is new, and nothing before it. */
  private goOn(): void {
    const at = this.next - 1;
    const line = this.store.lines[at - this.dropped];
    if (!line || this.line.at(-1) !== at || line.text.length === this.lastLength) return;
    this.line.pop();
    this.add(line, this.start.pop() ?? 0, at);
  }

  private add({ text, origin }: { text: string; origin?: string }, from: number, line = this.next): void {
    const ours = origin === 'note' || origin === 'heading';
    const rest = from === 0 ? text : text.slice(from);
    for (const start of ours ? wordBreaks(rest, this.columns) : breaks(rest, this.columns)) {
      this.line.push(line);
      this.start.push(from + start);
    }
    this.lastLength = text.length;
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
