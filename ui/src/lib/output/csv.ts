// A table out of comma-separated text, as far as it is shown. Pure.

export interface Table {
  head: string[];
  rows: string[][];
  /** Rows and columns that were left out. */
  moreRows: boolean;
  moreColumns: boolean;
}

const MAX_ROWS = 200;
const MAX_COLUMNS = 30;
const MAX_CELL = 200;

export function parseCsv(text: string, cut: boolean): Table {
  const separator = separatorOf(text);
  const records: string[][] = [];
  let moreColumns = false;
  let at = text.charCodeAt(0) === 0xfeff ? 1 : 0;
  while (at < text.length && records.length <= MAX_ROWS) {
    const record: string[] = [];
    for (;;) {
      const cell = readCell(text, at, separator);
      at = cell.next;
      if (record.length < MAX_COLUMNS) record.push(cell.text);
      else moreColumns = true;
      if (cell.last) break;
    }
    if (record.length > 1 || record[0] !== '') records.push(record);
  }
  // The piece at which the text was cut is no whole row.
  if (cut && at >= text.length && records.length > 1) records.pop();
  const [head = [], ...rows] = records;
  return { head, rows: rows.slice(0, MAX_ROWS), moreRows: cut || at < text.length || rows.length > MAX_ROWS, moreColumns };
}

function readCell(text: string, from: number, separator: string): { text: string; next: number; last: boolean } {
  let at = from;
  let value = '';
  if (text[at] === '"') {
    at += 1;
    for (;;) {
      const quote = text.indexOf('"', at);
      const end = quote < 0 ? text.length : quote;
      value += text.slice(at, end);
      at = end + 1;
      if (quote < 0 || text[at] !== '"') break;
      value += '"';
      at += 1;
    }
  }
  let end = at;
  while (end < text.length && text[end] !== separator && text[end] !== '\n' && text[end] !== '\r') end += 1;
  value += text.slice(at, end);
  const cell = value.length > MAX_CELL ? `${value.slice(0, MAX_CELL)}…` : value;
  if (end >= text.length) return { text: cell, next: text.length, last: true };
  if (text[end] === separator) return { text: cell, next: end + 1, last: false };
  const next = text[end] === '\r' && text[end + 1] === '\n' ? end + 2 : end + 1;
  return { text: cell, next, last: true };
}

function separatorOf(text: string): string {
  const line = text.slice(0, 4096).split('\n', 1)[0] ?? '';
  const count = (separator: string) => line.split(separator).length;
  return [',', ';', '\t'].reduce((best, separator) => (count(separator) > count(best) ? separator : best));
}
