// Every state of the window that has a design, as what the app would say in it. Its sentences are the app's own: said.json is
// written by a test of the app.

import { readFileSync } from 'node:fs';

const said = JSON.parse(readFileSync(new URL('said.json', import.meta.url), 'utf8'));
const now = Date.now();
const MB = 2 ** 20;
const GB = 2 ** 30;

const endpoint = { url: 'unix:///var/run/docker.sock', found: 'the default socket' };
const engine = {
  state: 'ready', name: 'Docker', version: '27.3.1', api_version: '1.47', endpoint, os: 'linux', arch: 'x86_64', cpus: 8, memory_bytes: 16 * GB,
};
const ready = (mb, digits) => ({ state: 'ready', size_bytes: Math.round(mb * MB), digest: `sha256:${digits.padEnd(64, '0')}` });
const here = {
  python: ready(131, 'a1b2c3d4e5f6'),
  javascript: ready(226, '9f31c08ab77e'),
  shell: ready(8.1, '4bcff63911fc'),
  go: { ...ready(417, '6b02678e8529'), state: 'unprepared' },
};
const withImages = (changes) => said.images.map((image) => ({ ...image, ...(changes[image.language] ?? here[image.language]) }));
const allOf = (state) => said.images.map((image) => ({ ...image, ...state }));
const images = withImages({});

const snapshot = {
  version: '0.1.0', first_start: false, service: { state: 'here' }, enabled: true, engine, warm: 2, images, running: [], queued: [], notices: [],
  socket: '/run/user/1000/sandtray/agent.sock', visits: 0,
};
const settings = { ...said.settings, enabled: true };
const row = {
  run_id: 'r0', at_ms: now - 60_000, client: 'claude-desktop', client_pid: 4312, client_program: 'claude', language: 'python',
  label: null, title: null, given_up: false, status: 'ok', ended_by: 'program', error: null, cut_off: null, exit_code: 0, seconds: 0.214, queued_seconds: 0.012, memory_bytes: 31 * MB, cpu_seconds: 0.19, oom_kills: 0,
  code_bytes: 412, code_sha256: '9b74c9897bac770ffc029102a200c5de6b1a3f1c8c9d9a7e4f1f8f6d2b0e7c55', stdin_bytes: 0,
  stdout: { produced: 120, returned: 120 }, stderr: { produced: 0, returned: 0 }, files_in: { count: 0, bytes: 0 }, files_out: { count: 0, bytes: 0 },
  skipped_files: 0, image: 'python:3.12-slim@sha256:a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90',
  limits: { seconds: 60, memory_bytes: 512 * MB, cpus: 1, processes: 128, output_bytes: 64 * 1024, file_bytes: 5 * MB },
};
const piece = (text) => ({ text, cut: false });
const CODE = `import csv, statistics
from collections import defaultdict

# Totals of each month, largest first.
totals = defaultdict(float)
with open("sales.csv", newline="") as file:
    for row in csv.DictReader(file):
        totals[row["date"][:7]] += float(row["amount"])

for month, total in sorted(totals.items(), key=lambda item: -item[1]):
    print(f"{month}  {total:>12,.2f}")

print("median", statistics.median(totals.values()))
`;
const SALES = `date,region,amount\n${Array.from({ length: 30 }, (_, at) => `2026-0${1 + (at % 3)}-${String(1 + at).padStart(2, '0')},${['north', 'south', 'west'][at % 3]},${(812.5 + at * 37.25).toFixed(2)}`).join('\n')}\n`;
const body = {
  code: piece(CODE),
  stdout: piece('2026-03     18,204.50\n2026-01     15,930.00\n2026-02     12,118.25\nmedian 15930.0\n'),
  stderr: piece(''), files: [], args: ['--year', '2026'], inputs: [{ name: 'sales.csv', size: 48_211, kept: true, preview: { kind: 'csv', cut: false, text: SALES } }], skipped_files: [], left_behind: [],
};

