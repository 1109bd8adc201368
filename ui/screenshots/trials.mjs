// The built window, tried in a real browser under the app's content security policy: hostile output, long lists, keys.

import assert from 'node:assert/strict';

import { open } from './browser.mjs';
import { parts, states } from './fixtures.mjs';
import { controls, tools } from './reach.mjs';
import { rates } from './rates.mjs';
import { runTrials } from './runs.mjs';
import { strangers } from './strangers.mjs';
import { agentTrials } from './trials-agents.mjs';

const { base, busy, snapshot, row, body, running, fetching, live, piece, said } = parts;

const ATTACKS = [
  '<img src=x onerror="window.__hit=1">', '<script>window.__hit=1</script>', '"><svg onload=window.__hit=1>', "javascript:window.__hit=1",
  '<iframe srcdoc="<script>parent.__hit=1</script>"></iframe>', '{@html "<b>x</b>"}', '<a href="javascript:window.__hit=1">x</a>',
].join('\n');
const TRICKS = `${ATTACKS}\n\x1b]8;;javascript:window.__hit=1\x07link\x1b]8;;\x07 \x1b[2J\x1b[31mred\x1b[0m \u202egnp.exe\u202c \x00\x07\x1b]0;title\x07\n`;
const NAME = '<img src=x onerror=window.__hit=1>\u202e.png';
const hostileRow = { ...row, run_id: 'hostile', label: TRICKS, client: ATTACKS, client_program: ATTACKS, image: ATTACKS, files_out: { count: 3, bytes: 9 } };
const hostileBody = {
  ...body,
  code: piece(TRICKS), stdout: piece(TRICKS), stderr: piece(TRICKS),
  inputs: [
    { name: null, size: 9, kept: true, preview: { kind: 'text', text: TRICKS, cut: false } },
    { name: NAME, size: 1, kept: true, preview: { kind: 'picture' } },
  ],
  files: [
    { name: NAME, size: 3, preview: { kind: 'picture' } },
    { name: '../../etc/passwd', size: 3, preview: { kind: 'csv', text: `${ATTACKS.replaceAll('\n', ',')}\n=cmd(),2\n`, cut: false } },
    { name: 'a.html', size: 3, preview: { kind: 'text', text: TRICKS, cut: false } },
  ],
  skipped_files: [{ name: NAME, reason: 'bad_name' }], left_behind: [NAME],
};

