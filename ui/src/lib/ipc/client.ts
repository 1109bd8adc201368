// Every call of the window into the app, typed, in one place. Nothing else imports from @tauri-apps.

import { Channel, invoke } from '@tauri-apps/api/core';
import { listen } from '@tauri-apps/api/event';

import type {
  AgentView,
  CommandError,
  FileSide,
  HistoryFilter,
  HistoryPage,
  HistoryStats,
  Language,
  Link,
  LiveEvent,
  LiveRequest,
  Navigate,
  PictureView,
  RecentRun,
  RunRecord,
  Saved,
  Settings,
  TryEvent,
  WindowEvent,
} from './types';

/** Ends what was begun; may be called more than once. */
export type Stop = () => void;

export function asError(thrown: unknown): CommandError {
  if (typeof thrown === 'object' && thrown !== null && 'message' in thrown) {
    const error = thrown as Partial<CommandError>;
    return { ...error, code: error.code ?? 'internal', message: String(error.message), faults: error.faults ?? [] };
  }
  return { code: 'internal', message: String(thrown), faults: [] };
}

export async function subscribe(onEvent: (event: WindowEvent) => void): Promise<Stop> {
  const channel = new Channel<WindowEvent>();
  channel.onmessage = onEvent;
  await invoke('subscribe', { channel });
  return () => {
    channel.onmessage = () => {};
  };
}

export async function watchRun(runId: string, onEvent: (event: LiveEvent) => void): Promise<Stop> {
  const channel = new Channel<LiveEvent>();
  let open = true;
  channel.onmessage = (event) => {
    if (!open) return;
    if (event.kind === 'ended') open = false;
    onEvent(event);
  };
  const watch = await invoke<number>('watch_run', { runId, channel });
  return () => {
    if (!open) return;
    open = false;
    // By its own number: the same run may be watched anew by now.
    void invoke('unwatch_run', { watch }).catch(() => {});
  };
}

/** The id of the run, at once; what came of it is told once. */
export async function tryIt(language: Language, onEvent: (event: TryEvent) => void): Promise<string> {
  const channel = new Channel<TryEvent>();
  channel.onmessage = onEvent;
  return invoke<string>('try_it', { language, channel });
}

export function onNavigate(handler: (to: Navigate) => void): Promise<Stop> {
  return listen<Navigate>('navigate', (event) => handler(event.payload));
}

/** The window is to be closed, and its owner is to read first what that means. */
export function onLeaving(handler: () => void): Promise<Stop> {
  return listen('leaving', () => handler());
}

export const setEnabled = (enabled: boolean) => invoke<void>('set_enabled', { enabled });
export const sawTurnedOn = () => invoke<void>('saw_turned_on');
export const retryEngine = () => invoke<void>('retry_engine');
export const pullImage = (language: Language) => invoke<void>('pull_image', { language });
export const cancelPull = (language: Language) => invoke<void>('cancel_pull', { language });
export const removeImage = (language: Language) => invoke<void>('remove_image', { language });
export const pinImage = (language: Language, pinned: boolean) => invoke<void>('pin_image', { language, pinned });
export const stopRun = (runId: string) => invoke<void>('stop_run', { runId });
export const stopAll = () => invoke<void>('stop_all');
export const historyPage = (filter: HistoryFilter) => invoke<HistoryPage>('history_page', { filter });
export const historyRun = (runId: string) => invoke<RunRecord>('history_run', { runId });
export const historyRecent = (sinceMs: number, max: number) => invoke<RecentRun[]>('history_recent', { sinceMs, max });
export const historyPicture = (runId: string, name: string, pixels: boolean, side: FileSide) =>
  invoke<PictureView>('history_picture', { runId, name, pixels, side });
export const historyDelete = (runId: string) => invoke<void>('history_delete', { runId });
export const historyClear = () => invoke<void>('history_clear');
export const historyStats = () => invoke<HistoryStats>('history_stats');
export const runAgain = (runId: string) => invoke<string>('run_again', { runId });
export const liveRequest = (runId: string) => invoke<LiveRequest>('live_request', { runId });
/** Null where the owner thought better of it. */
export const saveFile = (runId: string, name: string, side: FileSide = 'out') => invoke<Saved | null>('save_file', { runId, name, side });
export const saveAll = (runId: string) => invoke<Saved | null>('save_all', { runId });
export const openSaved = (place: number) => invoke<void>('open_saved', { place });
export const listAgents = () => invoke<AgentView[]>('agents');
/** How many control characters were left out. */
export const copyText = (text: string) => invoke<number | null>('copy_text', { text });
export const openLink = (link: Link) => invoke<void>('open_link', { link });
export const closeWindow = () => invoke<void>('close_window');
export const quit = () => invoke<void>('quit');
export const readSettings = () => invoke<Settings>('settings');
export const applySettings = (settings: Settings) => invoke<Settings | null>('apply_settings', { settings });