const TRACE = Array.from(
  { length: 24 },
  (_, at) => `  File "/sandbox/parser/rules.py", line ${118 + at * 7}, in descend_${at}\n    return self.rules[name].apply(self, text[position:], depth + 1)\n           \x1b[1;31m^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\x1b[0m`,
).join('\n');
const failedRow = {
  ...row, run_id: 'failed', at_ms: now - 190_000, label: null, title: 'Parse the supplier’s price list', files_in: { count: 1, bytes: 48_211 }, stdin_bytes: 34, status: 'failed', exit_code: 1, seconds: 1.274,
  memory_bytes: 84 * MB, stdout: { produced: 68, returned: 68 }, stderr: { produced: 5120, returned: 5120 }, client: 'research-agent',
};
const failedBody = {
  ...body,
  inputs: [{ name: null, size: 34, kept: true, preview: { kind: 'text', cut: false, text: 'supplier=Nordwind\ncurrency=EUR\n' } }, ...body.inputs, { name: 'logo.png', size: 38_912, kept: true, preview: { kind: 'picture' } }, { name: 'rules.json', size: 90_211, kept: true, preview: { kind: 'none' } }],
  stdout: piece('\x1b[32mreading\x1b[0m prices.txt\n\x1b[32mreading\x1b[0m rules.json \x1b[2m(412 rules)\x1b[0m\n'),
  stderr: piece(`Traceback (most recent call last):\n${TRACE}\n\x1b[1;35mRecursionError\x1b[0m: maximum recursion depth exceeded while calling a Python object\n`),
};
const chartRow = {
  ...row, run_id: 'chart', at_ms: now - 420_000, label: 'Plot temperature by hour', seconds: 2.84, memory_bytes: 197 * MB,
  files_out: { count: 3, bytes: 41_200 }, skipped_files: 1,
};
const chartBody = {
  ...body,
  stdout: piece('wrote 3 files\n'),
  files: [
    { name: 'temperature.png', size: 38_912, preview: { kind: 'picture' } },
    {
      name: 'by-hour.csv', size: 1604,
      preview: { kind: 'csv', cut: false, text: `hour,mean °C,low,high\n${Array.from({ length: 24 }, (_, h) => `${String(h).padStart(2, '0')}:00,${(11 + 7 * Math.sin((h - 8) / 3.8)).toFixed(1)},${(8 + h / 6).toFixed(1)},${(16 + h / 5).toFixed(1)}`).join('\n')}\n` },
    },
    { name: 'notes.txt', size: 96, preview: { kind: 'text', cut: false, text: 'Means are of thirty days.\nTwo hours without a reading were left out.\n' } },
  ],
  skipped_files: [{ name: 'latest', reason: 'symlink' }],
  left_behind: ['cache.tmp'],
};

const cutRow = {
  ...row, run_id: 'cut-off', at_ms: now - 130_000, label: 'Train a small classifier', status: 'interrupted', ended_by: 'engine',
  cut_off: 'Cut off after 3.7 s: Docker went away.', exit_code: null, seconds: 3.7,
};
const cutBody = { ...body, stdout: piece('loading digits: 1797 samples, 64 features\nepoch  1  loss 2.1413\nepoch  2  loss 1.9937\n') };
const cancelledRow = {
  ...row, run_id: 'cancelled', at_ms: now - 150_000, label: 'Crawl the sitemap fixture', client: 'Claude Desktop', status: 'cancelled', ended_by: 'client',
  exit_code: 137, seconds: 12.4,
};

const picturesRow = { ...row, run_id: 'pictures', at_ms: now - 500_000, label: 'Draw posters', files_out: { count: 3, bytes: 91_000 } };
const picturesBody = {
  ...body,
  files: ['poster.webp', 'cut-off.jpg', 'spinner.gif'].map((name) => ({ name, size: 67_000, preview: { kind: 'picture' } })),
};

const givenUpRow = { ...row, run_id: 'given-up', at_ms: now - 86_400_000, title: 'Count the words of each page', given_up: true };

