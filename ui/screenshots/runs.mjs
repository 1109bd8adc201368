// What the page of a run shows and does, in each state of the run.

import assert from 'node:assert/strict';

import { parts } from './fixtures.mjs';

const { busy, snapshot, row, body, running, queued, live, piece } = parts;
const calls = (page, command) => page.evaluate((name) => window.__mock.calls.filter((call) => call.command === name).map((call) => call.args), command);
const tabs = (page) => page.getByRole('tab').allTextContents();
const alive = { ...busy, snapshot: { ...snapshot, running, queued }, live, open: 'runs' };

export const runTrials = {
  async 'a run that waits or runs shows its code and its inputs, and the tab stays when it ends'({ start }) {
    const ended = { ...row, run_id: 'wait1', label: 'Evaluate the classifier', at_ms: Date.now() };
    const page = await start({ ...alive, records: { wait1: { run: ended, body } }, run: 'wait1' });
    assert.deepEqual(await tabs(page), ['Output', 'Code', 'Inputs (3)', 'Details']);
    const code = page.getByRole('region', { name: 'Code' });
    await code.getByText('# Totals of each month, largest first.').waitFor();
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByText('Copied').waitFor();
    assert.ok((await calls(page, 'copy_text'))[0].text.startsWith('import csv'), 'the code is copied');
    await page.getByRole('tab', { name: 'Inputs' }).click();
    await page.getByText('without the returns of last month').waitFor();
    await page.getByText('2026-01-01').waitFor();
    await page.getByText('This picture is shown once the program has ended.').waitFor();
    assert.deepEqual(await calls(page, 'history_picture'), [], 'no picture of a run that has no record');
    await page.getByRole('tab', { name: 'Details' }).click();
    await page.getByText('/opt/agents/desktop, process 4312').waitFor();

    await page.getByRole('tab', { name: 'Inputs' }).click();
    await page.evaluate(() => window.__mock.snapshot({ queued: [], running: window.__mock.state().snapshot.queued.map(({ waiting, ...run }) => run) }));
    await page.getByRole('heading', { name: /^Running for/ }).waitFor();
    assert.equal((await calls(page, 'live_request')).length, 2, 'its limits may have changed');
    await page.evaluate((run) => {
      window.__mock.tell({ kind: 'finished', run });
      window.__mock.snapshot({ running: [] });
    }, ended);
    await page.getByRole('heading', { name: /^Finished in/ }).waitFor();
    assert.equal(await page.getByRole('tab', { name: 'Inputs' }).getAttribute('aria-selected'), 'true');
    assert.deepEqual((await tabs(page)).map((name) => name.split(' ')[0]), ['Output', 'Code', 'Inputs', 'Files', 'Details']);
    return page;
  },

  async 'a run that prints is read from its output, one that waits from its code'({ start }) {
    const page = await start({ ...alive, run: 'live1' });
    assert.equal(await page.getByRole('tab', { name: 'Output' }).getAttribute('aria-selected'), 'true');
    const waits = await start({ ...alive, run: 'wait1' });
    assert.equal(await waits.getByRole('tab', { name: 'Code' }).getAttribute('aria-selected'), 'true');
    await waits.evaluate(() => window.__mock.snapshot({ queued: [], running: window.__mock.state().snapshot.queued.map(({ waiting, ...run }) => run) }));
    await waits.locator('[role=tab][aria-selected=true]', { hasText: 'Output' }).waitFor();
    return waits;
  },

  async 'where Stop was, nothing is pressed by a second click'({ start }) {
    const ended = { ...row, run_id: 'live1', label: 'Train a small classifier', at_ms: Date.now() };
    let page;
    for (const view of [{}, { width: 720, height: 520 }, { width: 1600, height: 1000 }, { text: 2 }, { width: 720, height: 520, text: 2 }]) {
      page = await start({ ...alive, snapshot: { ...snapshot, running: [running[0]] }, records: { live1: { run: ended, body } }, run: 'live1' }, view);
      const stop = await page.locator('article').getByRole('button', { name: /^Stop / }).boundingBox();
      await page.evaluate((run) => {
        window.__mock.tell({ kind: 'finished', run });
        window.__mock.snapshot({ running: [] });
      }, ended);
      await page.getByRole('heading', { name: /^Finished in/ }).waitFor();
      for (const name of ['Run again', 'Delete this run', 'Copy']) {
        const other = await page.getByRole('button', { name }).boundingBox();
        const apart = other.x >= stop.x + stop.width || stop.x >= other.x + other.width || other.y >= stop.y + stop.height || stop.y >= other.y + other.height;
        assert.ok(apart, `${name} ${JSON.stringify(other)} is where Stop was, ${JSON.stringify(stop)}`);
      }
    }
    return page;
  },

  async 'files are in an order that one looks for, folded, and saved at once'({ start }) {
    const run = { ...row, run_id: 'one', files_out: { count: 3, bytes: 9 } };
    const files = [
      { name: 'z.json', size: 30_000, preview: { kind: 'text', cut: false, text: JSON.stringify(Array.from({ length: 400 }, (_, at) => ({ at }))) } },
      { name: 'a.txt', size: 9, preview: { kind: 'text', cut: false, text: 'short\n' } },
      { name: 'plot.png', size: 9, preview: { kind: 'picture' } },
    ];
    const page = await start({ ...busy, rows: [run], records: { one: { run, body: { ...body, files } } }, open: 'runs', run: 'one' });
    await page.getByRole('tab', { name: 'Files' }).click();
    assert.deepEqual(await page.locator('.files section .name').allTextContents(), ['plot.png', 'a.txt', 'z.json']);
    assert.deepEqual(await page.getByRole('list', { name: 'All files' }).getByRole('button').locator('.clip').allTextContents(), ['plot.png', 'a.txt', 'z.json']);
    const json = page.getByRole('region', { name: 'z.json' });
    await json.getByText('"at": 3', { exact: true }).waitFor();
    const height = await json.evaluate((node) => node.offsetHeight);
    assert.ok(height < 400, `folded: ${height}`);
    await json.getByRole('button', { name: 'Show more lines' }).click();
    await json.getByText('"at": 300', { exact: true }).waitFor();
    await page.getByRole('list', { name: 'All files' }).getByRole('button', { name: 'plot.png' }).click();
    assert.ok(await page.getByRole('region', { name: 'plot.png' }).evaluate((node) => node === document.activeElement), 'the name leads to the file');

    await page.getByRole('button', { name: 'Save all' }).click();
    await page.getByText('Saved 3 files in /home/ada/Downloads').waitFor();
    await page.getByRole('button', { name: 'Open folder' }).click();
    await page.getByRole('button', { name: 'Save a.txt' }).click();
    await page.getByText('Saved as a.txt in /home/ada/Downloads').waitFor();
    assert.deepEqual(await calls(page, 'save_all'), [{ runId: 'one' }]);
    assert.deepEqual(await calls(page, 'open_saved'), [{ place: 2 }]);
    return page;
  },

  async 'a JSON file that grows too long by its indentation says that there is more'({ start }) {
    const run = { ...row, run_id: 'one', files_out: { count: 1, bytes: 9 } };
    // 99,901 characters in one line; indented, two more and a line end for each of 900 lines, which are fewer than are shown.
    const text = JSON.stringify(Array.from({ length: 900 }, () => 'x'.repeat(108)));
    const files = [{ name: 'a.json', size: text.length, preview: { kind: 'text', cut: false, text } }];
    const page = await start({ ...busy, rows: [run], records: { one: { run, body: { ...body, files } } }, open: 'runs', run: 'one' });
    await page.getByRole('tab', { name: 'Files' }).click();
    await page.getByRole('button', { name: 'Show more lines' }).click();
    await page.getByText('There is more in the file. Save it to see all.').waitFor({ timeout: 2000 });
    return page;
  },

  async 'every run that waits can be listed and stopped'({ start }) {
    const many = Array.from({ length: 60 }, (_, at) => ({ ...queued[0], run_id: `w${at}`, label: `Number ${at}`, waiting: { why: 'turn', ahead: at } }));
    const page = await start({ ...busy, snapshot: { ...snapshot, queued: many }, open: 'runs' });
    assert.equal(await page.getByRole('button', { name: /^Stop Number/ }).count(), 3);
    await page.getByRole('button', { name: 'Show 50 more runs waiting' }).click();
    await page.getByRole('button', { name: 'Show 7 more runs waiting' }).click();
    await page.getByRole('button', { name: 'Stop Number 59' }).click();
    assert.deepEqual(await calls(page, 'stop_run'), [{ runId: 'w59' }]);
    return page;
  },

  async 'output of a run that is over scrolls after the window became narrower'({ start }) {
    const run = { ...row, run_id: 'one' };
    const lines = Array.from({ length: 2000 }, (_, at) => `line ${at} ${'of a long report '.repeat(12)}`).join('\n');
    const page = await start({ ...busy, rows: [run], records: { one: { run, body: { ...body, stdout: piece(lines) } } }, open: 'runs', run: 'one' });
    const output = page.getByRole('region', { name: 'Output' });
    for (const width of [1200, 800]) {
      await page.setViewportSize({ width, height: 640 });
      await page.waitForTimeout(100);
      await output.evaluate((box) => box.scrollTo(0, box.scrollHeight));
      await output.getByText('line 1999').waitFor({ timeout: 2000 });
      await output.evaluate((box) => box.scrollTo(0, 0));
      await output.getByText('line 0 ').waitFor({ timeout: 2000 });
    }
    return page;
  },

  async 'the list and the page count from the end of a run, and agree'({ start }) {
    const run = { ...row, run_id: 'one', at_ms: Date.now() - 200_000, queued_seconds: 20, seconds: 59 };
    const page = await start({ ...busy, total: 1, rows: [run], records: { one: { run, body: { ...body, stdout: piece('x\n') } } }, open: 'runs' });
    await page.waitForTimeout(1200);
    await page.locator('[role=option]').first().click();
    const [inList, onPage] = [page.locator('[role=option] time').first(), page.locator('article time').first()];
    await onPage.waitFor();
    assert.equal((await onPage.textContent()).replace('· ', ''), await inList.textContent());
    assert.equal(await inList.textContent(), '2 min ago');
    return page;
  },

  async 'Overview says what runs now and for whom, and a run of a moment does not move it'({ start }) {
    const page = await start(busy);
    const now = page.getByRole('region', { name: 'Running now' });
    await now.getByText('Nothing').waitFor();
    const place = () => page.getByRole('heading', { name: 'Languages' }).evaluate((node) => node.getBoundingClientRect().top);
    const before = await place();
    const brief = { ...running[0], run_id: 'brief', started_ms: Date.now() };
    await page.evaluate((run) => window.__mock.snapshot({ running: [run] }), brief);
    await page.waitForTimeout(50);
    assert.equal(await place(), before);
    await page.evaluate((run) => window.__mock.snapshot({ running: [run] }), { ...running[0], started_ms: Date.now() - 23_000 });
    await now.getByText('Train a small classifier').waitFor();
    assert.equal((await now.locator('.by').innerText()).replace(/\s+/g, ' '), 'Python · claude-desktop program claude');
    assert.equal(await place(), before, 'one has the room of none');
    await page.evaluate((run) => window.__mock.snapshot({ running: [run] }), { ...running[0], started_ms: Date.now() - 23_000, waiting: { why: 'starting' } });
    await now.getByText('Starting…').waitFor();
    assert.equal(await now.getByText('of 60').count(), 0, 'no time before it runs');
    await now.getByRole('button', { name: /Train a small classifier/ }).click();
    await page.locator('.main').getByRole('heading', { name: 'Starting…' }).waitFor();
    return page;
  },
};
