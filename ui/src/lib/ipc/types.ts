// What crosses between the window and the app. The Rust side owns these shapes.

export type Language = 'python' | 'javascript' | 'shell' | 'go' | 'rust';
export type Stream = 'stdout' | 'stderr';
export type Status = 'ok' | 'failed' | 'timeout' | 'out_of_memory' | 'output_limit' | 'cancelled';
export type Page = 'overview' | 'runs' | 'settings';
export type Theme = 'system' | 'light' | 'dark';

export interface Endpoint {
  url: string;
  found: string;
}

export interface EngineReady {
  state: 'ready';
  name: string;
  version: string;
  api_version: string;
  endpoint: Endpoint;
  os: string;
  arch: string;
  cpus: number;
  memory_bytes: number;
}

export interface EngineTrouble {
  state: 'trouble';
  trouble: 'absent' | 'not_running' | 'permission_denied' | 'not_answering' | 'unusable' | 'wall_missing';
  endpoint?: Endpoint;
  looked_at?: string[];
  reason?: string;
  wall?: string;
  message: string;
  hint: string;
  command_to_copy?: string | null;
}

export type Engine = { state: 'checking' } | EngineReady | EngineTrouble;

export type ImageState =
  | { state: 'unknown' }
  | { state: 'not_pulled' }
  | { state: 'pulling'; fraction: number; downloaded_bytes: number; total_bytes: number; bytes_per_second: number | null }
  | { state: 'ready'; size_bytes: number; short_digest: string | null }
  | { state: 'failed'; message: string; hint: string };

export type ImageRow = { language: Language; title: string; image: string } & ImageState;

export interface LiveRun {
  run_id: string;
  language: Language;
  client: string;
  label: string | null;
  started_ms: number;
  limit_seconds: number;
}

export interface OwnerSnapshot {
  enabled: boolean;
  engine: Engine;
  warm: number | null;
  images: ImageRow[];
  running: LiveRun[];
  queued: LiveRun[];
  notices: string[];
  socket: string;
  first_start: boolean;
  version: string;
}

export type OwnerEvent =
  | { kind: 'snapshot'; snapshot: OwnerSnapshot }
  | { kind: 'finished'; run: RunRow }
  | { kind: 'notice'; text: string };

export type WatchEvent =
  | { kind: 'output'; stream: Stream; text: string; missed: number }
  | { kind: 'sample'; at_ms: number; memory_bytes: number; cpu: number }
  | { kind: 'ended' };

export interface Limits {
  millis: number;
  memory_bytes: number;
  milli_cpus: number;
  processes: number;
  output_bytes: number;
  file_bytes: number;
}

export interface StreamFigure {
  produced: number;
  returned: number;
}

export interface FileFigure {
  count: number;
  bytes: number;
}

export interface RunRow {
  run_id: string;
  queued_at: number;
  client: string;
  client_pid: number | null;
  client_program: string | null;
  language: string;
  label: string | null;
  /** A `Status`, or the code of an error where the run did not happen. */
  status: string;
  error: string | null;
  exit_code: number | null;
  seconds: number | null;
  queued_seconds: number | null;
  memory_bytes: number | null;
  cpu_seconds: number | null;
  oom_kills: number;
  code_bytes: number;
  code_sha256: string;
  stdin_bytes: number;
  stdout: StreamFigure;
  stderr: StreamFigure;
  files_in: FileFigure;
  files_out: FileFigure;
  skipped_files: number;
  image: string;
  limits: Limits;
}

export interface HistoryQuery {
  before?: string | null;
  limit: number;
  language?: string | null;
  status?: string | null;
  client?: string | null;
  text?: string | null;
}

export interface HistoryPage {
  runs: RunRow[];
  next: string | null;
}

/** Text, or base64 where the bytes are not UTF-8. */
export interface TextBlob {
  text: string;
  base64: string | null;
  truncated: boolean;
}

export type FilePreview =
  | { kind: 'text'; text: string; truncated: boolean }
  | { kind: 'csv'; text: string; truncated: boolean }
  | { kind: 'image'; mime: string; base64: string }
  | { kind: 'none' };

export interface RunFile {
  name: string;
  size_bytes: number;
  preview: FilePreview;
}

export interface RunDetail {
  run: RunRow;
  /** Null where only metrics are kept. */
  code: TextBlob | null;
  stdout: TextBlob | null;
  stderr: TextBlob | null;
  files_in: { name: string; size: number }[];
  files: RunFile[];
  skipped: { name: string; reason: string }[];
  left_behind: string[];
}

export interface RecentRun {
  run_id: string;
  at_ms: number;
  seconds: number | null;
  status: string;
  language: string;
}

export interface HistoryStats {
  runs: number;
  bytes: number;
}

export interface Settings {
  version: number;
  enabled: boolean;
  limits: {
    seconds: number;
    cpus: number;
    memory_mb: number;
    processes: number;
    output_kb: number;
    files_mb: number;
  };
  concurrency: number | null;
  queue: number;
  images: Partial<Record<Language, string>>;
  engine: string | null;
  history: { keep: 'everything' | 'metrics'; max_runs: number; max_mb: number; max_days: number };
  notifications: boolean;
  start_at_login: boolean;
  theme: Theme;
}

export interface CommandError {
  code: string;
  message: string;
  hint?: string | null;
  field?: string | null;
}

export interface Navigate {
  page: Page;
  run_id?: string | null;
}
