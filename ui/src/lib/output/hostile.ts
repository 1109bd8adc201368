// Text that programs and agents chose. Nothing in it may hide, reorder or pose as ours: what has no shape of its own is
// shown as a mark.

const CLASS =
  '\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f' +
  '\\u2028-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\ufeff\\ufff9-\\ufffb';

/** Control characters, bidirectional controls, invisible characters, tag characters. Line breaks and tabs are not in it. */
const HIDDEN = `[${CLASS}]|\\udb40[\\udc00-\\udc7f]`;

export function hiddenPattern(also = ''): RegExp {
  return new RegExp(also ? `${also}|${HIDDEN}` : HIDDEN, 'g');
}

/** What stands for a character that would not be seen. */
export function markOf(character: string): string {
  const code = character.codePointAt(0) ?? 0xfffd;
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  return `⟦U+${code.toString(16).toUpperCase().padStart(4, '0')}⟧`;
}

const NAME = hiddenPattern('[\\t\\r\\n]');

/** A name, label or sentence for one line of the window. */
export function visible(text: string, max = 400): string {
  const cut = text.length > max ? `${wholeUpTo(text, max)}…` : text;
  return cut.replace(NAME, (found) => (found === '\t' ? ' ' : markOf(found)));
}

const LINES = hiddenPattern('\\r');

/** A whole text, with its lines. */
export function visibleLines(text: string): string {
  return text.replace(LINES, markOf);
}

/** At most `end` units, not cut inside a surrogate pair. */
function wholeUpTo(text: string, end: number): string {
  return text.slice(0, isLow(text, end) ? end - 1 : end);
}

export function isLow(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff;
}
