/* Weights: the files of tensors that the server keeps for schemes with learned tables; upload, delete, open. */
import { Refusal, ask } from '../ask.js';
import { confirmed } from '../copying/save.js';
import { action, code, make, name, served } from '../dom.js';
import { Figure, datum } from '../figure.js';
import { size } from '../states.js';
import { phrase, word } from '../words.js';
import { rowOf, rowTable, sending } from './parts.js';

const TENSORS = /\.(npy|npz|safetensors)$/i;
const NAME = '[A-Za-z0-9][A-Za-z0-9._\\-]{0,127}';
const HEADS = ['name', 'tensors', 'size', 'acts'].map((key) => `weights.${key}`);
const EXAMPLE = { scheme: 'learned', len: 64, weights: 'my-model' };

/* A name that the server takes, from that of a file. */
const nameOfFile = (file) =>
  file.replace(TENSORS, '').replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[^A-Za-z0-9]+/, '').slice(0, 128) || 'weights';

/* The server stores safetensors: the arrays of other files go into one, a lone array under the name that most tables
 * have. */
async function asStored(file) {
  if (/safetensors$/i.test(file.name)) return file;
  try {
    const { pack, readTensors } = await import('./diagnose/tensor_files.js');
    const tensors = await readTensors(await file.arrayBuffer());
    return pack(tensors.map((one) => ({ ...one, name: one.name ?? 'table' })), {});
  } catch {
    return file;   /* what is wrong with it the server says */
  }
}

class Weights {
  #file = null;       /* chosen and not yet stored */
  #upload = null;     /* the AbortController of what is being sent */

  constructor(page, root) {
    this.page = page;
    this.figure = new Figure(page, { view: 'weights', slot: 'none', label: word('weights.title') });
    this.figure.table.remove();   /* the list is one */
    root.append(make('div', { class: 'server' }, this.#form(), this.figure.element));
    const take = (event) => {
      const files = [...event.dataTransfer.files].filter((file) => TENSORS.test(file.name));
      if (!files.length) return;
      event.preventDefault();
      this.#takeAll(files);
    };
    document.addEventListener('drop', take, true);
    this.forget = () => document.removeEventListener('drop', take, true);
    this.#list();
  }

  #form() {
    this.input = make('input', {
      type: 'file', accept: '.safetensors,.npy,.npz', multiple: true, 'data-drop': '',
      onchange: () => this.#takeChosen(),
    });
    this.name = make('input', {
      type: 'text', id: 'weights-name', 'data-field': 'name', pattern: NAME, autocomplete: 'off', spellcheck: 'false',
      placeholder: 'my-model',
    });
    this.replace = make('input', { type: 'checkbox', 'data-field': 'replace' });
    this.begin = action('start', word('weights.upload'), null, { type: 'submit', class: 'primary' });
    this.said = make('div', { class: 'panel-notices' });
    this.hint = make('p', { class: 'hint', id: 'weights-hint' });
    this.choose = make('label', { class: 'button file' }, word('weights.choose'), this.input);
    this.chosen = make('span', { class: 'hint', translate: 'no' });
    const onsubmit = (event) => {
      event.preventDefault();
      if (this.#file) this.#put(this.#file, this.name.value);
    };
    this.#ready();
    return make('form', { 'aria-describedby': 'weights-hint', onsubmit },
      make('div', { class: 'view-controls' }, this.choose,
        make('div', { class: 'field' }, make('label', { for: 'weights-name' }, word('weights.under')), this.name),
        make('label', { class: 'toolbar' }, this.replace, word('weights.replace')), this.begin, this.chosen),
      this.hint, this.said);
  }

  /* What can be done now, and why not. */
  #ready({ may_write: may, max_body: most } = this.page.catalogue.catalogue().limits) {
    for (const control of [this.input, this.name, this.replace]) control.disabled = !may;
    this.choose.setAttribute('aria-disabled', !may);
    this.begin.hidden = !this.#file;
    this.begin.disabled = !may || this.#upload !== null;
    this.hint.replaceChildren(phrase(
      may ? 'weights.how' : 'weights.readOnly',
      { file: code('.safetensors'), npy: code('.npy'), npz: code('.npz'), size: name(size(most)), write: code('write') }
    ));
    this.may = may;
  }

  /* ---- the list ---- */

  #list() {
    return this.figure.ask(async (get) => {
      const [{ weights }, limits] = await Promise.all([
        get('/weights', { as: 'json' }), get('/limits', { as: 'json' }),
      ]);
      this.#ready(limits);
      this.figure.stage.replaceChildren(
        weights.length ? rowTable(word('weights.title'), HEADS, weights.map((one) => this.#row(one))) : exampleOf()
      );
      this.figure.caption.replaceChildren(
        weights.length
          ? phrase('weights.caption', { n: datum(weights.length, 'count'), learned: code('learned') })
          : make('span', null, word('weights.none'))
      );
      this.figure.drawn();
    });
  }

  #row(one) {
    const tensors = Object.entries(one.tensors)
      .map(([tensor, about]) => make('div', { 'data-tensor': tensor }, this.#tensor(one.name, tensor, about)));
    const remove = action('remove', word('weights.delete'), () => this.#delete(one),
      { disabled: !this.may, 'aria-label': word('weights.deleteOf', { name: one.name }) });
    return rowOf([code(one.name), tensors, datum(one.bytes, 'bytes', size(one.bytes)), remove],
      { 'data-weights': one.name, 'data-sha256': one.sha256 });
  }

  /* A table of rows opens as a learned encoding. */
  #tensor(file, tensor, { dtype, shape }) {
    const text = [code(tensor), ' ', name(`${dtype} [${shape.join(', ')}]`)];
    if (shape.length !== 2 || !/^b?f\d/.test(dtype)) return text;
    const weights = tensor === 'table' ? file : { name: file, map: { table: tensor } };
    const href = this.page.href('table',
      { configs: { a: { scheme: 'learned', len: shape[0], weights } }, emptied: false, on: 'a' });
    return [...text, ' ',
      make('a', { href, 'data-action': 'open', 'aria-label': word('weights.openOf', { name: tensor }) },
        word('paste.use'))];
  }

  /* ---- changing it ---- */

  async #takeChosen() {
    const files = [...this.input.files];
    this.input.value = '';
    await this.#takeAll(files);
  }

  /* Nothing stored is lost by this: a name that is taken is refused. */
  async #takeAll(files) {
    if (!this.may || this.#upload) return;
    const typed = files.length === 1 && this.name.value;
    for (const file of files) if (!await this.#put(file, typed || nameOfFile(file.name))) break;
  }

  /* True where it was stored. */
  async #put(file, given) {
    this.#file = file;
    this.name.value = given;
    this.chosen.textContent = `${file.name} ${size(file.size)}`;
    if (!this.name.reportValidity() || !given) return false;
    const stop = this.#upload = new AbortController();
    this.#ready();
    const bar = make('progress', { 'aria-label': given, max: 1, value: 0 });
    const bytes = make('span', { class: 'notice-bytes' });
    this.#say('loading', { role: 'status' }, bar, bytes, action('cancel', word('figure.cancel'), () => stop.abort()));
    const send = sending((sent, total) => {
      Object.assign(bar, { max: total, value: sent });
      bytes.textContent = word('figure.bytes', { received: size(sent), total: size(total) });
    });
    const headers = this.replace.checked ? {} : { 'If-None-Match': '*' };
    const put = async () =>
      ask({ path: pathOf(given), method: 'PUT', body: await asStored(file), type: 'application/octet-stream', headers },
        { signal: stop.signal, send });
    const stored = await this.#try(put, stop.signal);
    this.#upload = null;
    if (stored) this.#stored(stored);
    else this.#ready();
    return stored !== null;
  }

  #stored(stored) {
    this.#file = null;
    this.name.value = this.chosen.textContent = '';
    this.replace.checked = false;
    this.page.announce(word('weights.stored', { name: stored.name }));
    this.said.replaceChildren(make(
      'p', { 'data-stored': stored.name }, phrase('weights.stored', { name: code(stored.name) })
    ));
    return this.#list();
  }

