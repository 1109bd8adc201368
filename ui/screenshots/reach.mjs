// What a person without a mouse or without eyes meets on a page. Both functions run in the page.

/** Every control in sight that can be used, by the name that a screen reader says; '' where it has none. */
export function controls() {
  const nodes = [...document.querySelectorAll('button, input, select, textarea, a[href], [tabindex="0"]')];
  // Kept: a name may change with the clock.
  window.__reach.nodes = nodes.filter((node) => !node.disabled && node.checkVisibility({ visibilityProperty: true }));
  return window.__reach.nodes.map((node) => window.__reach.nameOf(node));
}

/** Told to the page once, for the other to use. */
export function tools() {
  const text = (ids) => (ids ?? '').split(' ').map((id) => document.getElementById(id)?.textContent ?? '').join(' ').trim();
  const nameOf = (node) =>
    node.getAttribute('aria-label') || text(node.getAttribute('aria-labelledby')) || [...(node.labels ?? [])].map((label) => label.textContent.trim()).join(' ') || node.textContent.trim();
  /** What has the focus, and whether that is seen: a ring around it, or around what stands for it. */
  const focused = () => {
    const node = document.activeElement;
    if (!node || node === document.body) return null;
    const ringed = [node, node.nextElementSibling].filter(Boolean).some((part) => {
      const style = getComputedStyle(part);
      return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
    });
    return { name: nameOf(node), at: window.__reach.nodes.indexOf(node), ringed };
  };
  window.__reach = { nameOf, focused, nodes: [] };
}
