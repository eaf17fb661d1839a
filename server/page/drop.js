/* Paste or drop anything, anywhere: this listens and has the dialog; taking.js, loaded with the first thing taken, decides
 * what becomes of it. */
import { busy } from './ask.js';
import { action, code, make } from './dom.js';
import { icon } from './icons.js';
import { takesText } from './keys.js';
import { phrase, word } from './words.js';

export class Drop {
  constructor(page) {
    this.page = page;
    this.text = make('textarea', { rows: 8, spellcheck: 'false', 'aria-label': word('paste.text'), placeholder: '{ "scheme": "rope", "len": 128 }' });
    this.dialog = this.makeDialog();
    this.listen();
  }

  makeDialog() {
    const close = make('button', { class: 'icon quiet', 'aria-label': word('notice.close'), title: word('notice.close'), formnovalidate: true },
      icon('close'));
    const file = make('input', { type: 'file', 'data-drop': '', multiple: true, onchange: () => this.takeInput(file) });
    const use = action('start', word('paste.use'), () => this.take(this.text.value), { class: 'primary' });
    return make('dialog', { class: 'paste', 'aria-label': word('paste.title') },
      make('form', { method: 'dialog', class: 'dialog-head' }, make('h2', null, word('paste.title')), close),
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
    document.addEventListener('paste', (event) => {
      if (takesText(event.target)) return;
      event.preventDefault();
      this.takeTransfer(event.clipboardData);
    });
    document.addEventListener('dragover', (event) => {
      if (takesText(event.target) && !event.dataTransfer.types.includes('Files')) return;
      event.preventDefault();
      document.body.classList.add('dropping');
    });
    document.addEventListener('dragleave', (event) => { if (!event.relatedTarget) document.body.classList.remove('dropping'); });
    document.addEventListener('drop', (event) => {
      document.body.classList.remove('dropping');
      if (event.defaultPrevented || (takesText(event.target) && !event.dataTransfer.files.length)) return;
      event.preventDefault();
      this.takeTransfer(event.dataTransfer);
    });
  }

  takeTransfer(transfer) {
    if (transfer.files.length) return this.takeFiles([...transfer.files]);
    const text = transfer.getData('text/plain');
    if (text.trim()) this.take(text);
  }

  async takeInput(input) {
    await this.takeFiles([...input.files]);
    input.value = '';
  }

  take(text) { return this.hand((taker) => taker.take(text)); }

  takeFiles(files) {
    return this.hand(async (taker) => { for (const file of files) await taker.takeFile(file); });
  }

  async hand(job) {
    busy.begin();
    try {
      const { Taker } = await import('./taking.js');
      await job(new Taker(this.page, () => this.dialog.close()));
    } finally {
      busy.end();
    }
  }
}