const running = [
  { run_id: 'live1', language: 'python', client: 'claude-desktop', program: 'claude', label: 'Train a small classifier', title: null, started_ms: now - 23_000, limit_seconds: 60 },
  { run_id: 'live2', language: 'javascript', client: 'research-agent', program: 'python3.11', label: 'Crawl the sitemap fixture', title: null, started_ms: now - 52_000, limit_seconds: 60 },
  { run_id: 'live3', language: 'shell', client: 'nightly-report', program: 'sandtray', label: null, title: 'Wait for the nightly export', started_ms: now - 4_000, limit_seconds: 30 },
];
const queued = [{ run_id: 'wait1', language: 'python', client: 'claude-desktop', program: 'claude', label: 'Evaluate the classifier', title: null, started_ms: now - 2000, limit_seconds: 60, waiting: { why: 'turn', ahead: 0 } }];
const pull = { fraction: 0.469, downloaded_bytes: 3.5 * MB, total_bytes: 7.4 * MB };
const waiting = [
  { ...queued[0], run_id: 'wait2', language: 'shell', label: 'Count the lines of a log', waiting: { why: 'pull', ...pull } },
  { ...queued[0], run_id: 'wait3', language: 'go', label: 'Check the checksums', waiting: { why: 'preparation' } },
];
const fetching = { ...snapshot, queued: waiting, images: withImages({ shell: { state: 'pulling', ...pull, bytes_per_second: 1.1 * MB }, go: { state: 'preparing' } }) };
const samples = (memory, cpu, count) =>
  Array.from({ length: count }, (_, at) => ({
    kind: 'sample', at_ms: now - (count - at) * 500,
    memory_bytes: memory * MB * (0.35 + 0.6 * Math.min(1, at / 25) + 0.05 * Math.sin(at)), cpu: cpu * (0.7 + 0.3 * Math.sin(at / 2.2)),
  }));
const out = (text, stream = 'stdout', missed = 0) => ({ kind: 'output', stream, text, missed });
const live = {
  live1: [
    out('loading digits: 1797 samples, 64 features\n'),
    out('UserWarning: lbfgs has not converged, raising the number of iterations\n', 'stderr'),
    ...Array.from({ length: 60 }, (_, at) => out(`epoch \x1b[1m${String(at + 1).padStart(2)}\x1b[0m  loss \x1b[36m${(2.3 * Math.exp(-at / 14)).toFixed(4)}\x1b[0m  accuracy \x1b[32m${(1 - 0.9 * Math.exp(-at / 11)).toFixed(3)}\x1b[0m\n`)),
    ...samples(184, 0.95, 46),
  ],
  live2: [out('GET /sitemap-12.xml 200\nGET /sitemap-13.xml 200\n'), out('parsed 4,210 addresses\n'), ...samples(92, 0.4, 60)],
  live3: [...samples(3, 0.05, 8)],
};

/** A number from 0 to 1, the same each time. */
function hash(seed) {
  let mixed = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
}

const recent = (count) =>
  Array.from({ length: count }, (_, at) => {
    const noise = (salt) => hash(at * 31 + salt);
    const status = noise(3) > 0.94 ? 'failed' : noise(5) > 0.975 ? 'timeout' : noise(7) > 0.985 ? 'out_of_memory' : noise(9) > 0.99 ? 'cancelled' : noise(11) > 0.992 ? 'output_limit' : noise(13) > 0.993 ? 'engine_unavailable' : noise(15) > 0.97 ? 'interrupted' : 'ok';
    const day = noise(1) ** 0.8;
    return {
      run_id: `made${at}`, at_ms: now - day * 86_000_000, language: 'python', status,
      seconds: status === 'timeout' ? 60 : status === 'engine_unavailable' ? null : 0.012 * 10 ** (noise(17) ** 2 * 3.1),
    };
  });

