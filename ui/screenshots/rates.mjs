// A thousand wrapped lines a second from each of ten runs at once, judged frame by frame.

import assert from 'node:assert/strict';

import { parts } from './fixtures.mjs';

const { busy, snapshot, running } = parts;
const RUNS = 10;
/** Longer than a row of the pane: it takes two or three. */
const LETTERS = 170;
const WATCH_MS = 4000;
/** What ten floods may cost: a frame beside one of an idle page in the same browser at the same time. */
const MIDDLE_RATIO = 1.5;
const WORST_RATIO = 4;

const flood = Array.from({ length: RUNS }, (_, at) => ({ ...running[at % running.length], run_id: `flood${at}`, label: `Flood ${at}`, limit_seconds: 600 }));

export async function rates({ start }) {
  const idle = await start({ ...busy, open: 'runs' });
  const quiet = await idle.evaluate(watchFrames, { forMs: WATCH_MS });
  const page = await start({ ...busy, snapshot: { ...snapshot, running: flood }, open: 'runs', run: 'flood0' });
  await page.evaluate(pour, { runs: RUNS, letters: LETTERS });
  await page.getByRole('region', { name: 'Output' }).waitFor();
  await page.waitForTimeout(1000);

  const followed = await page.evaluate(watchFrames, { forMs: WATCH_MS, pane: true });
  const again = await idle.evaluate(watchFrames, { forMs: WATCH_MS });
  const middle = Math.max(quiet.middle, again.middle);
  console.log(`  following: ${told(followed)}; idle: ${told(quiet)}, ${told(again)}; behind by ${followed.behind} lines at most`);
  assert.deepEqual([followed.blank, followed.off], [0, 0], 'never blank, and the last row in view');
  assert.ok(followed.behind < 1000, `${followed.behind} lines behind`);
  assert.ok(followed.middle < middle * MIDDLE_RATIO && followed.late < Math.max(quiet.late, again.late, middle) * WORST_RATIO, 'as smooth as that');

  // A turn of the wheel, while it goes on: what is read stays where it is, whatever is dropped at the start meanwhile.
  await page.getByRole('region', { name: 'Output' }).hover();
  await page.evaluate(() => window.__fill(20));
  await page.waitForTimeout(200);
  await page.mouse.wheel(0, -400);
  await page.getByRole('button', { name: 'Follow the end' }).waitFor();
  await page.waitForTimeout(300);
  await page.evaluate(() => setTimeout(() => window.__fill(6), 500));
  const read = await page.evaluate(watchFrames, { forMs: WATCH_MS, pane: true });
  console.log(`  reading: ${told(read)}; what is above fell by ${Math.round(read.fell)} px`);
  assert.ok(read.fell > 20_000, 'the oldest lines went');
  assert.deepEqual([read.blank, read.tops.length], [0, 1], `stays put: ${read.tops.slice(0, 3)}`);
  await page.getByRole('button', { name: 'Follow the end' }).click();
  const back = await page.evaluate(watchFrames, { forMs: 1000, pane: true });
  assert.deepEqual([back.blank, back.off], [0, 0], 'at the end again');
  return page;
}

const told = ({ frames, middle, late, worst, blank }) => `${frames} frames, ${middle.toFixed(1)} ms, 99 % ${late.toFixed(0)} ms, worst ${worst.toFixed(0)} ms${blank === undefined ? '' : `, ${blank} blank`}`;

/** Each run prints on a clock of its own, as much as is due: the app gathers for 50 ms. Runs in the page. */
function pour({ runs, letters }) {
  const fed = (window.__fed = Array.from({ length: runs }, () => 0));
  const line = (number) => `#${number} ${'lorem ipsum '.repeat(30).slice(0, letters - 16)} ${number}#\n`;
  const lines = (run, count) => Array.from({ length: count }, () => line((fed[run] += 1))).join('');
  for (let run = 0; run < runs; run += 1) {
    const began = performance.now() + run * 5;
    setInterval(() => {
      const due = Math.floor(performance.now() - began) - fed[run] + (window.__extra?.[run] ?? 0);
      if (due > 0) window.__mock.output(`flood${run}`, { kind: 'output', stream: 'stdout', text: lines(run, due), missed: 0 });
    }, 50);
  }
  /** So many thousand lines at once. More than twenty-three are not kept: four million characters. */
  window.__fill = (thousands) => {
    window.__extra ??= { 0: 0 };
    for (let part = 0; part < thousands; part += 1) {
      window.__mock.output('flood0', { kind: 'output', stream: 'stdout', text: lines(0, 1000), missed: 0 });
      window.__extra[0] += 1000;
    }
  };
}

/** What every painted frame showed. Runs in the page. */
async function watchFrames({ forMs, pane = false }) {
  const box = pane ? document.querySelector('.rows[role=region]') : null;
  const spans = [];
  const tops = new Set();
  let [blank, off, behind, fell] = [0, 0, 0, 0];
  let highest = 0;
  const look = () => {
    const outer = box.getBoundingClientRect();
    const rows = [...box.querySelectorAll('.row')];
    highest = Math.max(highest, box.scrollTop);
    fell = Math.max(fell, highest - box.scrollTop);
    let covered = outer.top;
    for (const row of rows) {
      const { top, bottom } = row.getBoundingClientRect();
      // Its own edge is eight pixels wide.
      if (top <= covered + 9) covered = Math.max(covered, bottom);
      if (!tops.has(row.textContent) && top <= outer.top + 1 && bottom > outer.top + 1) tops.add(row.textContent);
    }
    if (covered < outer.bottom - 9) blank += 1;
    const last = rows.at(-1);
    if (!last || Math.abs(last.getBoundingClientRect().bottom - (outer.bottom - 8)) > 2) off += 1;
    const shown = Number(/(\d+)#$/.exec(last?.textContent ?? '')?.[1]);
    if (shown) behind = Math.max(behind, window.__fed[0] - shown);
  };
  const end = performance.now() + forMs;
  for (let last = performance.now(); last < end; ) {
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    spans.push(now - last);
    last = now;
    // Behind the painting of this frame.
    if (box) {
      await new Promise((resolve) => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = resolve;
        port2.postMessage(0);
      });
      look();
    }
  }
  spans.shift();
  spans.sort((a, b) => a - b);
  return {
    frames: spans.length, middle: spans[spans.length >> 1], late: spans[Math.floor(spans.length * 0.99)], worst: spans.at(-1),
    ...(box && { blank, off, behind, tops: [...tops], fell }),
  };
}
