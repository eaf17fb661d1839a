/* The cell under the mouse, the same in all heat maps of the page; null when the mouse is elsewhere, or keys are used. */

const listeners = new Set();
let cell = null;

export const hovered = () => cell;

export function hover(next) {
  if (String(next) === String(cell)) return;
  cell = next;
  for (const listener of [...listeners]) listener();
}

export function onHover(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
