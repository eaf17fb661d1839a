/* What is in front as curl, Python, JSON and a link to copy, and as files to save. */
import { busy, token } from '../ask.js';
import { action, code, copyText, make, name } from '../dom.js';
import { figures } from '../figure.js';
import { icon, tool } from '../icons.js';
import { bytesOf, fileBody, fileName, texts, widened } from './request.js';
import { print } from '../state.js';
import { Saver } from './save.js';
import { viewNamed } from '../views/list.js';
import { bodyFor } from '../views/parts.js';
import { language, phrase, word } from '../words.js';

/* while a slider moves, texts that nobody can read meanwhile are not written for each of its values */
const PAUSE_MS = 50;

/* The tabs: data-copy, name. */
const KINDS = [['curl', name('curl')], ['python', name('Python')], ['json', name('JSON')], ['url', word('panel.link')],
  ['embed', word('panel.embed')], ['notebook', word('panel.notebook')], ['tool', word('panel.tools')]];
const FRAME = { width: 720, height: 520 };   /* of an embedded figure */
const escaped = (address) => address.replaceAll('&', '&amp;').replaceAll('"', '&quot;');

const hasPicture = (figure) => figure.stage.querySelector('canvas:not([hidden])') !== null;

export class Copies {
  #view = null;
  #tabs = {};
  #last = '';
  #timer = null;

  constructor(page, root) {
    this.page = page;
    this.looks = make('input', { type: 'checkbox', 'data-field': 'link-looks', onchange: () => this.refresh() });
    this.said = make('div', { class: 'panel-notices' });
    this.npy = new Saver('npy', word('panel.npy'), this.said);
    this.png = new Saver('png', word('panel.png'), this.said);
    this.figure = new Saver('figure', word('panel.figure'), this.said);
    this.svg = new Saver('svg', word('panel.svg'), this.said);
    this.hint = make('p', { class: 'hint', hidden: true });
    this.element = make('section', { class: 'request', 'aria-label': word('panel.title') },
      make('h2', null, word('panel.title')),
      make('div', { class: 'request-head' }, this.#tabList(), this.#copyButton()),
      ...KINDS.map(([kind]) => this.#pane(kind)),
      this.hint,
      make('div', { class: 'toolbar save' }, this.npy.element, this.png.element,
        this.figure.element, this.svg.element, this.#linkButton()),
      this.said);
    root.append(this.element);
    this.#choose('curl');
    /* A picture brings the range of its colours, the shape of its numbers, perhaps a token that was asked for. */
    document.addEventListener('posenc:drawn', () => this.#soon());
  }

  /* The text in front; the tabs beside it leave room for a picture only. */
  #copyButton() {
    return tool('copy', word('panel.copy'),
      { class: 'icon', 'data-action': 'copy', onclick: () => this.#copy(this.chosen) });
  }

  #linkButton() {
    const button = action('link', word('panel.copyLink'), () => this.#copy('url'));
    button.prepend(icon('link'));
    return button;
  }

  /* ---- tabs ---- */

  #tabList() {
    const tabs = KINDS.map(([kind, text]) => {
      const names = { role: 'tab', id: `tab-${kind}`, 'aria-controls': `copy-${kind}` };
      const tab = make('button', { type: 'button', ...names, onclick: () => this.#choose(kind) }, text);
      this.#tabs[kind] = { tab };
      return tab;
    });
    const onkeydown = (event) => this.#walk(event);
    return make('div', { role: 'tablist', class: 'segmented', 'aria-label': word('panel.title'), onkeydown }, tabs);
  }

  #pane(kind) {
    const pre = make('pre',
      { 'data-copy': kind, translate: 'no', tabindex: 0, role: 'group', 'aria-labelledby': `tab-${kind}` });
    const looks = kind === 'url' ? make('label', { class: 'looks' }, this.looks, word('panel.looks')) : null;
    const frames = ['embed', 'notebook'].includes(kind)
      ? make('p', { class: 'hint' }, phrase('panel.frames', { flag: code('--frame-origin') })) : null;
    const names = { role: 'tabpanel', id: `copy-${kind}`, 'aria-labelledby': `tab-${kind}` };
    const pane = make('div', { class: 'pane', ...names }, pre, looks, frames);
    Object.assign(this.#tabs[kind], { pre, pane });
    return pane;
  }

  /* The configuration in front in the words of another tool, where they are asked for. */
  async #translate() {
    if (this.chosen !== 'tool' || !this.source) return;
    busy.begin();
    try {
      const { Translation } = await import('./translation.js');
      const { pre, pane } = this.#tabs.tool;
      if (!this.tools) pane.append((this.tools = new Translation(this.page, pre)).element);
      const { catalogue } = this.page;
      const body = bodyFor(catalogue, '/encode', this.page.config(this.source.slot), { sequence: false });
      await this.tools.show({ ...body, dtype: undefined });
    } finally {
      busy.end();
    }
  }

  #choose(chosen) {
    for (const [kind, { tab, pane }] of Object.entries(this.#tabs)) {
      tab.setAttribute('aria-selected', kind === chosen);
      tab.tabIndex = kind === chosen ? 0 : -1;
      pane.hidden = kind !== chosen;
    }
    this.chosen = chosen;
    this.#translate();
  }

  #walk(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = KINDS.findIndex(([kind]) => kind === this.chosen) + step;
    const [kind] = KINDS.at(at % KINDS.length);
    this.#choose(kind);
    this.#tabs[kind].tab.focus();
    event.preventDefault();
  }

  /* ---- what they say ---- */

  /* view: what a view's open() gave. */
  update(view) {
    this.#view = view;
    this.#soon();
  }

  #soon() {
    if (this.#timer) return;
    busy.begin();
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.refresh();
      busy.end();
    }, PAUSE_MS);
  }

  refresh() {
    const { state } = this.page.store;
    const { theme } = document.documentElement.dataset;
    const looks = this.looks.checked ? { lang: language(), theme } : { lang: null, theme: null };
    this.#write('url', `${location.origin}/${print(state, looks)}`);
    this.#writeFrames(`${location.origin}/?embed${print(state, looks)}`);
    this.source = this.#requests(state);
    this.element.hidden = !this.source;
    if (!this.source) return;
    const { request, about } = this.source;
    /* of texts of its own a request is not all: a file's name is in them alone */
    const key = JSON.stringify([request, about, request.texts?.curl(about)]);
    if (key !== this.#last) {
      this.#last = key;
      Object.entries(texts(request, about)).forEach(([kind, text]) => this.#write(kind, text));
      this.hint.hidden = !this.#explain(about);
    }
    this.#showFiles();
    this.#translate();
  }

  #writeFrames(address) {
    const { width, height } = FRAME;
    const size = `width="${width}" height="${height}"`;
    this.#write('embed', `<iframe src="${escaped(address)}" ${size} title="posenc"></iframe>`);
    this.#write('notebook', `from IPython.display import IFrame; IFrame("${address}", ${width}, ${height})`);
  }

  #write(kind, text) {
    const { pre } = this.#tabs[kind];
    if (pre.textContent !== text) pre.textContent = text;
  }

  /* The request in front and what its texts need to know; of a difference b-a, b's, with a's as `minus`. */
  #requests(state) {
    const slot = this.page.front();
    const request = slot && this.#view?.request?.(slot);
    if (!request) return null;
    const difference = state.on === 'b-a' && viewNamed(state.view).difference;
    const minus = difference ? this.#view.request('a') : null;
    const output = request.plain ? undefined : this.#output(slot, request, state);
    const resolved = this.page.resolved.get(slot);
    const dtype = resolved?.tensors?.[output]?.dtype ?? request.body.dtype;
    const scheme = resolved?.config?.scheme;
    const about = {
      origin: location.origin, token: Boolean(token()), output, dtype, minus, scheme, plain: request.plain,
    };
    return { slot, request, about };
  }