const request = {
  client_pid: 4312, client_program: '/opt/agents/desktop', code: piece(CODE), code_bytes: 412, limits: row.limits, overflow: 'kill',
  args: ['--currency', 'EUR'],
  inputs: [
    { name: null, size: 42, kept: true, preview: { kind: 'text', cut: false, text: 'EUR\nwithout the returns of last month\n' } },
    { name: 'sales.csv', size: 48_211, kept: true, preview: { kind: 'csv', cut: true, text: `date,region,amount\n${Array.from({ length: 40 }, (_, day) => `2026-0${1 + (day % 3)}-${String(1 + day % 28).padStart(2, '0')},north,${(410 + 37 * (day % 11)).toFixed(2)}`).join('\n')}\n20` } },
    { name: 'logo.png', size: 9_120, kept: true, preview: { kind: 'picture' } },
  ],
};
const agents = [
  { name: 'claude-desktop', program: 'claude', pid: 4312, first_ms: now - 9 * 86_400_000, last_ms: now - 2000, runs: 1022, connected: true },
  { name: 'research-agent', program: 'python3.11', pid: null, first_ms: now - 2 * 86_400_000, last_ms: now - 190_000, runs: 261, connected: false },
  { name: 'claude-desktop', program: 'node', pid: null, first_ms: now - 3_600_000, last_ms: now - 3_500_000, runs: 1, connected: false },
  { name: 'sandtray status', program: 'sandtray', pid: null, first_ms: now - 86_400_000, last_ms: now - 7_200_000, runs: 0, connected: false },
];
const base = { now, row, request, rows: [], total: 0, recent: [], snapshot, settings, body };
const busy = { ...base, agents, total: 1284, recent: recent(128) };
const trouble = (engine) => ({ ...snapshot, warm: undefined, images: allOf({ state: 'unknown' }), engine });
// Where another program is the service, this one knows nothing else.
const elsewhere = { ...snapshot, service: said.elsewhere, enabled: false, engine: { state: 'checking' }, warm: undefined, images: [], socket: '' };

