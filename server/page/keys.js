/* Keys of the whole page. Those of figures work in figures only. */

const UNWRITTEN = ['range', 'checkbox', 'radio', 'file', 'button', 'submit', 'color'];

/* Does this element take what is typed or pasted? */
export function takesText(node) {
  return node.matches?.('textarea, [contenteditable]') || (node.matches?.('input') && !UNWRITTEN.includes(node.type));
}

/* Ctrl+Z in a text undoes typing, as everywhere; elsewhere the last step. */
export function listen({ undo, redo }) {
  document.addEventListener('keydown', (event) => {
    const key = event.key.toLowerCase();
    if (!(event.ctrlKey || event.metaKey) || event.altKey || takesText(event.target)) return;
    if (key !== 'z' && key !== 'y') return;
    event.preventDefault();
    if (key === 'y' || event.shiftKey) redo();
    else undo();
  });
}
