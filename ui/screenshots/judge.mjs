// Looks at a page by its geometry. Both functions run in the page, so they refer to nothing outside themselves.

/** Text that is wider than its box, where nothing says so with an ellipsis or a scroll bar. */
export function spilled() {
  return [...document.querySelectorAll('body *')]
    .filter((node) => node instanceof HTMLElement && node.clientWidth > 1 && node.scrollWidth > node.clientWidth + 1)
    .filter((node) => {
      const style = getComputedStyle(node);
      return style.visibility === 'visible' && style.textOverflow !== 'ellipsis' && !['auto', 'scroll'].includes(style.overflowX);
    })
    .map((node) => `spills over: ${node.tagName}.${node.className} "${node.textContent.trim().slice(0, 60)}" ${node.scrollWidth} > ${node.clientWidth}`);
}

/**
 * What is wrong with the page for a person who wants to press something: a control that is cut, out of reach, under something
 * else or wider than its box; a box that scrolls sideways although it is neither code nor output; a list without a row in sight.
 */
export function outOfReach() {
  const CONTROLS = 'button, a[href], input, select, textarea, summary, [role=tab], [role=radio], [role=switch]';
  const SLACK = 1.5;
  const faults = [];
  const scrolls = (style) => style === 'auto' || style === 'scroll';
  const shown = (node) => node.checkVisibility({ visibilityProperty: true }) && node.getClientRects().length > 0 && !node.closest('.unseen');
  const nameOf = (node) =>
    `${node.tagName.toLowerCase()}.${String(node.className).replace(/\s*svelte-\w+/g, '')} "${(node.getAttribute('aria-label') ?? node.textContent ?? '').trim().replace(/\s+/g, ' ').slice(0, 30)}"`;
  /** Of a choice that is drawn by its label, the label. */
  const faceOf = (node) => (node instanceof HTMLInputElement && getComputedStyle(node).opacity === '0' ? (node.labels?.[0] ?? node) : node);
  const box = (node) => {
    const { left, top } = node.getBoundingClientRect();
    return { left: left + node.clientLeft, top: top + node.clientTop, right: left + node.clientLeft + node.clientWidth, bottom: top + node.clientTop + node.clientHeight };
  };
  const around = (node) => {
    const found = [];
    for (let at = node.parentElement; at && at !== document.documentElement; at = at.parentElement) {
      found.push([at, getComputedStyle(at)]);
      if (at.matches('dialog') || found.at(-1)[1].position === 'fixed') break;
    }
    return found;
  };
  /** As a person would: up and down, and only where there is a scroll bar. */
  const reach = (face) => {
    for (const [at, style] of around(face)) {
      if (!scrolls(style.overflowY) || at.scrollHeight <= at.clientHeight) continue;
      const [inside, rect] = [box(at), face.getBoundingClientRect()];
      at.scrollTop += (rect.top + rect.bottom) / 2 - (inside.top + inside.bottom) / 2;
    }
    const clip = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
    for (const [at, style] of around(face)) {
      if (style.overflowX === 'visible' && style.overflowY === 'visible') continue;
      const inside = box(at);
      clip.left = Math.max(clip.left, inside.left);
      clip.top = Math.max(clip.top, inside.top);
      clip.right = Math.min(clip.right, inside.right);
      clip.bottom = Math.min(clip.bottom, inside.bottom);
    }
    return clip;
  };

  const top = document.querySelector('dialog[open]') ?? document;
  for (const node of top.querySelectorAll(CONTROLS)) {
    const face = faceOf(node);
    if (!shown(face)) continue;
    const clip = reach(face);
    const rect = face.getBoundingClientRect();
    const wrong = [];
    if (rect.width < 8 || rect.height < 8) wrong.push(`only ${Math.round(rect.width)} × ${Math.round(rect.height)}`);
    if (rect.left < clip.left - SLACK || rect.right > clip.right + SLACK) wrong.push(`is cut: ${Math.round(rect.left)}–${Math.round(rect.right)} of ${Math.round(clip.left)}–${Math.round(clip.right)} across`);
    const tall = rect.height > clip.bottom - clip.top;
    if (tall ? clip.bottom - clip.top < 24 : rect.top < clip.top - SLACK || rect.bottom > clip.bottom + SLACK) {
      wrong.push(`is cut: ${Math.round(rect.top)}–${Math.round(rect.bottom)} of ${Math.round(clip.top)}–${Math.round(clip.bottom)} down`);
    }
    if (!(face instanceof HTMLInputElement || face instanceof HTMLSelectElement || face instanceof HTMLTextAreaElement) && face.scrollWidth > face.clientWidth + SLACK) {
      wrong.push(`its words pass its edge: ${face.scrollWidth} > ${face.clientWidth}`);
    }
    // Within its rounded corners.
    const inset = 3 + Math.min(parseFloat(getComputedStyle(face).borderTopLeftRadius) || 0, rect.height / 2) * 0.3;
    const [left, right] = [Math.max(rect.left, clip.left) + inset, Math.min(rect.right, clip.right) - inset];
    const [upper, lower] = [Math.max(rect.top, clip.top) + inset, Math.min(rect.bottom, clip.bottom) - inset];
    const points = [[left, upper], [right, upper], [left, lower], [right, lower], [(left + right) / 2, (upper + lower) / 2]];
    for (const [x, y] of points) {
      const hit = document.elementFromPoint(x, y);
      if (hit && (face.contains(hit) || node.contains(hit))) continue;
      wrong.push(`is under ${hit ? nameOf(hit) : 'nothing'} at ${Math.round(x)}, ${Math.round(y)}`);
      break;
    }
    if (wrong.length > 0) faults.push(`${nameOf(node)} ${wrong.join('; ')}`);
  }

  for (const list of top.querySelectorAll('[role=listbox]')) {
    if (!shown(list)) continue;
    const clip = reach(list);
    const rect = list.getBoundingClientRect();
    const row = list.querySelector('[role=option]');
    const seen = Math.min(rect.bottom, clip.bottom) - Math.max(rect.top, clip.top);
    if (row && seen < row.getBoundingClientRect().height - SLACK) faults.push(`${nameOf(list)} shows no row: ${Math.round(seen)} px`);
    if (rect.left < clip.left - SLACK || rect.right > clip.right + SLACK) faults.push(`${nameOf(list)} is cut across`);
  }

  // Code, output and tables of a program's own: each marks itself.
  const mayBeWide = (node) => node.closest('[data-wide], .rows[role=region]') !== null;
  for (const node of document.querySelectorAll('body, body *')) {
    if (!(node instanceof HTMLElement) || node.clientWidth <= 1 || node.scrollWidth <= node.clientWidth + 1 || mayBeWide(node) || !shown(node)) continue;
    const style = getComputedStyle(node);
    if (node.matches('input, select, textarea, option') || style.textOverflow === 'ellipsis') continue;
    faults.push(`${nameOf(node)} ${scrolls(style.overflowX) ? 'scrolls sideways' : 'spills over'}: ${node.scrollWidth} > ${node.clientWidth}`);
  }
  for (const node of [document.scrollingElement, document.body, ...document.querySelectorAll('.app, .place, main')]) {
    if (node && node.scrollLeft !== 0) faults.push(`${nameOf(node)} was pushed sideways`);
  }
  return faults;
}