/** Each: the fixture, and what is done before the picture is taken. */
export function states(png) {
  const records = { failed: { run: failedRow, body: failedBody }, chart: { run: chartRow, body: chartBody }, pictures: { run: picturesRow, body: picturesBody }, 'given-up': { run: givenUpRow, body: null, not_again: said.not_again }, 'cut-off': { run: cutRow, body: cutBody }, cancelled: { run: cancelledRow, body } };
  const pictures = {
    'logo.png': { kind: 'fits', width: 640, height: 360, moves: false, png },
    'temperature.png': { kind: 'fits', width: 640, height: 360, moves: false, png },
    'spinner.gif': { kind: 'fits', width: 640, height: 360, moves: true, png },
    'poster.webp': { kind: 'too_large', width: 23_170, height: 23_170 },
    'cut-off.jpg': { kind: 'unreadable' },
  };
  const withRuns = { ...busy, rows: [cutRow, cancelledRow, failedRow, chartRow, picturesRow, givenUpRow], records, pictures };
  return {
    'off-never-used': { ...base, snapshot: { ...snapshot, enabled: false, first_start: true, warm: undefined, images: allOf({ state: 'not_pulled' }) }, settings: { ...settings, enabled: false } },
    'on-no-runs': base,
    'on-no-runs-runs': { ...base, open: 'runs' },
    overview: busy,
    'image-pinned': { ...busy, snapshot: { ...snapshot, images: withImages({ python: { ...here.python, image: `python:3.12-slim@${here.python.digest}`, pinned: true } }) } },
    'turned-on': { ...busy, snapshot: { ...snapshot, turned_on_ms: now - 240_000 } },
    'overview-running': { ...busy, snapshot: { ...snapshot, running, queued } },
    'first-day': { ...busy, total: 22, recent: recent(22).map((run, at) => ({ ...run, at_ms: now - 3_900_000 + at * 150_000 })) },
    'overview-foot': { ...busy, act: async (page) => page.locator('main').evaluate((main) => main.scrollTo(0, 9999)) },
    'no-engine': { ...busy, snapshot: trouble(said.absent) },
    'not-running': { ...busy, snapshot: trouble(said.not_running) },
    'permission-denied': { ...busy, snapshot: trouble(said.permission_denied), act: async (page) => page.getByRole('button', { name: 'Details' }).click() },
    'not-answering': { ...busy, snapshot: trouble(said.not_answering) },
    'wrong-address': { ...busy, snapshot: trouble(said.wrong_address) },
    'over-ssh': { ...busy, snapshot: trouble(said.over_ssh) },
    'too-old': { ...busy, snapshot: trouble(said.too_old) },
    'wall-missing': { ...busy, snapshot: { ...trouble(said.wall_missing), enabled: false } },
    'service-elsewhere': { ...base, snapshot: elsewhere },
    'history-set-aside': { ...base, snapshot: { ...snapshot, notices: [said.set_aside] } },
    pulling: {
      ...busy,
      snapshot: { ...snapshot, images: withImages({ javascript: { state: 'pulling', fraction: 0.61, downloaded_bytes: 52 * MB, total_bytes: 76 * MB, bytes_per_second: 14.2 * MB }, rust: { state: 'pulling', fraction: 0, downloaded_bytes: 0, total_bytes: 0, bytes_per_second: 0 }, go: { state: 'preparing' } }) },
    },
    'pull-failed': { ...busy, snapshot: { ...snapshot, images: withImages({ javascript: said.pull_failed }) } },
    'live-runs': { ...withRuns, snapshot: { ...snapshot, running, queued }, live, open: 'runs', run: 'live1' },
    'live-code': { ...withRuns, snapshot: { ...snapshot, running, queued }, live, open: 'runs', run: 'live1', act: async (page) => page.getByRole('tab', { name: 'Code' }).click() },
    'live-inputs': { ...withRuns, snapshot: { ...snapshot, running, queued }, live, open: 'runs', run: 'live1', act: async (page) => page.getByRole('tab', { name: 'Inputs' }).click() },
    'live-details': { ...withRuns, snapshot: { ...snapshot, running, queued }, live, open: 'runs', run: 'live1', act: async (page) => page.getByRole('tab', { name: 'Details' }).click() },
    'waiting-run': { ...withRuns, snapshot: { ...snapshot, running, queued }, live, open: 'runs', run: 'wait1' },
    'waiting-runs': { ...withRuns, snapshot: fetching, open: 'runs', run: 'wait2' },
    'starting-run': { ...withRuns, snapshot: { ...snapshot, running: [{ ...running[0], waiting: { why: 'starting' } }] }, open: 'runs', run: 'live1' },
    'run-again-off': {
      ...withRuns, snapshot: { ...snapshot, enabled: false }, errors: { run_again: said.switched_off }, open: 'runs', run: 'failed',
      act: async (page) => page.getByRole('button', { name: 'Run again' }).click(),
    },
    'failed-run': { ...withRuns, open: 'runs', run: 'failed' },
    'run-cut-off': { ...withRuns, open: 'runs', run: 'cut-off' },
    'run-cancelled': { ...withRuns, open: 'runs', run: 'cancelled' },
    'run-code': { ...withRuns, open: 'runs', run: 'failed', act: async (page) => page.getByRole('tab', { name: 'Code' }).click() },
    'run-details': { ...withRuns, open: 'runs', run: 'chart', act: async (page) => page.getByRole('tab', { name: 'Details' }).click() },
    'run-chart': { ...withRuns, open: 'runs', run: 'chart', act: async (page) => page.getByRole('tab', { name: 'Files' }).click() },
    'run-pictures': { ...withRuns, open: 'runs', run: 'pictures', act: async (page) => page.getByRole('tab', { name: 'Files' }).click() },
    'run-inputs': { ...withRuns, open: 'runs', run: 'failed', act: async (page) => page.getByRole('tab', { name: 'Inputs' }).click() },
    'run-given-up': { ...withRuns, open: 'runs', run: 'given-up' },
    'disk-full': { ...withRuns, open: 'runs', snapshot: { ...snapshot, history_trouble: said.disk_full } },
    'disk-full-given-up': { ...busy, snapshot: { ...snapshot, history_trouble: said.given_up } },
    'runs-by-keys': {
      ...withRuns, open: 'runs',
      act: async (page) => {
        await page.getByRole('listbox').focus();
        for (let at = 0; at < 3; at += 1) await page.keyboard.press('ArrowDown');
      },
    },
    'runs-of-a-date': { ...withRuns, total: 60, open: 'runs', act: async (page) => page.getByLabel('Filter by day').selectOption({ label: 'A date' }) },
    'runs-list': { ...withRuns, open: 'runs' },
    'search-100000': {
      ...withRuns, total: 100_000, open: 'runs',
      act: async (page) => {
        await page.keyboard.press('Control+f');
        await page.keyboard.type('json');
        await page.waitForTimeout(400);
      },
    },
    agents: { ...busy, open: 'agents' },
    'agents-connect': { ...base, open: 'agents', act: async (page) => page.getByText('Python', { exact: true }).click() },
    'agents-off': { ...base, snapshot: { ...snapshot, enabled: false }, settings: { ...settings, enabled: false }, open: 'agents' },
    'agents-tried': { ...busy, open: 'agents', act: async (page) => page.getByRole('button', { name: 'Run hello world' }).click() },
    'agents-trouble': { ...busy, snapshot: trouble(said.not_running), open: 'agents' },
    'agents-fetching': {
      ...busy, tried: null, open: 'agents',
      snapshot: { ...snapshot, images: withImages({ python: { state: 'pulling', fraction: 0.46, downloaded_bytes: 60 * MB, total_bytes: 131 * MB, bytes_per_second: 9 * MB }, javascript: { state: 'not_pulled' }, shell: { state: 'not_pulled' }, go: { state: 'not_pulled' } }) },
      act: async (page) => {
        await page.getByRole('button', { name: 'Run hello world' }).click();
        const run = { ...running[0], run_id: 'tried', client: 'Sandtray', program: null, label: 'Hello, world', waiting: { why: 'pull', fraction: 0.46, downloaded_bytes: 60 * MB, total_bytes: 131 * MB } };
        await page.evaluate((queued) => window.__mock.snapshot({ queued: [queued] }), run);
      },
    },
    'new-agent': { ...busy, told: [{ text: 'claude-desktop (the program node) runs a program in a sandbox for the first time.', to: { page: 'agents', run_id: null } }] },
    'remove-image': { ...busy, act: async (page) => page.getByRole('button', { name: 'Remove Python' }).click() },
    settings: { ...busy, open: 'settings' },
    'settings-changed': { ...busy, settings: { ...settings, limits: { ...settings.limits, seconds: 5, memory_mb: 2048 }, concurrency: 3, warm: 2, images: { python: 'python:3.13' } }, open: 'settings' },
    'settings-invalid': {
      ...busy, open: 'settings',
      act: async (page) => {
        const field = page.getByLabel('Memory');
        await field.fill('8');
        await field.press('Enter');
      },
    },
    'settings-foot': { ...busy, open: 'settings', act: async (page) => page.locator('main').evaluate((main) => main.scrollTo(0, 9999)) },
    quit: { ...busy, snapshot: { ...snapshot, running, queued }, open: 'settings', act: async (page) => page.keyboard.press('Control+q') },
    leaving: { ...busy, act: async (page) => page.evaluate(() => window.__mock.emit('leaving', null)) },
    'clear-history': { ...busy, total: 100_000, open: 'settings', act: async (page) => page.getByRole('button', { name: 'Clear', exact: true }).click() },
  };
}

export const parts = { base, busy, snapshot, settings, row, body, running, queued, fetching, live, piece, said };
