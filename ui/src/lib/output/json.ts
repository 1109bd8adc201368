// JSON on lines of its own, token by token: nothing is read as a number or a name, so that what is shown is what is there. Pure.

/** Deeper than this, indenting would make far more of the text than there is. */
const DEEPEST = 40;
const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s"[\]{},:]+/g;
const INDENT = '  ';

/** The same tokens, indented; null where it is no JSON, or is as it should be already. */
export function indentJson(text: string): string | null {
  const plain = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  if (plain.trim().includes('\n') || !isJson(plain)) return null;
  let out = '';
  let depth = 0;
  let before = '';
  for (const [token] of plain.matchAll(TOKEN)) {
    const opens = token === '{' || token === '[';
    const closes = token === '}' || token === ']';
    if (closes) depth -= 1;
    const empty = closes && (before === '{' || before === '[');
    if (!empty && (closes || before === '{' || before === '[' || before === ',')) out += `\n${INDENT.repeat(depth)}`;
    out += token === ':' ? ': ' : token;
    if (opens) depth += 1;
    if (depth > DEEPEST) return null;
    before = token;
  }
  return out;
}

function isJson(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null;
  } catch {
    return false;
  }
}