  async #delete({ name: file, sha256 }) {
    const question = [phrase('weights.sure', { name: code(file) })];
    if (!await confirmed(word('weights.delete'), question, word('weights.delete'))) return;
    const headers = { 'If-Match': `"${sha256}"` };
    await this.#try(() => ask({ path: pathOf(file), method: 'DELETE', headers }, { as: 'text' }));
    await this.#list();
  }

  /* What the server answered; null where it did not do it, and that is said. */
  async #try(job, signal) {
    try {
      const answer = await job();
      this.said.replaceChildren();
      return answer;
    } catch (error) {
      const taken = error.status === 412 && signal && make('p', null, word('weights.taken'));
      if (signal?.aborted) this.#say('cancelled', { role: 'status' }, make('p', null, word('figure.cancelled')));
      else if (error instanceof Refusal) this.#say('refused', { role: 'alert' }, taken,
        served(error.message));
      else this.#say('away', { role: 'alert' }, make('p', null, word('panel.away')));
      return null;
    }
  }

  #say(notice, attributes, ...children) {
    this.said.replaceChildren(make('div', { class: 'notice', 'data-notice': notice, ...attributes }, ...children));
  }

  close() {
    this.forget();
    this.#upload?.abort();
    this.figure.close();
  }
}

const pathOf = (file) => `/weights/${encodeURIComponent(file)}`;

/* What stands where nothing is stored. */
function exampleOf() {
  const line = [`curl -T model.safetensors ${location.origin}/weights/${EXAMPLE.weights}`,
    `curl -d '${JSON.stringify(EXAMPLE)}' ${location.origin}/encode`].join('\n');
  return make('div', null, make('p', null, phrase('weights.what', { learned: code('learned'), t5: code('t5') })),
    make('pre', { tabindex: 0, class: 'scroll', role: 'group', 'aria-label': word('paste.line') }, line));
}

export default { name: 'weights', forms: false, open: (page, root) => new Weights(page, root) };
