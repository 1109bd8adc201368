// The size of an element and of its text, as they change. For use as an action.

interface Measured {
  width: number;
  height: number;
  /** Of one text size, in pixels. */
  rem: number;
  /** Of one monospace character in this element, in pixels. */
  char: number;
}

const PROBE = '0'.repeat(100);

export function measure(node: HTMLElement, tell: (size: Measured) => void) {
  const probe = document.createElement('span');
  probe.textContent = PROBE;
  probe.className = 'probe';
  probe.setAttribute('aria-hidden', 'true');
  node.append(probe);
  const observer = new ResizeObserver(() => {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize) || 14;
    const char = probe.getBoundingClientRect().width / PROBE.length || rem * 0.6;
    tell({ width: node.clientWidth, height: node.clientHeight, rem, char });
  });
  observer.observe(node);
  observer.observe(probe);
  return {
    destroy() {
      observer.disconnect();
      probe.remove();
    },
  };
}