  /* The output in front: what the view or the address names, else the first of two axes or more. */
  #output(slot, { path, body }, state) {
    if (body.outputs?.length === 1) return body.outputs[0];
    if (state.out) return state.out;
    if (path === '/analyze') return undefined;   /* its view names what it shows */
    const answered = Object.entries(this.page.resolved.get(slot)?.tensors ?? {})
      .map(([key, { shape }]) => [key, shape.length]);
    const rows = this.page.catalogue.outputsOf(body, path).filter((row) => row.default);
    const known = answered.length ? answered : rows.map((row) => [row.name, row.shape.split(',').length]);
    return (known.find(([, axes]) => axes >= 2) ?? known[0])?.[0];
  }

  /* True where the texts need a word of explanation. */
  #explain({ minus, dtype }) {
    const kinds = () => ({ python: name('Python'), curl: name('curl'), json: name('JSON') });
    const difference = () => phrase('panel.difference', { ...kinds(), difference: code('b − a'), b: code('b') });
    const brain = () => phrase('panel.brain', { numpy: name('NumPy'), dtype: code(dtype), file: code('safetensors') });
    const explain = minus ? difference : widened({}, dtype) ? brain : null;
    if (explain) this.hint.replaceChildren(explain());
    return explain !== null;
  }

  /* ---- files ---- */

  #showFiles() {
    if (!this.source) return;
    const { slot, request: { path, body, texts: own }, about } = this.source;
    const isTensor = !own && !about.plain;
    const file = fileBody(body, about);
    const tensor = this.page.resolved.get(slot)?.tensors?.[about.output];
    this.npy.show(!isTensor ? null : {
      request: { path, body: file }, name: fileName(body, about, file.format), bytes: tensor && bytesOf(tensor),
    });
    const { cells, whole, lines } = this.#pictures(about);
    this.png.show(cells ?? whole);
    this.figure.show(cells && whole);
    this.svg.show(lines);
  }

  /* Of a heat map the server paints the cells with the same colours; every figure is saved as it stands, with title,
   * axes, colour bar and address. */
  #pictures(about) {
    const { on } = this.page.store.state;
    const all = figures().filter(hasPicture);
    const front = all.some((one) => one.slot === on) ? all.filter((one) => one.slot === on) : all;
    const figure = front.find((one) => one.png()) ?? front[0];
    if (!figure) return {};
    const request = figure.png();
    const file = fileName(this.source.request.body, about, 'png');
    const address = () => location.origin + '/' + print(this.page.store.state);
    const make = (kind) => async () => (await import('./snapshot.js')).snapshot(figure, address(), kind);
    const lines = { name: file.replace(/\.png$/, '.svg'), make: make('svg') };
    if (!request) return { whole: { name: file, make: make('png') }, lines };
    return {
      lines,
      cells: { name: file, request: { ...request, body: { ...request.body, format: 'png' } } },
      whole: { name: file.replace(/\.png$/, '-figure.png'), make: make('png') },
    };
  }

  /* ---- copying ---- */

  async #copy(kind) {
    if (await copyText(this.#tabs[kind].pre.textContent)) this.page.announce(word('panel.copied'));
  }
}
