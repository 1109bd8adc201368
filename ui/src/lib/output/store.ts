// Lines of text with styles, for a list that shows only what is in view. Not reactive: `version` says that it changed.

import type { Stream } from '../ipc/types';
import { AnsiReader, type Sink, type Style } from './ansi';

/** Who a line is from. */
type Origin = Stream | 'note' | 'heading';

export interface Line {
  text: string;
  origin: Origin;
  /** Flat pairs of a position and the style from there on; null where all of it is plain. */
  spans: number[] | null;
}

interface Caps {
  lines: number;
  characters: number;
}

/** More than this of a live run is not kept: the newest is. */
export const LIVE_CAPS: Caps = { lines: 30_000, characters: 4_000_000 };
/** So much of the caps is left when something has to go: it goes seldom, and much at once. */
const KEPT = 0.8;
const TAB = 8;

export class TextStore implements Sink {
  readonly lines: Line[] = [];
  version = 0;
  /** Raised when a line changed that was there before, so that its rows must be counted anew. */
  generation = 0;
  /** Lines that went away at the start. */
  dropped = 0;
  private characters = 0;
  private open: Line | null = null;
  private origin: Origin = 'stdout';
  private readonly readers = { stdout: new AnsiReader(), stderr: new AnsiReader() };

  constructor(private readonly caps: Caps = { lines: Infinity, characters: Infinity }) {}

  append(stream: Stream, text: string): void {
    if (this.open && this.open.origin !== stream) this.open = null;
    this.origin = stream;
    this.readers[stream].write(text, this);
    this.trim();
    this.version += 1;
  }

  /** A line of ours between the program's. */
  note(text: string): void {
    this.own('note', text);
  }

  /** Over what follows, where it isn't plain what that is. */
  heading(text: string): void {
    this.own('heading', text);
  }

  end(): void {
    for (const stream of ['stdout', 'stderr'] as const) {
      this.origin = stream;
      if (this.open && this.open.origin !== stream) this.open = null;
      this.readers[stream].end(this);
    }
    this.version += 1;
  }

  lastLine(): Line | null {
    for (let at = this.lines.length - 1; at >= 0 && at > this.lines.length - 50; at -= 1) {
      const line = this.lines[at];
      if (line && (line.origin === 'stdout' || line.origin === 'stderr') && line.text.trim() !== '') return line;
    }
    return null;
  }

  text(text: string, style: Style): void {
    const line = this.current();
    if (style !== 0 && !line.spans) line.spans = line.text === '' ? [] : [0, 0];
    if (line.spans && line.spans[line.spans.length - 1] !== style) line.spans.push(line.text.length, style);
    line.text += text;
    this.characters += text.length;
  }

  newline(): void {
    this.current();
    this.open = null;
  }

  tab(): void {
    const line = this.current();
    this.text(' '.repeat(TAB - (line.text.length % TAB)), line.spans?.at(-1) ?? 0);
  }

  private own(origin: Origin, text: string): void {
    this.open = null;
    this.lines.push({ text, origin, spans: null });
    this.version += 1;
  }

  private current(): Line {
    if (!this.open) {
      this.open = { text: '', origin: this.origin, spans: null };
      this.lines.push(this.open);
    }
    return this.open;
  }

  private trim(): void {
    if (this.lines.length <= this.caps.lines && this.characters <= this.caps.characters) return;
    let gone = 0;
    const keepLines = this.caps.lines * KEPT;
    const keepCharacters = this.caps.characters * KEPT;
    while (gone < this.lines.length - 1 && (this.lines.length - gone > keepLines || this.characters > keepCharacters)) {
      this.characters -= this.lines[gone]?.text.length ?? 0;
      gone += 1;
    }
    this.lines.splice(0, gone);
    this.dropped += gone;
    const only = this.lines[0];
    if (this.lines.length === 1 && only && this.characters > this.caps.characters) {
      only.text = only.text.slice(-Math.floor(keepCharacters));
      only.spans = null;
      this.characters = only.text.length;
      this.generation += 1;
    }
  }
}

interface Segment {
  text: string;
  style: Style;
}

export function segments(line: Line, from: number, to: number): Segment[] {
  if (!line.spans) return [{ text: line.text.slice(from, to), style: 0 }];
  const found: Segment[] = [];
  const spans = line.spans;
  for (let at = firstSpan(spans, from); at < spans.length; at += 2) {
    const start = Math.max(from, spans[at] ?? 0);
    const end = Math.min(to, spans[at + 2] ?? line.text.length);
    if (start >= to) break;
    if (end > start) found.push({ text: line.text.slice(start, end), style: spans[at + 1] ?? 0 });
  }
  return found;
}

/** The last span that begins at or before a position. */
function firstSpan(spans: number[], position: number): number {
  let low = 0;
  let high = spans.length / 2 - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((spans[middle * 2] ?? 0) <= position) low = middle;
    else high = middle - 1;
  }
  return low * 2;
}