const list = {
  ...runTrials,
  ...agentTrials,

  async 'hostile text does nothing anywhere'({ start }) {
    const liveRun = { ...running[0], label: TRICKS, client: ATTACKS };
    const page = await start({
      ...busy, rows: [hostileRow], records: { hostile: { run: hostileRow, body: hostileBody } },
      snapshot: {
        ...snapshot, running: [liveRun], notices: [ATTACKS],
        engine: { ...snapshot.engine, name: ATTACKS }, images: snapshot.images.map((image) => ({ ...image, image: ATTACKS })),
      },
      // Whatever stands in the place of a picture that the app made.
      pictures: { [NAME]: { kind: 'fits', width: 3, height: 3, moves: false, png: btoa('<svg xmlns="http://www.w3.org/2000/svg" onload="window.__hit=1"/>') } },
      live: { live1: [{ kind: 'output', stream: 'stdout', text: TRICKS, missed: 0 }] }, told: [TRICKS],
      errors: { stop_run: { code: 'internal', message: ATTACKS, hint: ATTACKS, faults: [] } },
    });
    await page.evaluate(() => window.__mock.emit('navigate', { page: 'runs', run_id: 'hostile' }));
    for (const tab of ['Output', 'Code', 'Inputs', 'Files', 'Details']) {
      await page.getByRole('tab', { name: tab }).click();
      await page.waitForTimeout(120);
    }
    await page.getByRole('tab', { name: 'Output' }).click();
    const shown = await page.getByRole('region', { name: 'Output' }).innerText();
    assert.ok(shown.includes('<img src=x onerror="window.__hit=1">'), 'shown as text');
    assert.ok(shown.includes('⟦U+202E⟧gnp.exe⟦U+202C⟧') && shown.includes('␀'), 'marks for what can’t be seen');
    await page.evaluate(() => window.__mock.emit('navigate', { page: 'runs', run_id: 'live1' }));
    await page.getByRole('button', { name: /^Stop / }).first().click();
    await page.waitForTimeout(200);
    await page.evaluate(() => window.__mock.emit('navigate', { page: 'overview' }));
    await page.waitForTimeout(200);
    const found = await page.evaluate(() => ({
      hit: window.__hit, title: document.title, elements: document.querySelectorAll('img[src=x], script:not([src]), iframe, a[href^=javascript]').length,
    }));
    assert.deepEqual(found, { hit: undefined, title: 'Sandtray', elements: 0 });
    return page;
  },

  async 'text of strangers moves and hides no control, in any page and state'({ start, browser, url }) {
    await strangers({ browser, url, png: await picture() });
    return start(base);
  },

  async 'ten programs that print a thousand lines a second each are followed, and leave a reader alone'({ start }) {
    return rates({ start });
  },

  async 'a line of ten megabytes and a million lines leave the window quick'({ start }) {
    const page = await start({ ...busy, snapshot: { ...snapshot, running: [running[0]] }, open: 'runs', run: 'live1' });
    const feed = async (label, text, times) => {
      const took = await page.evaluate(
        async ([chunk, count]) => {
          const began = performance.now();
          for (let at = 0; at < count; at += 1) {
            window.__mock.output('live1', { kind: 'output', stream: 'stdout', text: chunk, missed: 0 });
            if (at % 8 === 7) await new Promise((resolve) => setTimeout(resolve));
          }
          await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
          return performance.now() - began;
        },
        [text, times],
      );
      const nodes = await page.evaluate(() => document.querySelectorAll('*').length);
      assert.ok(nodes < 1500, `${label}: ${nodes} elements`);
      assert.ok(took < 8000, `${label}: ${took} ms`);
      console.log(`  ${label}: ${Math.round(took)} ms, ${nodes} elements`);
    };
    await feed('ten megabytes in one line', 'x'.repeat(1 << 16), 160);
    await feed('a million lines', 'line of output\n'.repeat(4000), 250);
    await page.evaluate(() => window.__mock.output('live1', { kind: 'output', stream: 'stderr', text: 'the end\n', missed: 0 }));
    await page.getByText('the end').first().waitFor();
    const box = page.getByRole('region', { name: 'Output' });
    await box.hover();
    await page.mouse.wheel(0, -3000);
    await page.waitForTimeout(100);
    const before = await box.evaluate((node) => node.scrollTop);
    await page.evaluate(() => window.__mock.output('live1', { kind: 'output', stream: 'stdout', text: 'more\n'.repeat(50), missed: 0 }));
    await page.waitForTimeout(100);
    assert.equal(await box.evaluate((node) => node.scrollTop), before, 'the reader’s place is kept');
    await page.getByRole('button', { name: 'Follow the end' }).click();
    await page.waitForTimeout(100);
    assert.ok(await box.evaluate((node) => node.scrollTop + node.clientHeight >= node.scrollHeight - 2), 'at the end again');
    return page;
  },

  async 'a hundred thousand runs open, scroll and are searched without a wait'({ start }) {
    const page = await start({ ...busy, total: 100_000 });
    const opened = await page.evaluate(async () => {
      const began = performance.now();
      window.__mock.emit('navigate', { page: 'runs' });
      while (!document.querySelector('[role=option] time')) await new Promise(requestAnimationFrame);
      return performance.now() - began;
    });
    const scrolled = await page.evaluate(async () => {
      const box = document.querySelector('[role=listbox]');
      const frames = [];
      let last = performance.now();
      for (let step = 1; step <= 120; step += 1) {
        box.scrollTop += 1500;
        await new Promise(requestAnimationFrame);
        frames.push(performance.now() - last);
        last = performance.now();
      }
      frames.sort((a, b) => a - b);
      return { middle: frames[60], worst: frames.at(-1), options: document.querySelectorAll('[role=option]').length };
    });
    const atEnd = await page.evaluate(async () => {
      const box = document.querySelector('[role=listbox]');
      const began = performance.now();
      box.scrollTop = box.scrollHeight;
      while (!document.querySelector('[aria-posinset="100000"] time')) await new Promise(requestAnimationFrame);
      return performance.now() - began;
    });
    const began = Date.now();
    await page.keyboard.press('/');
    await page.keyboard.type('json');
    await page.getByText(/found$/).waitFor();
    const searched = Date.now() - began;
    console.log(`  opened ${Math.round(opened)} ms; a frame ${scrolled.middle.toFixed(1)} ms, worst ${scrolled.worst.toFixed(0)} ms; to the end ${Math.round(atEnd)} ms; searched ${searched} ms`);
    assert.ok(opened < 300 && scrolled.middle < 34 && scrolled.options < 60 && atEnd < 10_000 && searched < 1000);
    return page;
  },

  async 'everything can be done with keys'({ start }) {
    const page = await start({ ...busy, snapshot: { ...snapshot, running: [running[0]] }, live });
    await page.keyboard.press('Control+2');
    await page.getByRole('listbox').focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('tab', { name: 'Output' }).focus();
    await page.keyboard.press('ArrowRight');
    assert.equal(await page.getByRole('tab', { name: 'Code' }).getAttribute('aria-selected'), 'true');
    await page.keyboard.press('Control+.');
    await page.waitForTimeout(50);
    assert.deepEqual(await calls(page, 'stop_run'), [{ runId: 'live1' }]);
    await page.keyboard.press('Control+4');
    await page.getByLabel('Memory').fill('256');
    await page.keyboard.press('Enter');
    await page.getByText('Saved').waitFor();
    assert.equal((await calls(page, 'apply_settings'))[0].settings.limits.memory_mb, 256);
    await page.keyboard.press('/');
    assert.equal(await page.getByLabel('Memory').inputValue(), '256/', 'a slash in a field is a slash');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+1');
    const seen = new Set();
    for (let at = 0; at < 40; at += 1) {
      await page.keyboard.press('Tab');
      const focus = await page.evaluate(() => {
        const node = document.activeElement;
        const style = getComputedStyle(node);
        return node === document.body ? null : { name: node.getAttribute('aria-label') ?? node.textContent.trim(), ring: style.outlineStyle !== 'none' };
      });
      if (!focus) continue;
      assert.ok(focus.ring, `focus on ${focus.name} is seen`);
      seen.add(focus.name);
    }
    for (const name of ['Overview', 'Run code in isolation', 'Remove Python', 'Prepare Go now', 'Download Rust', 'All runs']) assert.ok(seen.has(name), `${name} is reached`);
    return page;
  },

  async 'every control of every page has a name, is reached by Tab and shows it'({ start }) {
    const all = states('');
    const wanted = ['off-never-used', 'on-no-runs-runs', 'overview', 'permission-denied', 'no-engine', 'over-ssh', 'waiting-runs', 'run-again-off', 'service-elsewhere', 'history-set-aside', 'pulling', 'pull-failed', 'live-runs', 'failed-run', 'run-chart', 'run-details', 'agents', 'agents-connect', 'settings'];
    let page;
    for (const state of wanted) {
      page = await start(all[state]);
      await page.evaluate(tools);
      const names = await page.evaluate(controls);
      assert.ok(names.length > 3 && !names.includes(''), `${state}: ${JSON.stringify(names)}`);
      const seen = new Set();
      await page.evaluate(() => document.activeElement?.blur());
      for (let at = 0; at < names.length + 3; at += 1) {
        await page.keyboard.press('Tab');
        const focus = await page.evaluate(() => window.__reach.focused());
        if (!focus) continue;
        assert.ok(focus.ringed, `${state}: focus on ${focus.name} is seen`);
        seen.add(focus.at);
      }
      // Of tabs and choices only the chosen one is in the way of Tab; arrows reach the others.
      const others = ['Code', 'Inputs', 'Files', 'Details', 'Output', 'Python', 'Node', 'Command line'];
      const missed = names.filter((name, at) => !seen.has(at) && !others.includes(name.replace(/ \(\d+\)$/, '')));
      assert.deepEqual(missed, [], `${state}: reached by Tab`);
    }
    return page;
  },

  async 'the focus goes where the eye goes'({ start }) {
    const page = await start({ ...busy, open: 'runs' }, { width: 720, height: 520 });
    await page.evaluate(tools);
    const focused = () => page.evaluate(() => window.__reach.focused()?.name);
    await page.getByRole('listbox').focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Back to the list' }).waitFor();
    await page.waitForTimeout(100);
    await page.keyboard.press('Tab');
    assert.equal(await focused(), 'Back to the list');
    await page.keyboard.press('Enter');
    await page.waitForTimeout(100);
    assert.equal(await focused(), 'Past runs, newest first');
    await page.keyboard.press('Enter');
    const remove = page.getByRole('button', { name: 'Delete this run' });
    await remove.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    assert.equal(await focused(), 'Cancel', 'the harmless answer first');
    for (let at = 0; at < 4; at += 1) {
      await page.keyboard.press('Tab');
      assert.ok(['Cancel', 'Delete', undefined].includes(await focused()), 'nothing behind a question is reached');
    }
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.equal(await focused(), 'Delete this run', 'back to what asked');
    await page.keyboard.press('Control+f');
    assert.equal(await focused(), 'Search runs');
    return page;
  },

  async 'no state is told by colour alone'({ start }) {
    const page = await start({ ...busy, open: 'runs' });
    const marks = await page.evaluate(() =>
      [...document.querySelectorAll('[role=option] .verdict')].map((mark) => [mark.textContent.trim(), mark.querySelector('svg').innerHTML]),
    );
    const shapes = new Map(marks);
    for (const word of ['Finished', 'Failed', 'Out of time', 'Out of memory']) assert.ok(shapes.has(word), word);
    assert.equal(new Set(shapes.values()).size, shapes.size, 'each verdict has a shape of its own');
    return page;
  },

  async 'what a page began ends with it'({ start }) {
    const page = await start({ ...busy, snapshot: { ...snapshot, running }, live, open: 'runs' });
    assert.equal((await calls(page, 'watch_run')).length, 3);
    await page.keyboard.press('Control+1');
    await page.waitForTimeout(100);
    assert.equal((await calls(page, 'unwatch_run')).length, 3);
    return page;
  },

  async 'a run that is left and opened again at once is still watched'({ start }) {
    const page = await start({ ...busy, snapshot: { ...snapshot, running }, slow: { watch_run: 80, unwatch_run: 160 }, open: 'runs', run: 'live2' });
    for (let time = 0; time < 3; time += 1) {
      await page.keyboard.press('Control+1');
      await page.keyboard.press('Control+2');
    }
    await page.waitForTimeout(500);
    assert.deepEqual(await page.evaluate(() => window.__mock.watched()), ['live1', 'live2', 'live3'], 'each once, none left behind');
    await page.evaluate(() => window.__mock.output('live2', { kind: 'output', stream: 'stdout', text: 'still here\n', missed: 0 }));
    await page.getByRole('region', { name: 'Output' }).getByText('still here').waitFor();
    return page;
  },

  async 'a run that ends becomes its record, and the list has it'({ start }) {
    const ended = { ...row, run_id: 'live1', label: 'Train a small classifier', at_ms: Date.now() };
    const page = await start({ ...busy, snapshot: { ...snapshot, running: [running[0]] }, live, records: { live1: { run: ended, body } }, open: 'runs', run: 'live1' });
    await page.getByText(/Running for/).waitFor();
    await page.evaluate((run) => {
      window.__mock.output('live1', { kind: 'ended' });
      window.__mock.tell({ kind: 'finished', run });
      window.__mock.snapshot({ running: [] });
    }, ended);
    await page.getByRole('heading', { name: /^Finished in/ }).waitFor();
    await page.locator('[role=option]').first().getByText('Train a small classifier').waitFor();
    await page.getByText('1,285 runs').waitFor();
    return page;
  },

  async 'files are saved and texts copied by what the app is asked for'({ start }) {
    const file = { name: 'plots/chart.txt', size: 3, preview: { kind: 'text', text: 'abc', cut: false } };
    const page = await start({ ...busy, rows: [{ ...row, run_id: 'one' }], records: { one: { run: { ...row, run_id: 'one' }, body: { ...body, files: [file] } } }, open: 'runs', run: 'one' });
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByText('Copied').waitFor();
    await page.getByRole('tab', { name: 'Files' }).click();
    await page.getByRole('button', { name: 'Save plots/chart.txt' }).click();
    await page.getByText('Saved').waitFor();
    assert.deepEqual(await calls(page, 'copy_text'), [{ text: body.stdout.text }]);
    assert.deepEqual(await calls(page, 'save_file'), [{ runId: 'one', name: 'plots/chart.txt', side: 'out' }]);
    return page;
  },

  async 'pixels are there for what is in view, and let go of behind it'({ start }) {
    const png = await picture();
    const names = Array.from({ length: 20 }, (_, at) => `plot-${String(at).padStart(2, '0')}.png`);
    const files = names.map((name) => ({ name, size: 9, preview: { kind: 'picture' } }));
    const pictures = Object.fromEntries(names.map((name) => [name, { kind: 'fits', width: 800, height: 500, moves: false, png }]));
    const one = { ...row, run_id: 'one', files_out: { count: 20, bytes: 180 } };
    const page = await start({ ...busy, rows: [one], records: { one: { run: one, body: { ...body, files } } }, pictures, open: 'runs', run: 'one' });
    await page.getByRole('tab', { name: 'Files' }).click();
    await page.getByRole('img', { name: 'Picture plot-00.png' }).waitFor();
    const drawn = () => page.locator('.frame img').count();
    assert.ok((await drawn()) < 6, `${await drawn()} pictures`);
    assert.equal((await calls(page, 'history_picture')).filter(({ pixels }) => !pixels).length, 20, 'each is measured');
    const height = await page.locator('.files').evaluate((node) => node.scrollHeight);
    await page.locator('[role=tabpanel]').evaluate((panel) => panel.scrollTo(0, panel.scrollHeight));
    await page.getByRole('img', { name: 'Picture plot-19.png' }).waitFor();
    await page.getByRole('img', { name: 'Picture plot-00.png' }).waitFor({ state: 'detached' });
    assert.ok((await drawn()) < 6, `${await drawn()} pictures`);
    assert.equal(await page.locator('.files').evaluate((node) => node.scrollHeight), height, 'nothing moves');
    return page;
  },

  async 'a run that waits says for what, everywhere, and can be stopped where it is listed'({ start }) {
    const page = await start({ ...busy, snapshot: fetching, open: 'runs', run: 'wait2' });
    const said = (text) => text.replaceAll('\u00a0', ' ');
    assert.equal(said((await page.getByRole('status').first().innerText()).trim()), 'Fetching Shell: 46 % · 2 waiting');
    assert.equal(await page.getByRole('navigation').locator('.count').textContent(), '2 running or waiting');
    assert.equal(said(await page.locator('.main h1').innerText()), 'Waiting for the image of Shell: 46 %');
    assert.equal(await page.locator('.main').getByRole('progressbar', { name: 'Fetching Shell' }).getAttribute('aria-valuenow'), '47');
    await page.locator('.side').getByText('Preparing Go').waitFor();
    await page.locator('.side').getByRole('button', { name: 'Stop Check the checksums' }).click();
    await page.keyboard.press('Control+.');
    await page.waitForTimeout(50);
    assert.deepEqual(await calls(page, 'stop_run'), [{ runId: 'wait3' }, { runId: 'wait2' }]);
    const queued = fetching.queued.slice(0, 1);
    const wait = (waiting) => page.evaluate(([run, what]) => window.__mock.snapshot({ queued: [{ ...run, waiting: what }] }), [queued[0], waiting]);
    await wait({ why: 'turn', ahead: 3 });
    await page.getByText('It starts after 3 others, as soon as a place is free.').waitFor();
    assert.equal(await page.locator('.main').getByRole('progressbar').count(), 0, 'no bar without a figure');
    await page.evaluate((run) => window.__mock.snapshot({ queued: [], running: [{ ...run, waiting: { why: 'starting' } }] }), queued[0]);
    await page.locator('.main').getByRole('heading', { name: 'Starting…' }).waitFor();
    assert.equal(said((await page.getByRole('status').first().innerText()).trim()), '1 program starting');
    return page;
  },

  async 'trouble is mended by a press: a page that opens, a command to copy, the setting itself'({ start }) {
    const troubled = (engine) => ({ ...busy, snapshot: { ...snapshot, warm: undefined, engine } });
    const page = await start(troubled(said.absent));
    assert.equal((await page.getByRole('status').first().innerText()).trim(), "On, but Docker isn't installed");
    assert.equal(await page.getByRole('region', { name: 'Trouble' }).getByRole('heading').innerText(), "Docker isn't installed");
    await page.getByRole('button', { name: 'Open the guide' }).click();
    await page.getByRole('button', { name: 'Copy the address https://docs.docker.com/get-docker/' }).click();
    await page.getByRole('button', { name: 'Copy sudo apt-get install docker.io' }).click();
    await page.waitForTimeout(50);
    // By its name: the page has no address to give.
    assert.deepEqual(await calls(page, 'open_link'), [{ link: 'install_docker' }]);
    assert.deepEqual(await calls(page, 'copy_text'), [{ text: 'https://docs.docker.com/get-docker/' }, { text: 'sudo apt-get install docker.io' }]);
    assert.equal(await page.locator('a[href]').count(), 0);
    for (const [engine, value] of [[said.wrong_address, 'unix:///run/docker/old.sock'], [said.over_ssh, '']]) {
      const named = await start({ ...troubled(engine), settings: { ...busy.settings, engine: value || null } });
      assert.ok(!(await named.getByRole('region', { name: 'Trouble' }).innerText()).includes('`'), 'no raw backticks');
      await named.getByRole('button', { name: 'Change it in Settings' }).click();
      await named.waitForTimeout(100);
      assert.deepEqual(await named.evaluate(() => [document.activeElement.labels?.[0]?.textContent, document.activeElement.value]), ['Address', value]);
      assert.deepEqual(named.faults, []);
    }
    return page;
  },

  async 'what is refused while the switch is off can be mended where it is said'({ start }) {
    const one = { ...row, run_id: 'one' };
    const page = await start({ ...busy, snapshot: { ...snapshot, enabled: false }, rows: [one], records: { one: { run: one, body } }, errors: { run_again: said.switched_off }, open: 'runs', run: 'one' });
    await page.getByRole('button', { name: 'Run again' }).click();
    await page.getByText('Turn on the switch first.').waitFor();
    await page.getByRole('button', { name: 'Turn on', exact: true }).click();
    await page.getByText('Turn on the switch first.').waitFor({ state: 'detached' });
    assert.deepEqual(await calls(page, 'set_enabled'), [{ enabled: true }]);
    return page;
  },

  async 'quitting and the first close are asked, and say what they do'({ start }) {
    const page = await start({ ...busy, snapshot: { ...snapshot, running }, open: 'settings' });
    await page.getByRole('button', { name: 'Quit Sandtray' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('3 programs that run or wait are ended.').waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    assert.deepEqual(await calls(page, 'quit'), []);
    await page.keyboard.press('Control+q');
    await dialog.getByRole('button', { name: 'Quit' }).click();
    await page.waitForTimeout(50);
    assert.equal((await calls(page, 'quit')).length, 1);
    await page.evaluate(() => window.__mock.emit('leaving', null));
    await dialog.getByText('Agents can still use it.').waitFor();
    await dialog.getByRole('button', { name: 'Quit Sandtray' }).click();
    await dialog.getByText('3 programs that run or wait are ended.').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await page.evaluate(() => window.__mock.emit('leaving', null));
    await dialog.getByRole('button', { name: 'Close window' }).click();
    await page.waitForTimeout(50);
    assert.deepEqual([(await calls(page, 'close_window')).length, (await calls(page, 'quit')).length], [1, 1]);
    return page;
  },

  async 'what is dropped on the window does nothing'({ start }) {
    const page = await start(busy);
    const refused = await page.evaluate(() =>
      ['dragover', 'drop'].map((kind) => !document.querySelector('main').dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true }))),
    );
    assert.deepEqual(refused, [true, true]);
    return page;
  },

  async 'a version is pinned and let go of by one press, and turning on is told until it is read'({ start }) {
    const page = await start({ ...busy, snapshot: { ...snapshot, turned_on_ms: Date.now() - 60_000 } });
    await page.getByRole('alert').getByText('Running code was turned on at').waitFor();
    await page.getByRole('alert').getByRole('button', { name: 'Close this note' }).click();
    assert.equal((await calls(page, 'saw_turned_on')).length, 1);
    await page.getByRole('button', { name: 'Keep this version of Python' }).click();
    await page.evaluate(() => {
      const images = window.__mock.state().snapshot.images.map((image) => (image.language === 'python' ? { ...image, pinned: true } : image));
      window.__mock.snapshot({ images });
    });
    await page.getByRole('button', { name: 'Allow newer versions of Python' }).click();
    assert.deepEqual(await calls(page, 'pin_image'), [{ language: 'python', pinned: true }, { language: 'python', pinned: false }]);
    return page;
  },

  async 'what is copied has no colours, and what was left out is said'({ start }) {
    const colourful = { ...body, stdout: piece('\x1b[31mred\x1b[0m \x1b]8;;http://x/\x07link\x1b]8;;\x07\n') };
    const page = await start({ ...busy, rows: [{ ...row, run_id: 'one' }], records: { one: { run: { ...row, run_id: 'one' }, body: colourful } }, answers: { copy_text: 2 }, open: 'runs', run: 'one' });
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByText('Copied, without 2 control characters').waitFor();
    assert.deepEqual(await calls(page, 'copy_text'), [{ text: 'red link\n' }]);
    return page;
  },

  async 'every number of the settings can be set, and says what it may be'({ start }) {
    const page = await start({ ...busy, open: 'settings' });
    for (const [label, wrong, sentence, right, saved] of [
      ['May wait per agent', '0', 'Enter a number from 1 to 1,024.', '16', (s) => s.per_client],
      ['Kept ready', '65', 'Enter a number from 0 to 64.', '0', (s) => s.warm],
    ]) {
      const field = page.getByLabel(label);
      await field.fill(wrong);
      await field.press('Enter');
      await page.getByText(sentence).waitFor();
      assert.equal(await field.getAttribute('aria-invalid'), 'true');
      await field.fill(right);
      await field.press('Enter');
      await page.getByText(sentence).waitFor({ state: 'detached' });
      await page.waitForTimeout(50);
      assert.equal(saved((await calls(page, 'apply_settings')).at(-1).settings), Number(right));
    }
    await page.getByLabel('Start when I log in').click();
    await page.waitForTimeout(50);
    assert.equal((await calls(page, 'apply_settings')).at(-1).settings.start_at_login, true);
    return page;
  },

  async 'a refused setting says why and keeps what was typed'({ start }) {
    const page = await start({ ...busy, open: 'settings', refuse: [{ field: 'images.python', value: 'Bad Name', message: 'is not the name of an image' }] });
    const field = page.getByLabel('Image for Python');
    await field.fill('Bad Name');
    await field.press('Enter');
    await page.getByText('It is not the name of an image.').waitFor();
    assert.equal(await field.inputValue(), 'Bad Name');
    assert.equal(await field.getAttribute('aria-invalid'), 'true');
    await field.press('Escape');
    assert.equal(await field.inputValue(), '');
    return page;
  },

  async 'the row that the keys move is told from the list that has the focus'({ start }) {
    const page = await start({ ...busy, open: 'runs' });
    await page.getByRole('listbox').focus();
    const marked = () =>
      page.evaluate(() =>
        [...document.querySelectorAll('[role=option]')].filter((row) => getComputedStyle(row, '::after').content !== 'none').map((row) => row.getAttribute('aria-posinset')),
      );
    assert.deepEqual(await marked(), []);
    for (const expected of ['1', '2', '3']) {
      await page.keyboard.press('ArrowDown');
      assert.deepEqual(await marked(), [expected]);
    }
    // Inside of the list's own ring, which is two pixels wide, and of the row.
    const gap = await page.evaluate(() => {
      const row = document.querySelector('[role=option][aria-selected=true]');
      const style = getComputedStyle(row, '::after');
      return [style.left, style.top, style.borderTopStyle, style.borderTopWidth];
    });
    assert.deepEqual(gap, ['6px', '4px', 'solid', '2px']);
    await page.getByRole('searchbox').focus();
    assert.deepEqual(await marked(), [], 'without the focus no key moves it');
    return page;
  },

  async 'runs are filtered by day and by every way to end'({ start }) {
    const page = await start({ ...busy, total: 3000, open: 'runs' });
    const asked = async () => (await calls(page, 'history_page')).at(-1).filter;
    const midnight = await page.evaluate(() => new Date(new Date().setHours(0, 0, 0, 0)).getTime());
    const day = page.getByLabel('Filter by day');
    await day.selectOption({ label: 'Today' });
    assert.equal((await asked()).from_ms, midnight);
    await day.selectOption({ label: 'A date' });
    assert.equal((await asked()).from_ms, midnight, 'a date begins with today');
    await page.getByLabel('Date', { exact: true }).fill('2026-03-12');
    const from = await page.evaluate(() => new Date(2026, 2, 12).getTime());
    await page.waitForFunction((at) => window.__mock.calls.some(({ command, args }) => command === 'history_page' && args.filter.from_ms === at), from);
    assert.equal(await day.evaluate((select) => select.selectedOptions[0].textContent), 'A date');
    const verdicts = await page.getByLabel('Filter by result').evaluate((select) => [...select.options].map((option) => option.value));
    for (const status of ['ok', 'cancelled', 'interrupted', 'capability_off', 'engine_unavailable', 'image_unavailable', 'shutting_down', 'internal']) assert.ok(verdicts.includes(status), status);
    await page.getByRole('button', { name: 'Clear' }).click();
    assert.equal((await asked()).from_ms, undefined);
    assert.equal(await page.getByLabel('Date', { exact: true }).count(), 0);
    return page;
  },

  async 'inputs are shown and saved, and what cannot be run again says why'({ start }) {
    const page = await start(states(await picture())['run-inputs']);
    const saved = async () => (await calls(page, 'save_file')).at(-1);
    await page.getByRole('button', { name: 'Save Standard input' }).click();
    assert.deepEqual(await saved(), { runId: 'failed', name: 'input.txt', side: 'stdin' });
    await page.getByRole('button', { name: 'Save sales.csv' }).click();
    assert.deepEqual(await saved(), { runId: 'failed', name: 'sales.csv', side: 'in' });
    await page.getByRole('button', { name: 'Save logo.png' }).scrollIntoViewIfNeeded();
    await page.getByRole('img', { name: 'Picture logo.png' }).waitFor();
    assert.ok((await calls(page, 'history_picture')).every(({ side }) => side === 'in'));
    assert.ok(await page.getByRole('button', { name: 'Run again' }).isEnabled());
    await page.evaluate(() => window.__mock.emit('navigate', { page: 'runs', run_id: 'given-up' }));
    const again = page.getByRole('button', { name: 'Run again' });
    await page.getByText('the disk was full, so its code, inputs and output were given up').waitFor();
    assert.ok(await again.isDisabled());
    await page.getByText('It can’t be run again: its program was given up when the disk was full.').waitFor();
    return page;
  },

  async 'a history that cannot be written is told in the header and in a notice until it can'({ start }) {
    const page = await start(states('')['disk-full']);
    await page.locator('header').getByText('Disk full: runs aren’t recorded').waitFor();
    const notice = page.getByRole('note').filter({ hasText: 'Runs cannot be recorded, and 12 were not: the disk is full.' });
    await notice.waitFor();
    await page.evaluate(() => window.__mock.snapshot({ history_trouble: undefined }));
    await notice.waitFor({ state: 'detached' });
    assert.equal(await page.locator('header').getByText('Disk full').count(), 0);
    return page;
  },

  async 'nothing moves and no timer runs fast while nothing happens'({ start }) {
    const page = await start(base);
    const frames = await page.evaluate(async () => {
      let changes = 0;
      const observer = new MutationObserver((list) => (changes += list.length));
      observer.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
      await new Promise((resolve) => setTimeout(resolve, 2000));
      return changes;
    });
    assert.equal(frames, 0);
    return page;
  },
};

const calls = (page, command) => page.evaluate((name) => window.__mock.calls.filter((call) => call.command === name).map((call) => call.args), command);

let picture;

export async function trials(browser, url, names, draw) {
  picture = draw;
  let [passed, failed] = [0, 0];
  for (const [name, trial] of Object.entries(list)) {
    if (names.length > 0 && !names.some((part) => name.includes(part))) continue;
    const pages = [];
    const start = async (fixture, size) => {
      const page = await open(browser, url, fixture, size);
      pages.push(page);
      return page;
    };
    try {
      const page = await trial({ start, browser, url });
      assert.deepEqual(page.faults, [], 'no error, no refusal by the content security policy');
      passed += 1;
      console.log(`ok    ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL  ${name}\n${error.stack}\n${JSON.stringify(pages.flatMap((page) => page.faults))}`);
    }
    for (const page of pages) await page.context().close();
  }
  console.log(`${passed} passed, ${failed} failed`);
  return failed;
}
