// The list of past runs as far as it was read: page after page by key, never by counting.

import { spanOf, type Day } from '../days';
import { asError, historyPage, historyStats } from '../ipc/client';
import type { CommandError, RunRow } from '../ipc/types';
import { keyOf, type Who } from '../clients';
import { endedAt } from '../words';

/** What the list shows of a run; a hundred thousand of these are held. */
interface Brief {
  id: string;
  at: number;
  ended: number;
  client: string;
  program: string | null;
  language: string;
  label: string | null;
  title: string | null;
  status: string;
  seconds: number | null;
}

export interface Filters {
  text: string;
  language: string;
  status: string;
  client: Who | null;
  day: Day;
}

export const NO_FILTERS: Filters = { text: '', language: '', status: '', client: null, day: '' };
const FIRST_PAGE = 100;
const PAGE = 500;
/** Rows read ahead of those in view. */
const AHEAD = 200;

function brief(run: RunRow): Brief {
  return {
    id: run.run_id,
    at: run.at_ms,
    ended: endedAt(run),
    client: run.client,
    program: run.client_program,
    language: run.language,
    label: run.label,
    title: run.title,
    status: run.status,
    seconds: run.seconds,
  };
}

export function filtered(filters: Filters): boolean {
  return Object.values(filters).some((value) => value !== '' && value !== null);
}

/** Whether a run that just ended belongs on top of the list; a text search is left to the next reading. */
export function belongs(run: RunRow, filters: Filters): boolean {
  const holds = (wanted: string, value: string) => wanted === '' || wanted === value;
  const span = spanOf(filters.day, Date.now());
  return (
    (span === null || (run.at_ms >= span.from && run.at_ms < (span.until ?? Infinity))) &&
    filters.text === '' &&
    holds(filters.language, run.language) &&
    holds(filters.status, run.status) &&
    (filters.client === null || keyOf(filters.client) === keyOf({ client: run.client, program: run.client_program }))
  );
}

export class HistoryList {
  /** Grows in place; `version` tells. */
  rows: Brief[] = [];
  version = $state(0);
  /** Counts the lists there were: another one starts at its top. */
  lists = $state(0);
  filters = $state.raw<Filters>(NO_FILTERS);
  clients = $state.raw<Who[]>([]);
  total = $state<number | null>(null);
  loaded = $state(false);
  complete = $state(false);
  failure = $state.raw<CommandError | null>(null);
  private next: string | null = null;
  private turn = 0;
  private busy = false;
  private reading: Promise<void> | null = null;
  private wanted = 0;

  /** How many rows the list is tall: of an unfiltered one all, read or not. */
  get count(): number {
    void this.version;
    if (this.complete || filtered(this.filters) || this.total === null) return this.rows.length;
    return Math.max(this.rows.length, this.total);
  }

  /**
   * Reads the list anew. What is asked for while it is being read waits, and only the latest of it is read next: so the first
   * key of a search is answered at once, and the last one waits for one reading at most.
   */
  start(filters: Filters): Promise<void> {
    this.turn += 1;
    this.filters = filters;
    this.failure = null;
    this.wanted = 0;
    this.busy = true;
    this.reading ??= this.readLatest();
    return this.reading;
  }

  private async readLatest(): Promise<void> {
    for (let turn = 0; turn !== this.turn; ) {
      turn = this.turn;
      await this.readFirst(turn);
    }
    this.reading = null;
    this.busy = false;
    void this.need(this.wanted);
  }

  private async readFirst(turn: number): Promise<void> {
    const stats = historyStats().catch(() => null);
    try {
      const page = await historyPage({ ...this.query(), limit: FIRST_PAGE });
      const found = await stats;
      if (turn !== this.turn) return;
      this.rows = page.runs.map(brief);
      this.take(page.runs, page.next);
      this.total = found?.runs ?? this.total;
      this.loaded = true;
      this.lists += 1;
    } catch (error) {
      if (turn === this.turn) this.failure = asError(error);
    }
  }

  /** Reads on until the row is there. */
  async need(row: number): Promise<void> {
    this.wanted = Math.max(this.wanted, row);
    if (this.busy) return;
    this.busy = true;
    const turn = this.turn;
    try {
      while (this.next !== null && this.rows.length < this.wanted + AHEAD) {
        const page = await historyPage({ ...this.query(), before: this.next, limit: PAGE });
        if (turn !== this.turn) return;
        for (const run of page.runs) this.rows.push(brief(run));
        this.take(page.runs, page.next);
      }
    } catch (error) {
      if (turn === this.turn) this.failure = asError(error);
    } finally {
      if (turn === this.turn) this.busy = false;
    }
  }

  /** Whether a row was put on top. */
  prepend(run: RunRow): boolean {
    if (this.total !== null) this.total += 1;
    if (!belongs(run, this.filters) || this.rows.slice(0, 50).some((row) => row.id === run.run_id)) return false;
    this.rows.unshift(brief(run));
    this.know([run]);
    this.version += 1;
    return true;
  }

  remove(id: string): void {
    const at = this.rows.findIndex((row) => row.id === id);
    if (at < 0) return;
    this.rows.splice(at, 1);
    if (this.total !== null) this.total = Math.max(0, this.total - 1);
    this.version += 1;
  }

  private query() {
    const { text, language, status, client, day } = this.filters;
    const or = (value: string) => (value.trim() === '' ? undefined : value);
    const span = spanOf(day, Date.now());
    return {
      text: or(text),
      language: or(language),
      status: or(status),
      client: client?.client,
      // An unknown program is asked for as an empty one.
      program: client ? (client.program ?? '') : undefined,
      from_ms: span?.from,
      until_ms: span?.until,
    };
  }

  private take(runs: readonly RunRow[], next: string | null): void {
    this.next = next;
    this.complete = next === null;
    this.know(runs);
    this.version += 1;
  }

  private know(runs: readonly RunRow[]): void {
    const known = new Map(this.clients.map((who) => [keyOf(who), who]));
    for (const { client, client_program: program } of runs) if (known.size < 50) known.set(keyOf({ client, program }), { client, program });
    if (known.size > this.clients.length) this.clients = [...known].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, who]) => who);
  }
}

/** Outlives the page, so that coming back shows the same place. */
export const history = new HistoryList();
