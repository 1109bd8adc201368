// Everything that is known of a run, in the field's own terms, for the tab Details. Pure.

import { bytes, exact, grouped, seconds } from './format';
import type { LiveRequest, LiveRunView, RunRecord, RunRow } from './ipc/types';
import { SKIPPED, verdictWord } from './words';

type Row = [name: string, value: string];
export type Group = [title: string, rows: Row[]];

export function detailsOf({ run, body }: RunRecord): Group[] {
  return [
    [
      'Request',
      [
        ['Asked for', exact(run.at_ms)],
        ['Client', run.client],
        ['Its program', programOf(run)],
        ['Code', `${bytes(run.code_bytes)}, SHA-256 ${run.code_sha256}`],
        ...argumentsOf(body?.args),
        ['Input', bytes(run.stdin_bytes)],
        ...(body?.inputs.flatMap(({ name, size }): Row[] => (name === null ? [] : [['File given', `${name} (${bytes(size)})`]])) ?? []),
        ['Run id', run.run_id],
      ],
    ],
    [
      'Result',
      [
        ['Result', `${verdictWord(run.status)} (${run.status})`],
        ['Ended by', run.ended_by?.replace('_', ' ') ?? '–'],
        ['Exit code', run.exit_code === null ? '–' : String(run.exit_code)],
        ['Waited', seconds(run.queued_seconds)],
        ['Ran', seconds(run.seconds)],
        ['Processor time', seconds(run.cpu_seconds)],
        ['Most memory', run.memory_bytes === null ? '–' : bytes(run.memory_bytes)],
        ...(run.oom_kills > 0 ? [['Killed for memory', grouped(run.oom_kills)] as Row] : []),
        ['Printed', `${bytes(run.stdout.produced)} to stdout, ${bytes(run.stderr.produced)} to stderr`],
        ['Image', run.image || '–'],
      ],
    ],
    limitsOf(run.limits),
    [
      'Left out',
      [
        ...(body?.skipped_files.map((file): Row => [file.name, SKIPPED[file.reason]]) ?? []),
        ...(body?.left_behind.map((name): Row => [name, 'was not in the folder for results']) ?? []),
      ],
    ],
  ];
}

/** Of a run that waits or runs: as far as it is known by now. */
export function detailsOfLive(run: LiveRunView, waiting: boolean, request: LiveRequest): Group[] {
  const { limits, overflow } = request;
  return [
    [
      'Request',
      [
        [waiting ? 'Asked for' : 'Started', exact(run.started_ms)],
        ['Client', run.client],
        ['Its program', programOf(request)],
        ['Code', bytes(request.code_bytes)],
        ...argumentsOf(request.args),
        ['Run id', run.run_id],
      ],
    ],
    limitsOf(limits, overflow === 'truncate' ? '; what is longer is shortened' : '; what prints more is stopped'),
  ];
}

function argumentsOf(args: string[] | undefined): Row[] {
  return args?.map((arg): Row => ['Argument', arg === '' ? '(empty)' : arg]) ?? [];
}

function programOf({ client_program, client_pid }: Pick<RunRow, 'client_program' | 'client_pid'>): string {
  return [client_program, client_pid === null ? null : `process ${client_pid}`].filter(Boolean).join(', ') || '–';
}

function limitsOf(limits: RunRow['limits'], beyond = ''): Group {
  return [
    'Limits',
    [
      ['Time', seconds(limits.seconds)],
      ['Memory', bytes(limits.memory_bytes)],
      ['Processors', String(limits.cpus)],
      ['Processes', grouped(limits.processes)],
      ['Output', `${bytes(limits.output_bytes)} of each stream${beyond}`],
      ['Files', `${bytes(limits.file_bytes)} each way`],
    ],
  ];
}
