// Text of strangers in every place of every page: labels, names, code, output, file names, sentences of an engine. A fixture of
// fixtures.mjs is covered by being there; a place is covered by the name of its field.

import assert from 'node:assert/strict';

import { open } from './browser.mjs';
import { parts, states } from './fixtures.mjs';
import { outOfReach } from './judge.mjs';

const { busy, snapshot, row, body, running, queued, live } = parts;

export const SIZES = {
  usual: { width: 960, height: 640 },
  narrow: { width: 720, height: 520 },
  'large text': { width: 960, height: 640, text: 2 },
  'narrow, large text': { width: 720, height: 520, text: 2 },
};

export const TEXTS = {
  '200 letters': 'Summarise the quarterly numbers of the northern region and draw a chart of sales by month, then compare it with the plan and write a short note for the board about what is late and why that could be soo',
  'one word': 'w'.repeat(10_000),
  'right to left': 'סיכום \u202eהמספרים\u202c הרבעוניים 123 של \u2067האזור\u2069 הצפוני مخطط المبيعات 456 حسب الشهر ثم قارنه بالخطة '.repeat(3),
  controls: `\u0000\u0007\u001b[2J\u001b[31mred\u001b[0m\r\n\t\u2028\u200b\ufeff\u{e0041}${'e\u0301\u0301\u0301\u0301'.repeat(40)}${'\u202e\u2066'.repeat(40)}`,
};

/** Fields that hold what a program, an agent or an engine chose, by their names. */
const FIELDS = new Set([
  'label', 'client', 'client_program', 'program', 'error', 'image', 'name', 'url', 'found', 'version', 'summary', 'reason', 'message', 'hint',
  'copy', 'socket', 'os', 'arch', 'text', 'path', 'digest', 'title', 'cut_off', 'not_again', 'short',
]);
const LISTS = new Set(['looked_at', 'notices', 'left_behind', 'addresses']);
/** Ours, whatever they are called; and what is no text. */
const LEFT = new Set(['settings', 'act', 'pictures', 'refuse', 'recent', 'open', 'run_id', 'slow']);

/** The same fixture with `text` in each of those fields. */
export function filled(value, text, key = '') {
  if (typeof value === 'string') return FIELDS.has(key) ? worded(value, text, key) : value;
  if (Array.isArray(value)) {
    if (LISTS.has(key)) return value.map((_, at) => `${at} ${text}`);
    // No two agents have one name and one program.
    if (key === 'agents') return value.map((item, at) => ({ ...filled(item, text), name: `${at} ${text}` }));
    // No two files of a run have one name.
    return value.map((item, at) => ((key.includes('files') || key === 'inputs') && item.name ? { ...filled(item, text), ...(item.reason && { reason: item.reason }), name: `${at} ${named(item.name, text)}` } : filled(item, text, key)));
  }
  if (value === null || typeof value !== 'object') return value === null && ['label', 'title'].includes(key) ? text : value;
  const ours = (name, item) => LEFT.has(name) || typeof item === 'function' || (name === 'title' && !('run_id' in value)) || (name === 'name' && 'link' in value);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, ours(name, item) ? item : filled(item, text, name)]));
}

function worded(value, text, key) {
  if (key === 'text') return `${text}\n${value}${text} ${text}`;
  if (key === 'digest') return `sha256:${text}`;
  return text;
}

/** With the ending by which a file is shown. */
const named = (name, text) => `${text}${name.slice(name.lastIndexOf('.'))}`;

/** What the screenshots have no state for. */
export function more() {
  const runs = { ...busy, rows: [{ ...row, run_id: 'one' }], records: { one: { run: { ...row, run_id: 'one' }, body } }, open: 'runs' };
  const refusal = { code: 'internal', message: 'No.', hint: 'Try `again`.', faults: [] };
  const files = [{ name: 'notes.txt', size: 9, preview: { kind: 'text', cut: false, text: 'short\n' } }];
  const alive = { ...runs, snapshot: { ...snapshot, running, queued }, live };
  return {
    'a refusal': { ...alive, run: 'live1', errors: { stop_run: refusal, stop_all: refusal }, act: async (page) => {
      await page.evaluate(() => [...document.querySelectorAll('button[aria-label^="Stop "]')].slice(0, 3).forEach((button) => button.click()));
    } },
    'three live runs and the list': alive,
    'an unreadable history': { ...runs, errors: { history_page: refusal, history_recent: refusal } },
    'an unreadable run': { ...runs, run: 'gone', errors: { history_run: refusal } },
    'a window without its app': { ...runs, errors: { subscribe: refusal } },
    'a run that did not happen': { ...runs, records: { one: { run: { ...row, run_id: 'one', status: 'engine_unavailable', error: 'No.', exit_code: null, seconds: null }, body } }, run: 'one' },
    'a saved file': { ...runs, records: { one: { run: { ...row, run_id: 'one' }, body: { ...body, files } } }, run: 'one', act: async (page) => {
      await page.getByRole('tab', { name: 'Files' }).click();
      await page.getByRole('button', { name: /^Save / }).last().click();
    } },
    'an open question': { ...runs, run: 'one', act: async (page) => page.getByRole('button', { name: 'Delete this run' }).click() },
  };
}

/** Pages that are tried side by side. */
const WORKERS = 3;

export async function strangers({ browser, url, png, only = [] }) {
  const found = [];
  const jobs = Object.entries({ ...states(png), ...more() })
    .filter(([state]) => only.length === 0 || only.includes(state))
    .flatMap(([state, fixture]) => Object.entries(TEXTS).map(([kind, text]) => ({ state, fixture, kind, text })));
  const work = async () => {
    for (let job = jobs.shift(); job; job = jobs.shift()) {
      const { state, fixture, kind, text } = job;
      const page = await open(browser, url, { ...filled(fixture, text), stranger: text }, { ...SIZES.usual, settle: 40, patience: 2000 });
      for (const [size, view] of Object.entries(SIZES)) {
        await resize(page, view);
        found.push(...(await page.evaluate(outOfReach)).map((fault) => `${state}, ${kind}, ${size}: ${fault}`));
      }
      found.push(...page.faults.map((fault) => `${state}, ${kind}: ${fault}`));
      await page.context().close();
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
  for (const fault of found.slice(0, Number(process.env.FAULTS ?? 60))) console.log(`  ${fault}`);
  assert.equal(found.length, 0, `${found.length} faults`);
}

async function resize(page, { width, height, text = 1 }) {
  await page.setViewportSize({ width, height });
  await page.evaluate(async (size) => {
    document.documentElement.style.fontSize = `${size}%`;
    for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
  }, 87.5 * text);
}
