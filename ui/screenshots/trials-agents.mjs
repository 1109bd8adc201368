// The pages Agents and Settings: who came in, how to connect, trying it, and what a change of a setting shows.

import assert from 'node:assert/strict';

import { parts, states } from './fixtures.mjs';

const { base, busy, snapshot, settings } = parts;
const calls = (page, command) => page.evaluate((name) => window.__mock.calls.filter((call) => call.command === name).map((call) => call.args), command);
const LONG = 'Sandtray '.repeat(25).trim();

export const agentTrials = {
  async 'each example is copied as it is shown, with the socket’s own path'({ start }) {
    const socket = '/run/user/1000/a "b" \\c/agent.sock';
    const page = await start({ ...base, snapshot: { ...snapshot, socket }, open: 'agents' });
    await page.getByRole('button', { name: 'Copy the address' }).click();
    const shown = [];
    for (const name of ['Command line', 'Python', 'Node']) {
      await page.getByText(name, { exact: true }).click();
      shown.push(await page.locator('#connect-how pre').innerText());
      await page.getByRole('button', { name: 'Copy the example' }).click();
    }
    const copied = (await calls(page, 'copy_text')).map(({ text }) => text);
    assert.equal(copied[0], socket);
    // What is shown ends without the last line end.
    assert.deepEqual(copied.slice(1).map((text) => text.trimEnd()), shown.map((text) => text.trimEnd()));
    assert.ok(copied[2].includes(JSON.stringify(socket)) && copied[3].includes(JSON.stringify(socket)));
    const said = await page.locator('#connect-how').innerText();
    for (const part of ['60 s', 'one processor', '512 MB', '64 KB', '5 MB', 'Python 3.12']) assert.ok(said.replaceAll('\u00a0', ' ').includes(part), part);
    return page;
  },

  async 'a text to copy that has more in it than is seen shows marks, and is copied without them'({ start }) {
    const socket = '/run/a\u202e/\u001bagent.sock';
    const page = await start({ ...base, snapshot: { ...snapshot, socket }, open: 'agents' });
    assert.equal(await page.locator('.copy pre').first().innerText(), '/run/a⟦U+202E⟧/␛agent.sock');
    await page.getByText('The marks are not copied.').first().waitFor();
    await page.getByRole('button', { name: 'Copy the address' }).click();
    assert.deepEqual(await calls(page, 'copy_text'), [{ text: socket }]);
    await page.evaluate(() => window.__mock.snapshot({ socket: '/run/agent.sock' }));
    await page.getByText('The marks are not copied.').first().waitFor({ state: 'detached' });
    return page;
  },

  async 'without a run the page of runs leads to where agents connect'({ start }) {
    const page = await start({ ...base, open: 'runs' });
    await page.getByRole('button', { name: 'Connect an agent' }).click();
    await page.getByRole('heading', { name: 'Connect an agent' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Hide' }).getAttribute('aria-expanded'), 'true', 'open before the first agent');
    const used = await start({ ...busy, open: 'agents' });
    const connect = used.getByRole('region', { name: 'Connect an agent' });
    assert.equal((await connect.innerText()).replace(/\s+/g, ' ').trim(), 'Connect an agent Show how to connect', 'one line afterwards');
    await connect.getByRole('button', { name: 'Show how to connect' }).click();
    await connect.getByRole('button', { name: 'Copy the address' }).waitFor();
    return page;
  },

  async 'hello world runs where it can, and says what to do where it cannot'({ start }) {
    const off = await start({ ...base, snapshot: { ...snapshot, enabled: false }, open: 'agents' });
    assert.ok(await off.getByRole('button', { name: 'Run hello world' }).isDisabled());
    await off.getByRole('button', { name: 'Turn on' }).click();
    assert.deepEqual(await calls(off, 'set_enabled'), [{ enabled: true }]);
    await off.getByRole('button', { name: 'Run hello world' }).click();
    await off.getByText('Hello, world', { exact: true }).waitFor();
    assert.equal((await off.locator('.result strong').innerText()).replace('\u00a0', ' '), '9 ms');
    await off.getByRole('button', { name: 'Open the run' }).click();
    assert.equal(await off.getByRole('button', { name: 'Runs' }).first().getAttribute('aria-current'), 'page');

    const trouble = await start({ ...states('')['not-running'], open: 'agents' });
    assert.ok(await trouble.getByRole('button', { name: 'Run hello world' }).isDisabled());
    await trouble.getByRole('button', { name: 'See what to do on Overview' }).click();
    await trouble.getByRole('button', { name: 'Retry' }).waitFor();

    const images = snapshot.images.map((image) => ({ language: image.language, title: image.title, language_version: image.language_version, image: image.image, pinned: false, state: 'not_pulled' }));
    const page = await start({ ...base, snapshot: { ...snapshot, images }, tried: null, open: 'agents' });
    await page.getByText('What Python programs need isn’t here yet: it is fetched first.').waitFor();
    await page.getByRole('button', { name: 'Run hello world' }).click();
    const waiting = { ...parts.running[0], run_id: 'tried', client: 'Sandtray', program: null, waiting: { why: 'pull', fraction: 0.46, downloaded_bytes: 46, total_bytes: 100 } };
    await page.evaluate((run) => window.__mock.snapshot({ queued: [run] }), waiting);
    await page.locator('section').getByRole('progressbar', { name: 'Fetching Python' }).waitFor();
    await page.locator('section').getByText(/46.%/).first().waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    assert.deepEqual(await calls(page, 'stop_run'), [{ runId: 'tried' }]);
    const error = { code: 'image_unavailable', message: 'The image cannot be fetched: no network.', hint: 'Connect this computer.', faults: [] };
    await page.evaluate((error) => window.__mock.tried({ kind: 'refused', error }), error);
    await page.getByText('The image cannot be fetched: no network.').waitFor();
    await page.getByText('Connect this computer.').waitFor();
    return page;
  },

  async 'who came in is named by program and claim, and leads to its runs'({ start }) {
    const page = await start({ ...busy, open: 'agents' });
    const rows = await page.locator('ul .row').allInnerTexts();
    assert.equal(rows.length, 4);
    assert.match(rows[0], /claude-desktop\s+claude, process 4312\s+Connected now\s+First seen .*\s+1,022 runs/);
    assert.match(rows[2], /claude-desktop\s+node\s+Last seen \d+ min ago\s+First seen 1 h ago\s+1 run/);
    await page.getByRole('button', { name: '1,022 runs of claude-desktop' }).click();
    await page.getByRole('listbox').waitFor();
    const last = (await calls(page, 'history_page')).at(-1).filter;
    assert.deepEqual([last.client, last.program], ['claude-desktop', 'claude']);
    assert.equal(await page.getByRole('combobox', { name: 'Filter by client' }).evaluate((box) => box.selectedOptions[0].textContent), 'claude-desktop (claude)');
    return page;
  },

  async 'a claimed name never pushes its program out of sight'({ start }) {
    const claim = { client: LONG, client_program: 'python3.11' };
    const rows = [{ ...parts.row, run_id: 'one', ...claim }, { ...parts.row, run_id: 'two', client: 'Sandtray', client_program: null }];
    const live = { ...parts.running[0], client: LONG, program: 'python3.11' };
    const agents = [{ name: LONG, program: 'python3.11', pid: 7, first_ms: 0, last_ms: 0, runs: 3, connected: true }];
    const page = await start({ ...busy, agents, total: 2, rows, snapshot: { ...snapshot, running: [live], queued: [{ ...live, run_id: 'q' }] }, open: 'runs', run: 'one' }, { width: 720, height: 520 });
    const seen = () =>
      page.evaluate(() =>
        // Where its letters are, cut by nothing that clips: a box of its own may be wider or narrower than they are.
        [...document.querySelectorAll('.who .program bdi, .who bdi.mono')]
          .filter((node) => node.checkVisibility({ visibilityProperty: true }))
          .map((node) => {
            const range = document.createRange();
            range.selectNodeContents(node);
            const { left, right } = range.getBoundingClientRect();
            let [from, to] = [0, innerWidth];
            for (let at = node; at; at = at.parentElement) {
              if (getComputedStyle(at).overflowX === 'visible') continue;
              const box = at.getBoundingClientRect();
              [from, to] = [Math.max(from, box.left), Math.min(to, box.right)];
            }
            return { text: node.textContent.trim(), whole: left >= from - 1 && right <= to + 1, from, left, right, to };
          }),
      );
    for (const [page_, run] of [['runs', 'one'], ['runs', null], ['agents', null], ['overview', null]]) {
      await page.evaluate(([to, id]) => window.__mock.emit('navigate', { page: to, run_id: id }), [page_, run]);
      if (page_ === 'runs' && run === null) await page.getByRole('button', { name: 'Back to the list' }).click();
      await page.waitForTimeout(150);
      const programs = await seen();
      assert.ok(programs.some(({ text }) => text.includes('python3.11')), `${page_}: ${JSON.stringify(programs)}`);
      assert.ok(programs.every(({ whole }) => whole), `${page_}: ${JSON.stringify(programs)}`);
    }
    await page.evaluate(() => window.__mock.emit('navigate', { page: 'runs', run_id: null }));
    await page.locator('.who .own').first().getByText('this window').waitFor();
    return page;
  },

  async 'a new agent is told of in the window and leads to the page'({ start }) {
    const text = 'claude (the program node) runs a program in a sandbox for the first time.';
    const page = await start({ ...busy, told: [{ text, to: { page: 'agents', run_id: null } }] });
    await page.getByRole('note').getByText(text).waitFor();
    await page.getByRole('note').getByRole('button', { name: 'Show' }).click();
    await page.getByRole('heading', { name: 'Who came in' }).waitFor();
    assert.equal(await page.getByRole('note').count(), 0);
    return page;
  },

  async 'a changed setting says what it was by default and goes back by one press'({ start }) {
    const changed = {
      ...settings, concurrency: 3, engine: 'unix:///run/my.sock', theme: 'dark', notifications: false, warm: 0,
      images: { python: 'python:3.13' }, limits: { ...settings.limits, seconds: 5, memory_mb: 2048 }, history: { ...settings.history, keep: 'metrics' },
    };
    const page = await start({ ...busy, settings: changed, open: 'settings' });
    const offers = await page.getByRole('button', { name: /^Reset / }).evaluateAll((nodes) => nodes.map((node) => node.getAttribute('aria-label')));
    assert.deepEqual(offers, [
      'Reset Time to 60 seconds', 'Reset Memory to 512 MB', 'Reset Programs at once to automatic', 'Reset Kept ready to 8 containers', 'Reset Engine to found automatically',
      'Reset Image for Python to python:3.12-slim', 'Reset Keep of each run to Code, inputs and output', 'Reset Appearance to As the system', 'Reset Notifications to on',
    ]);
    for (let left = offers.length; left > 0; left -= 1) {
      await page.getByRole('button', { name: /^Reset / }).first().click();
      await page.waitForFunction((count) => window.__mock.calls.filter(({ command }) => command === 'apply_settings').length === count, offers.length - left + 1);
      await page.waitForFunction((count) => document.querySelectorAll('button[aria-label^="Reset "]').length <= count, left - 1);
    }
    const last = (await calls(page, 'apply_settings')).at(-1).settings;
    assert.deepEqual({ ...last, enabled: false }, { ...settings, enabled: false });
    return page;
  },

  async 'what a row of the settings says moves no row below it'({ start }) {
    const refuse = [{ field: 'limits.cpus', value: 64, message: 'can be at most 8: Docker has no more processors' }];
    for (const size of [{}, { width: 720, height: 520, text: 2 }]) {
      const page = await start({ ...busy, open: 'settings', refuse }, size);
      const tops = () => page.evaluate(() => [...document.querySelectorAll('main .row')].map((row) => Math.round(row.getBoundingClientRect().top + document.querySelector('main').scrollTop)));
      const before = await tops();
      const memory = page.getByLabel('Memory', { exact: true });
      await memory.fill('8');
      await memory.press('Enter');
      await page.getByText('Enter a number from 32 to 1,048,576.').waitFor();
      const cpus = page.getByLabel('Processors', { exact: true });
      await cpus.fill('64');
      await cpus.press('Enter');
      await page.getByText('It can be at most 8: Docker has no more processors.').waitFor();
      assert.deepEqual(await tops(), before, 'errors');
      await memory.fill('2048');
      await memory.press('Enter');
      await page.getByText('Saved').waitFor();
      assert.deepEqual(await tops(), before, 'saved');
      await page.getByText('Default: 512').waitFor();
      assert.deepEqual(await tops(), before, 'the default');
      assert.equal(await memory.inputValue(), '2,048');
      if (size.text === 2) return page;
    }
  },

  async 'removing an image says who else may need it, and its row keeps its line'({ start }) {
    const page = await start(busy);
    const lines = () => page.evaluate(() => [...document.querySelectorAll('ul .row')].map((row) => getComputedStyle(row).borderTopWidth));
    const before = await lines();
    assert.equal(before.filter((width) => width === '1px').length, before.length - 1);
    await page.getByRole('button', { name: 'Remove Python' }).click();
    await page.getByRole('dialog').getByText(/Other programs that use the same Docker may need this image too/).waitFor();
    assert.deepEqual(await lines(), before);
    return page;
  },
};
