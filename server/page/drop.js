/* Paste or drop anything: a link, a request, a curl of ours, a config.json, a tensor. Text is recognised by paste.js; this
 * decides what then happens to the page. */
import { action, code, make, name } from './dom.js';
import { icon } from './icons.js';
import { takesText } from './keys.js';
import { phrase, word } from './words.js';
import { viewNamed } from './views/list.js';

const TENSOR = /\.(npy|npz|safetensors)$/i;
const TEXT_MAX = 16 * 2 ** 20;

/* The view that shows a request of this path best. */
const VIEW_OF = { '/attention': 'attention', '/rotate': 'rotate', '/analyze': 'distance' };

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

  async takeFiles(files) {
    for (const file of files) {
      if (TENSOR.test(file.name)) this.tensor(file);
      else if (file.size > TEXT_MAX) this.refuse('paste.tooLong', file.name);
      else await this.take(await file.text(), file.name);
    }
  }

  /* Puts what a text means into the page. */
  async take(text, from) {
    const { recognise } = await import('./paste.js');
    const found = recognise(text, location.origin);
    const taken = this[`take_${found.kind}`]?.(found);
    if (taken === undefined) return this.refuse('paste.unknown', from, found.why);
    this.page.notice('paste', null);
    this.dialog.close();
    this.page.announce(word(`paste.${taken}`));
  }

  take_link({ hash, state }) {
    const { page } = this;
    page.because('link');
    if (hash !== undefined) page.store.restore(hash);
    else this.replace(state.configs, 'a', state.view);
    return 'link';
  }

  take_request(found) { return this.configure(found.config, found.path, 'request'); }
  take_curl(found) { return this.configure(found.config, found.path, 'request'); }
  take_hf_config(found) { return this.configure(found.config, found.path, 'config'); }

  /* The front configuration becomes this one; a view without configurations gives way to one that has them. */
  configure(config, path, taken) {
    const { page } = this;
    page.because('link');
    const slot = page.front() ?? 'a';
    const other = viewNamed(page.store.state.view).alone || (path && path !== page.viewPath());
    this.replace({ ...page.configsBySlot(), [slot]: config }, slot, other ? VIEW_OF[path] ?? 'table' : undefined);
    return taken;
  }

  replace(configs, on, view = viewNamed(this.page.store.state.view).alone ? 'table' : this.page.store.state.view) {
    const { page } = this;
    const patch = { configs, emptied: false, on };
    page.store.set(view === page.store.state.view ? patch : page.stateOf(view, patch));
  }

  /* Files of tensors are read by the service; until a view shows its answer, here is the request. */
  tensor(file) {
    this.dialog.close();
    const line = `curl --data-binary @${/^[\w.-]+$/.test(file.name) ? file.name : `'${file.name.replaceAll("'", "'\\''")}'`} \\
  -H 'Content-Type: application/octet-stream' ${location.origin}/diagnose`;
    this.page.notice('tensor', make('div', null,
      make('p', null, phrase('paste.tensor', { file: name(file.name), path: code('POST /diagnose') })),
      make('pre', { tabindex: 0, class: 'scroll', 'aria-label': word('paste.line') }, line)));
  }

  refuse(key, from, why) {
    const what = from ? name(from) : word('paste.this');
    this.page.notice('paste', make('div', null, make('p', null, phrase(key, { what })),
      why ? make('p', { class: 'hint' }, why) : null));
  }
}
