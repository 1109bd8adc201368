// What the history kept of a run's two streams, as lines to read. Pure.

import { bytes } from '../format';
import type { Piece, RunBody, RunRow } from '../ipc/types';
import { withoutSequences } from './ansi';
import { TextStore } from './store';

export function outputOf(run: RunRow, body: RunBody): TextStore {
  const store = new TextStore();
  const errors = body.stderr.text !== '';
  if (errors && body.stdout.text !== '') {
    store.note('Normal output first, then errors: the order in which they came isn’t kept.');
    store.heading('Normal output (stdout)');
  }
  add(store, 'stdout', body.stdout, run.stdout);
  if (errors) store.heading('Errors and messages (stderr)');
  add(store, 'stderr', body.stderr, run.stderr);
  return store;
}

function add(store: TextStore, stream: 'stdout' | 'stderr', piece: Piece, figure: { produced: number; returned: number }): void {
  if (piece.text === '') return;
  store.append(stream, piece.text);
  store.end();
  if (piece.base64 !== undefined) store.note('Some of this is no text: those bytes are shown as �.');
  if (piece.cut) store.note('There is more than this window shows.');
  if (figure.produced > figure.returned) {
    store.note(`The program printed ${bytes(figure.produced)}; ${bytes(figure.returned)} were kept.`);
  }
}

/** The printed text for the clipboard, without its colours. The app removes all other control characters. */
export function copyOf(body: RunBody): string {
  const [stdout, stderr] = [body.stdout.text, body.stderr.text].map(withoutSequences) as [string, string];
  const between = stdout !== '' && stderr !== '' && !stdout.endsWith('\n') ? '\n' : '';
  return stdout + between + stderr;
}
