// Which rows of a long list are in view. Pure.

/** Browsers lose precision in taller boxes; beyond this the scroll bar's way is stretched over the rows. */
export const TALLEST = 8_000_000;

interface View {
  /** The rows to draw: first to last, the last not included. */
  first: number;
  last: number;
  /** Where the first of them is drawn. */
  top: number;
  /** The height that the scroll bar sees. */
  height: number;
}

interface List {
  count: number;
  rowHeight: number;
  viewport: number;
  scrollTop: number;
  overscan?: number;
}

export function viewOf({ count, rowHeight, viewport, scrollTop, overscan = 8 }: List): View {
  const full = count * rowHeight;
  const height = Math.min(full, TALLEST);
  if (count === 0 || rowHeight <= 0) return { first: 0, last: 0, top: 0, height: 0 };
  const bounded = clamp(scrollTop, 0, Math.max(0, height - viewport));
  const at = contentAt(full, height, viewport, bounded);
  const first = Math.max(0, Math.floor(at / rowHeight) - overscan);
  const last = Math.min(count, Math.ceil((at + viewport) / rowHeight) + overscan);
  return { first, last, top: bounded - (at - first * rowHeight), height };
}

/** The scroll position at which a row is in view; the present one where it is already. */
export function scrollTo(row: number, list: List): number {
  const { count, rowHeight, viewport, scrollTop } = list;
  const full = count * rowHeight;
  const height = Math.min(full, TALLEST);
  const at = contentAt(full, height, viewport, scrollTop);
  const top = row * rowHeight;
  let wanted = at;
  if (top < at) wanted = top;
  else if (top + rowHeight > at + viewport) wanted = top + rowHeight - viewport;
  if (wanted === at) return scrollTop;
  if (full === height) return wanted;
  return (wanted / (full - viewport)) * (height - viewport);
}

/** The scroll position at which so much of the content is above the view. */
export function scrollOf(at: number, { count, rowHeight, viewport }: Omit<List, 'scrollTop'>): number {
  const full = count * rowHeight;
  const height = Math.min(full, TALLEST);
  if (full === height || height <= viewport) return at;
  return (at / (full - viewport)) * (height - viewport);
}

function contentAt(full: number, height: number, viewport: number, scrollTop: number): number {
  if (full === height || height <= viewport) return scrollTop;
  return (scrollTop / (height - viewport)) * (full - viewport);
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
