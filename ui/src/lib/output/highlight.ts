// Syntax colours as data: lines with styles, never HTML.

import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import go from 'highlight.js/lib/languages/go';
import javascript from 'highlight.js/lib/languages/javascript';
import python from 'highlight.js/lib/languages/python';
import rust from 'highlight.js/lib/languages/rust';

import { MARK } from './ansi';
import { hiddenPattern, markOf } from './hostile';
import type { Line } from './store';

hljs.registerLanguage('python', python);
hljs.registerLanguage('javascript', javascript);
hljs.registerLanguage('shell', bash);
hljs.registerLanguage('go', go);
hljs.registerLanguage('rust', rust);

/** Longer code is shown plain: colours are not worth a wait. */
const LONGEST = 200_000;
const TAB = 4;

const KINDS = ['plain', 'keyword', 'string', 'number', 'comment', 'name', 'type'] as const;
type Kind = (typeof KINDS)[number];

const KIND_OF: Record<string, Kind> = {
  keyword: 'keyword',
  literal: 'number',
  number: 'number',
  symbol: 'number',
  string: 'string',
  regexp: 'string',
  char: 'string',
  comment: 'comment',
  doctag: 'comment',
  meta: 'comment',
  title: 'name',
  function: 'name',
  built_in: 'type',
  type: 'type',
  class: 'type',
};

export function codeClasses(style: number): string {
  if (style & MARK) return 'mark';
  const kind = KINDS[style] ?? 'plain';
  return kind === 'plain' ? '' : `hl-${kind}`;
}

interface Node {
  scope?: string;
  children: (Node | string)[];
}

export function highlightLines(code: string, language: string): Line[] {
  const lines = new CodeLines();
  if (code.length > LONGEST || !hljs.getLanguage(language)) {
    lines.text(code, 0);
    return lines.done();
  }
  const result = hljs.highlight(code, { language, ignoreIllegals: true });
  // The tree behind the HTML; checked by a test, since highlight.js does not promise it.
  const root = (result as unknown as { _emitter: { rootNode: Node } })._emitter.rootNode;
  walk(root, 0, lines);
  return lines.done();
}

function walk(node: Node, style: number, lines: CodeLines): void {
  const scope = node.scope?.split('.')[0];
  const kind = scope === undefined ? undefined : KIND_OF[scope];
  const own = kind === undefined ? style : KINDS.indexOf(kind);
  for (const child of node.children) {
    if (typeof child === 'string') lines.text(child, own);
    else walk(child, own, lines);
  }
}

const SPECIAL = hiddenPattern('\\r?\\n|\\r|\\t');

class CodeLines {
  private readonly lines: Line[] = [];
  private line: Line = { text: '', origin: 'stdout', spans: [] };

  text(text: string, style: number): void {
    let from = 0;
    for (const found of text.matchAll(SPECIAL)) {
      this.add(text.slice(from, found.index), style);
      from = found.index + found[0].length;
      if (found[0] === '\n' || found[0] === '\r\n') this.newline();
      else if (found[0] === '\t') this.add(' '.repeat(TAB - (this.line.text.length % TAB)), style);
      else this.add(markOf(found[0]), MARK);
    }
    this.add(text.slice(from), style);
  }

  done(): Line[] {
    if (this.line.text !== '' || this.lines.length === 0) this.newline();
    return this.lines;
  }

  private add(text: string, style: number): void {
    if (text === '') return;
    const spans = this.line.spans ?? [];
    if (spans.at(-1) !== style || spans.length === 0) spans.push(this.line.text.length, style);
    this.line.text += text;
  }

  private newline(): void {
    this.lines.push(this.line);
    this.line = { text: '', origin: 'stdout', spans: [] };
  }
}
