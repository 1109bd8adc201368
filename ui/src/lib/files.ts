// In which order the files of a run are shown. Pure.

import type { FileView } from './ipc/types';

const byName = new Intl.Collator('en', { numeric: true });

/** Pictures first: they are what one looks for. Then by name, with 2 before 10. */
export function inOrder(files: readonly FileView[]): FileView[] {
  const rank = (file: FileView) => (file.preview.kind === 'picture' ? 0 : 1);
  return [...files].sort((a, b) => rank(a) - rank(b) || byName.compare(a.name, b.name) || (a.name < b.name ? -1 : 1));
}
