/* What works anywhere on the page: undo and redo by keys; paste, drop and the dialog that does the same. taking.js,
 * loaded with the first thing taken, decides what becomes of it. */
import { busy } from '../ask.js';
import { action, code, make } from '../dom.js';
import { closer } from './frame.js';
import { phrase, word } from '../words.js';

const UNWRITTEN = ['range', 'checkbox', 'radio', 'file', 'button', 'submit'];

/* Does this element take what is typed or pasted? */
function takesText(node) {
  return node.matches?.('textarea, [contenteditable]') || (node.matches?.('input') && !UNWRITTEN.includes(node.type));
}

/* Ctrl+Z takes back the last step. In a text it first undoes typing, as everywhere; a number is a step like any
 * other. */
export function listenForUndo(store) {
  document.addEventListener('keydown', (event) => {
    const { target } = event;
    const key = event.key.toLowerCase();
    if (!(event.ctrlKey || event.metaKey) || event.altKey || !['z', 'y'].includes(key)) return;
    const act = () => key === 'y' || event.shiftKey ? store.redo() : store.undo();
    if (takesText(target) && target.type !== 'number') return afterTyping(target, act);
    event.preventDefault();
    act();
  });
}

/* Acts if the browser had nothing to undo. */
function afterTyping(field, act) {
  const undone = new AbortController();
  field.addEventListener('input', () => undone.abort(), { signal: undone.signal });
  setTimeout(() => {
    if (!undone.signal.aborted) act();
    undone.abort();
  });
}

export class Drop {
  constructor(page) {
    this.page = page;
    this.text = make('textarea', {
      rows: 8, spellcheck: 'false', 'aria-label': word('paste.text'), placeholder: '{ "scheme": "rope", "len": 128 }',
    });
    this.dialog = this.makeDialog();
    this.listen();
  }

  makeDialog() {
    const file = make('input', { type: 'file', 'data-drop': '', multiple: true, onchange: () => this.takeInput(file) });
    const use = action('start', word('paste.use'), () => this.take(this.text.value), { class: 'primary' });
    return make('dialog', { class: 'paste', 'aria-label': word('page.paste') },
      make('form', { method: 'dialog', class: 'dialog-head' }, make('h2', null, word('page.paste')), closer()),
      make('p', null, phrase('paste.what', { curl: code('curl'), file: code('config.json') })),
      this.text,
      make('div', { class: 'toolbar spread' }, make('label', { class: 'button file' }, word('paste.file'), file), use));
  }

  open() {
    this.text.value = '';
    this.dialog.showModal();
    this.text.focus();
  }

  listen() {
    const on = (event, listener) => document.addEventListener(event, listener);
    on('paste', (event) => takesText(event.target) || this.takeEvent(event, event.clipboardData));
    on('dragover', (event) => {
      if (takesText(event.target) && !event.dataTransfer.types.includes('Files')) return;
      event.preventDefault();
      document.body.classList.add('dropping');
    });
    on('dragleave', (event) => { if (!event.relatedTarget) document.body.classList.remove('dropping'); });
    on('drop', (event) => {
      document.body.classList.remove('dropping');
      if (!takesText(event.target) || event.dataTransfer.files.length) this.takeEvent(event, event.dataTransfer);
    });
  }

  takeEvent(event, transfer) {
    if (event.defaultPrevented) return;
    event.preventDefault();
    if (transfer.files.length) this.takeFiles([...transfer.files]);
    else this.take(transfer.getData('text/plain'));
  }

  async takeInput(input) {
    await this.takeFiles([...input.files]);
    input.value = '';
  }

  take(text) { if (text.trim()) this.hand((taker) => taker.take(text)); }

  takeFiles(files) { return this.hand((taker) => taker.takeFiles(files)); }

  async hand(job) {
    busy.begin();
    try {
      const { Taker } = await import('../forms/taking.js').catch(() => ({}));
      if (!Taker) return this.page.notice('paste', word('page.partFailed'));
      await job(new Taker(this.page, () => this.dialog.close()));
    } finally {
      busy.end();
    }
  }
}
