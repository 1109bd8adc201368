// Stands in for the app, inside the page: answers the commands from a fixture and sends what a test tells it to.
// Runs in the browser, so it refers to nothing outside itself.

export function mock(fixture) {
  const callbacks = new Map();
  const channels = new Map();
  let last = 0;
  const calls = [];
  const send = (id, message) => {
    const channel = channels.get(id) ?? { index: 0 };
    channels.set(id, channel);
    callbacks.get(id)?.({ message, index: channel.index });
    channel.index += 1;
  };
  const channelOf = (args) => Number(String(args.channel.toJSON?.() ?? args.channel).split(':').pop());
  const listeners = new Map();
  const watches = new Map();
  const state = { settings: fixture.settings, snapshot: fixture.snapshot };
  // The fixture's present is the page's.
  const later = Date.now() - fixture.now;
  const shifted = (runs) => runs.map((run) => ({ ...run, started_ms: run.started_ms + later }));
  state.snapshot = { ...state.snapshot, running: shifted(state.snapshot.running), queued: shifted(state.snapshot.queued) };
  let owner = 0;

  const STATUSES = ['ok', 'ok', 'ok', 'ok', 'ok', 'failed', 'ok', 'timeout', 'ok', 'ok', 'out_of_memory', 'ok', 'cancelled'];
  const CLIENTS = ['claude-desktop', 'research-agent', 'nightly-report'];
  const LANGUAGES = ['python', 'python', 'javascript', 'python', 'shell', 'go', 'rust'];
  const LABELS = [
    'Monthly totals from the sales sheet', 'Check the regular expression', null, 'Plot temperature by hour',
    'Sort and deduplicate addresses', 'Compare two JSON files', null, 'Simulate 10,000 dice rolls', 'Convert CSV to Markdown',
  ];
  const pick = (list, at) => list[at % list.length];
  const madeUp = (at) => {
    const status = pick(STATUSES, at * 7 + (at >> 3));
    const seconds = status === 'timeout' ? 60 : Math.round((0.02 + ((at * 7919) % 997) / (at % 9 === 0 ? 90 : 2400)) * 1000) / 1000;
    return {
      ...fixture.row, run_id: `made${at}`, at_ms: fixture.now - 40_000 - (at + 9) * 47_000, status, seconds,
      client: fixture.stranger ?? pick(CLIENTS, at * 5 + (at >> 2)), language: pick(LANGUAGES, at * 3), label: fixture.stranger ?? pick(LABELS, at),
      exit_code: { ok: 0, failed: 1 }[status] ?? 137,
    };
  };
  const total = fixture.total ?? fixture.rows.length;
  const rowAt = (at) => fixture.rows[at] ?? (at < total ? madeUp(at) : undefined);

  const ending = (name) => name.slice(name.lastIndexOf('.'));
  /** Where a trial put another name in place of the fixture's. */
  const ofEnding = (name) => Object.entries(fixture.pictures ?? {}).find(([known]) => ending(known) === ending(name))?.[1];

  function page({ filter }) {
    const runs = [];
    const words = (filter.text ?? '').toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (row) =>
      (!filter.language || row.language === filter.language) &&
      (!filter.status || row.status === filter.status) &&
      (!filter.client || row.client === filter.client) &&
      (filter.program === undefined || (row.client_program ?? '') === filter.program) &&
      row.at_ms >= (filter.from_ms ?? 0) && row.at_ms < (filter.until_ms ?? Infinity) &&
      words.every((word) => `${row.label ?? ''} ${row.client}`.toLowerCase().includes(word));
    let at = filter.before ? Number(filter.before) : 0;
    for (; at < total && runs.length < filter.limit; at += 1) if (matches(rowAt(at))) runs.push(rowAt(at));
    return { runs, next: at < total ? String(at) : null };
  }

  const answers = {
    subscribe(args) {
      owner = channelOf(args);
      send(owner, { kind: 'snapshot', snapshot: state.snapshot });
      for (const notice of fixture.told ?? []) send(owner, { kind: 'notice', ...(typeof notice === 'string' ? { text: notice } : notice) });
    },
    watch_run(args) {
      const channel = channelOf(args);
      last += 1;
      watches.set(last, { runId: args.runId, channel });
      for (const event of fixture.live?.[args.runId] ?? []) send(channel, event);
      return last;
    },
    live_request({ runId }) {
      if (![...state.snapshot.running, ...state.snapshot.queued].some((run) => run.run_id === runId)) throw { code: 'no_such_run', message: 'That run is gone.', faults: [] };
      return fixture.requests?.[runId] ?? fixture.request;
    },
    unwatch_run: ({ watch }) => void watches.delete(watch),
    settings: () => state.settings,
    apply_settings({ settings }) {
      const faults = (fixture.refuse ?? []).filter(({ field, value }) => field.split('.').reduce((o, k) => o?.[k], settings) === value);
      if (faults.length > 0) throw { code: 'invalid_settings', message: `${faults[0].field} ${faults[0].message}.`, field: faults[0].field, faults };
      state.settings = settings;
      return settings;
    },
    set_enabled({ enabled }) {
      state.snapshot = { ...state.snapshot, enabled };
      send(owner, { kind: 'snapshot', snapshot: state.snapshot });
    },
    history_page: page,
    history_stats: () => ({ runs: total, bytes: total * 2400, inputs: total * 300 }),
    history_recent: ({ sinceMs }) => fixture.recent.filter((run) => run.at_ms >= sinceMs),
    history_run({ runId }) {
      const found = fixture.records?.[runId];
      if (found) return found;
      const row = Array.from({ length: Math.min(total, 2000) }, (_, at) => rowAt(at)).find((run) => run.run_id === runId);
      if (!row) throw { code: 'no_such_run', message: 'That run is gone.', faults: [] };
      return { run: row, body: fixture.body };
    },
    history_picture({ name, pixels }) {
      const { png, ...picture } = fixture.pictures?.[name] ?? ofEnding(name) ?? { kind: 'unreadable' };
      return pixels && png !== undefined ? { ...picture, png } : picture;
    },
    agents: () => fixture.agents ?? [],
    try_it({ language, ...args }) {
      const channel = channelOf(args);
      const ran = { kind: 'ran', run_id: 'tried', seconds: 0.009, program_seconds: 0.007, status: 'ok', stdout: fixture.stranger ?? 'Hello, world\n', stderr: '' };
      if (fixture.tried !== null) setTimeout(() => send(channel, fixture.tried ?? ran));
      state.tried = channel;
      return 'tried';
    },
    run_again: () => 'made0',
    save_file: ({ name }) => ({ folder: fixture.stranger ?? '/home/ada/Downloads', name: fixture.stranger ?? name.split('/').pop(), count: 1, place: 1 }),
    save_all: () => ({ folder: fixture.stranger ?? '/home/ada/Downloads', name: 'a', count: 3, place: 2 }),
  };

  window.__TAURI_EVENT_PLUGIN_INTERNALS__ = { unregisterListener: (event) => listeners.delete(event) };
  window.__TAURI_INTERNALS__ = {
    metadata: { currentWindow: { label: 'main' }, currentWebview: { label: 'main', windowLabel: 'main' } },
    transformCallback(callback) {
      last += 1;
      callbacks.set(last, callback);
      return last;
    },
    unregisterCallback: (id) => callbacks.delete(id),
    async invoke(command, args = {}) {
      calls.push({ command, args });
      if (command === 'plugin:event|listen') {
        listeners.set(args.event, args.handler);
        return 1;
      }
      // The app answers in its own time, and one command may overtake another.
      if (fixture.slow?.[command]) await new Promise((resolve) => setTimeout(resolve, fixture.slow[command]));
      if (fixture.errors?.[command]) throw fixture.errors[command];
      return answers[command]?.(args) ?? fixture.answers?.[command] ?? null;
    },
  };
  window.__mock = {
    calls,
    state: () => state,
    watched: () => [...watches.values()].map(({ runId }) => runId).sort(),
    tell: (event) => send(owner, event),
    tried: (event) => send(state.tried, event),
    snapshot(change) {
      state.snapshot = { ...state.snapshot, ...change };
      send(owner, { kind: 'snapshot', snapshot: state.snapshot });
    },
    output(runId, event) {
      for (const watch of watches.values()) if (watch.runId === runId) send(watch.channel, event);
    },
    emit: (event, payload) => callbacks.get(listeners.get(event))?.({ event, id: 1, payload }),
  };
}
