/* What becomes of a text or file that was pasted, dropped or chosen: paste.js recognises it, this changes the page. */
import { make, name } from '../dom.js';
import { keysOf, recognise } from './paste.js';
import { SLOTS } from '../state.js';
import { phrase, word } from '../words.js';
import { viewNamed } from '../views/list.js';

const TENSOR = /\.(npy|npz|safetensors)$/i;
const ARRAY = /\.npy$/i;
const HEAD = /\.gguf$/i;
const TEXT_MAX = 16 * 2 ** 20;
const COMPARED = ['hf_config', 'request'];

/* The view that shows a request of this path best. */
const VIEW_OF = { '/attention': 'attention', '/rotate': 'rotate', '/analyze': 'distance' };

export class Taker {
  /* close: of the dialog, once something of it was taken. */
  constructor(page, close) {
    Object.assign(this, { page, close });
  }

  /* Arrays that come together are one question: each is called as its file. */
  async takeFiles(files) {
    if (files.some(({ name: own }) => HEAD.test(own))) return this.takeModels(files);
    if (files.length > 1 && await this.compare(files)) return;
    const arrays = files.filter(({ name: own }) => ARRAY.test(own));
    for (const file of files) if (arrays.length < 2 || !arrays.includes(file)) await this.takeFile(file);
    if (arrays.length > 1) this.tensors(arrays);
  }

  /* A .gguf file is explained, beside the config.json that came with it, or that is there already. Of gigabytes its
   * head is read here, and what is kept are the keys about positions: the file is not sent. */
  async takeModels(files) {
    const found = [];
    for (const file of files) {
      const config = HEAD.test(file.name) ? await this.headOf(file)
        : file.size <= TEXT_MAX && recognise(await file.text(), location.origin).config;
      if (config) found.push(config);
    }
    if (!found.length) return;
    this.explain(found);
    this.page.notice('paste', null);
    this.close();
    this.page.announce(word('paste.config'));
  }

  /* Several files that are all configurations, up to four, are compared at once. */
  async compare(files) {
    if (files.some(({ name: own, size }) => TENSOR.test(own) || size > TEXT_MAX)) return false;
    const found = await Promise.all(files.map(async (file) => recognise(await file.text(), location.origin)));
    if (!found.every(({ kind, config }) => config && COMPARED.includes(kind))) return false;
    this.page.because('link');
    const configs = found.slice(0, SLOTS.length).map(({ config }, i) => [SLOTS[i], config]);
    this.replace(Object.fromEntries(configs), 'a', 'models');
    this.page.notice('paste', found.length > SLOTS.length ? phrase('paste.four', { n: String(found.length) }) : null);
    this.close();
    this.page.announce(word('paste.compared'));
    return true;
  }

  async headOf(file) {
    try {
      const { readGguf } = await import(new URL('../../../clients/posenc.js', import.meta.url));
      return keysOf(await readGguf(file));
    } catch (error) {
      this.refuse('paste.noHead', file.name, name(error.message));
      return null;
    }
  }

  /* The configuration that is there alone, if it is of the other of the two kinds of files. */
  counterpart(config) {
    const { page } = this;
    const others = page.isExample() ? [] : Object.values(page.configsBySlot());
    const other = config.gguf ? 'hf_config' : 'gguf';
    return page.store.state.view === 'explain' && others.length === 1 && others[0][other] ? others[0] : null;
  }

  explain(found) {
    const beside = found.length === 1 && this.counterpart(found[0]);
    const all = [...beside ? [beside] : [], ...found].sort((one, other) => Boolean(one.gguf) - Boolean(other.gguf));
    this.page.because('link');
    this.replace(Object.fromEntries(all.slice(0, SLOTS.length).map((one, i) => [SLOTS[i], one])), 'a', 'explain');
  }

  async takeFile(file) {
    if (TENSOR.test(file.name)) this.tensors([file]);
    else if (file.size > TEXT_MAX) this.refuse('paste.tooLong', file.name);
    else this.take(await file.text(), file.name);
  }

  /* Puts what a text means into the page. */
  take(text, from) {
    const found = recognise(text, location.origin);
    const taken = this[`take_${found.kind}`]?.(found);
    if (taken === undefined) return this.refuse('paste.unknown', from, found.why);
    this.page.notice('paste', null);
    this.close();
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

  take_hf_config({ config, path }) {
    if (!this.counterpart(config)) return this.configure(config, path, 'config');
    this.explain([config]);
    return 'config';
  }

  take_gguf(found) {
    this.explain([found.config]);
    return 'config';
  }

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

  /* Files of tensors are the view's that says what made them. */
  tensors(files) {
    const { page } = this;
    this.close();
    page.files = files;
    page.store.set(page.store.state.view === 'diagnose' ? { emptied: false } : page.stateOf(
      'diagnose', { emptied: false }
    ));
    document.dispatchEvent(new Event('posenc:file'));
  }

  refuse(key, from, why) {
    const what = from ? name(from) : word('paste.this');
    this.page.notice('paste', make('div', null, make('p', null, phrase(key, { what })),
      why ? make('p', { class: 'hint' }, why) : null));
  }
}
