// What crosses between the window and the app, as the Rust side generates it.

export type { AgentView } from './generated/AgentView';
export type { CommandError } from './generated/CommandError';
export type { EngineFacts } from './generated/EngineFacts';
export type { EngineView } from './generated/EngineView';
export type { Fault } from './generated/Fault';
export type { FileView } from './generated/FileView';
export type { HistoryFilter } from './generated/HistoryFilter';
export type { HistoryPage } from './generated/HistoryPage';
export type { HistoryStats } from './generated/HistoryStats';
export type { ImageView } from './generated/ImageView';
export type { Language } from './generated/Language';
export type { LiveEvent } from './generated/LiveEvent';
export type { LiveRunView } from './generated/LiveRunView';
export type { Navigate } from './generated/Navigate';
export type { NoticeKind } from './generated/NoticeKind';
export type { OwnerSnapshot } from './generated/OwnerSnapshot';
export type { Page } from './generated/Page';
export type { PictureView } from './generated/PictureView';
export type { Piece } from './generated/Piece';
export type { Preview } from './generated/Preview';
export type { RecentRun } from './generated/RecentRun';
export type { RunBody } from './generated/RunBody';
export type { RunRecord } from './generated/RunRecord';
export type { RunRow } from './generated/RunRow';
export type { ServiceView } from './generated/ServiceView';
export type { Settings } from './generated/Settings';
export type { SkipReason } from './generated/SkipReason';
export type { Stream } from './generated/Stream';
export type { Theme } from './generated/Theme';
export type { TroubleView } from './generated/TroubleView';
export type { TryEvent } from './generated/TryEvent';
export type { WindowEvent } from './generated/WindowEvent';

export type Status = 'ok' | 'failed' | 'timeout' | 'out_of_memory' | 'output_limit' | 'cancelled';
