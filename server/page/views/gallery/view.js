/* The start view: what this is, four ways in, pairs of models, a card a scheme, all models; one field searches them. */
import { Asker, ask, token } from '../../ask.js';
import { action, code, make, name } from '../../dom.js';
import { datum, grouped } from '../../figure.js';
import { playable } from '../../frame/play.js';
import { label, phrase, summary, word } from '../../words.js';
import { stories } from '../../stories/list.js';
import { storyCard } from '../parts.js';
import { haystack, isExactly, matches, modelStart, PAIRS, pairPicture, pairStart, startOf } from './starts.js';

const SENTENCE = ['The', 'dog', 'chased', 'another', 'dog'];

/* ---- the pieces of an open gallery ---- */

class Gallery {
  #links = [];      /* [a, start] */
  #items = [];      /* { element, text, rows }: what search finds */
  #urls = [];       /* blob: addresses, given back at the end */
  #asker = new Asker();

  constructor(page, root) {
    this.page = page;
    this.catalogue = page.catalogue.catalogue();
    this.found = make('p', { class: 'hint', role: 'status' });
    this.start = make('section', { class: 'starts', 'aria-label': word('gallery.start') }, this.dragTile(),
      this.tiles());
    this.models = this.modelList();
    this.parts = [this.storyList(), this.pairList(), ...this.catalogue.families.map((family) => this.family(family)),
      this.models];
    root.append(make('div', { class: 'gallery' }, this.hero(), this.start, this.parts));
    this.drag(this.slider.value);
  }

  part(title, lead, ...children) {
    return make('section', null, make('h2', { class: 'capital' }, title), make('p', { class: 'hint capital' }, lead),
      children);
  }

  cards(cards) { return make('div', { class: 'cards' }, cards); }

  card(start, attributes, picture, title, text) {
    return this.link(start, { class: 'card', ...attributes }, make('span', { class: 'thumb' }, picture), title,
      make('span', { class: 'hint capital' }, text));
  }

  /* ---- links: real addresses, so that they open in new tabs too ---- */

  link(start, attributes, ...children) {
    const a = make('a', { href: this.href(start), ...attributes }, ...children);
    this.#links.push([a, start]);
    return a;
  }

  href({ view, configs, story = null, on = 'a', out = null }) {
    return this.page.href(view, configs ? { configs, emptied: false, on, out } : { story });
  }

  /* An address carries language and theme where the one in front does. */
  update(state, before) {
    if (state.lang === before.lang && state.theme === before.theme) return;
    for (const [a, start] of this.#links) a.href = this.href(start);
  }

  /* ---- pictures ---- */

  /* A picture of the server: an <img> cannot send a token, so where one is needed the bytes are fetched. */
  picture(path, text, size = {}) {
    const img = make('img', { alt: text, width: 240, height: 160, loading: 'lazy', decoding: 'async', ...size });
    if (token()) this.fetched(path).then((url) => { img.src = url; }, () => {});
    else img.src = path;
    return img;
  }

  async fetched(request, get = ask) {
    const bytes = await get(request, { as: 'bytes' });
    if (!this.#urls) throw new DOMException('the gallery is closed', 'AbortError');
    const url = URL.createObjectURL(new Blob([bytes], { type: 'image/png' }));
    this.#urls.push(url);
    return url;
  }

  /* ---- what this is, and search ---- */

  hero() {
    const field = make('input', { type: 'search', class: 'gallery-search', autocomplete: 'off', spellcheck: 'false',
      'aria-label': word('gallery.search'),
      placeholder: word('gallery.searchHint',
        { schemes: this.catalogue.schemes.length, models: this.catalogue.presets.length }),
      oninput: () => this.search(field.value.trim()),
      onkeydown: (event) => event.key === 'Enter' && this.openFirst(field.value.trim()) });
    return make('header', { class: 'gallery-hero' }, make('p', { class: 'gallery-claim' }, word('gallery.claim')),
      make('p', { class: 'gallery-sub' }, word('gallery.sub')),
      make('div', { class: 'gallery-ways' },
        this.link({ view: 'walk' }, { class: 'button primary', 'data-action': 'start' }, word('gallery.walk')), field),
      this.found);
  }

  findable(element, ...rows) {
    this.#items.push({ element, text: haystack(...rows), rows });
    return element;
  }

  search(query) {
    const wanted = query !== '';
    if (wanted) this.fillModels();
    for (const { element, text } of this.#items) element.hidden = !matches(text, query);
    for (const part of this.parts) part.hidden = wanted && !this.left(part).length;
    this.start.hidden = this.models.querySelector('details').open = wanted;
    const counts = { schemes: this.left('[data-scheme]').length, models: this.left('li').length };
    this.found.replaceChildren(...(query ? [make('span', null, word('gallery.found', counts))] : []));
  }

  /* What search has left in a part, or of a kind. */
  left(within) {
    const fits = (element) => typeof within === 'string' ? element.matches(within) : within.contains(element);
    return this.#items.filter(({ element }) => !element.hidden && fits(element));
  }

  /* Enter opens the card or the model of that name, else the first that is left. */
  openFirst(query) {
    const left = this.left('*');
    const best = left.find(({ rows }) => isExactly(rows[0], query)) ?? left[0];
    if (query) (best?.element.querySelector('a') ?? best?.element)?.click();
  }

  /* ---- four ways in ---- */

  /* The first one is alive: a slider for the base of RoPE, and the table that it changes. */
  dragTile() {
    const row = this.catalogue.schemes.find((one) => one.name === 'rope');
    const base = row.parameters.find((one) => one.name === 'base');
    this.bases = steps(...base.usual);
    this.live = make('img', { alt: word('gallery.dragAlt'), width: 640, height: 256, class: 'live-picture' });
    this.slider = make('input', { type: 'range', min: 0, max: this.bases.length - 1, step: 1, 'data-slider': 'base',
      'aria-label': label(base), oninput: () => this.drag(this.slider.value) });
    this.slider.value = this.bases.indexOf(base.default);
    this.shownBase = make('output', { class: 'live-value' });
    this.open = this.link({ view: 'table' }, { 'data-action': 'open' }, word('paste.use'));
    const seen = (text, className) => make('span', { class: className, 'aria-hidden': 'true' }, text);
    return make('section', { class: 'card live', 'aria-labelledby': 'gallery-drag' },
      make('h2', { id: 'gallery-drag' }, word('gallery.drag')), make('p', { class: 'hint' }, word('gallery.drag.lead')),
      make('div', { class: 'live-stage' }, seen(word('axis.position'), 'live-y'), this.live,
        seen(word('gallery.channel'))),
      make('div', { class: 'live-control' },
        seen(label(base)), playable(this.slider, label(base)), this.shownBase, this.open));
  }

  async drag(step) {
    const config = { scheme: 'rope', len: 128, head_dim: 640, base: this.bases[step] };
    const start = { view: 'table', configs: { a: config } };
    this.#links.find(([a]) => a === this.open)[1] = start;
    this.open.href = this.href(start);
    this.slider.setAttribute('aria-valuetext', config.base);
    this.shownBase.replaceChildren(datum(config.base, 'base', grouped(config.base)));
    await this.#asker.ask((get) => this.redraw(config, get)).catch(() => {});   /* the last picture stays */
  }

  async redraw(config, get) {
    const query = new URLSearchParams({ ...config, outputs: 'cos', format: 'png', zoom: 2 });
    const url = await this.fetched(`/encode?${query}`, get);
    const old = this.live.src;
    this.live.src = url;
    await this.live.decode().catch(() => {});
    if (old) URL.revokeObjectURL(old);
    if (!performance.getEntriesByName('posenc:first-picture').length) performance.mark('posenc:first-picture');
  }

  tiles() {
    const [first] = PAIRS;
    const look = { class: 'card tile' };
    const compare = this.hasModels(first)
      && this.link(pairStart(first), look, this.tile('compare', this.halves(first)));
    const attend = this.link({ view: 'attention' }, look, this.tile('attend', this.attentionPicture()));
    const file = make('pre', { 'aria-hidden': 'true' }, '{\n "rope_theta":\n   1000000,\n "rope_scaling":');
    const paste = action('paste', null, () => this.page.paste(), look);
    paste.append(...this.tile('paste', file, { file: code('config.json') }));
    return make('div', { class: 'tiles' }, compare, attend, paste);
  }

  tile(key, picture, names) {
    const lead = make('span', { class: 'hint' }, phrase(`gallery.${key}.lead`, names));
    return [make('span', { class: 'thumb' }, picture),
      make('span', { class: 'tile-text' }, make('strong', null, word(`gallery.${key}`)), lead)];
  }

  attentionPicture() {
    const img = make('img', { alt: '', width: 120, height: 120 });
    const body = { scheme: 'rope', tokens: SENTENCE, num_heads: 1, head_dim: 64, softmax_scale: 0.05, format: 'png' };
    this.fetched({ path: '/attention', body }).then((url) => { img.src = url; }, () => {});
    return img;
  }

  /* ---- stories ---- */

  storyList() {
    const cards = stories.map(({ name, scheme }) => {
      const card = storyCard(name);
      const { picture } = this.page.catalogue.scheme(scheme) ?? {};
      if (picture) card.prepend(make('span', { class: 'thumb' }, this.picture(picture, '')));
      this.#links.push([card, { view: 'story', story: name }]);
      card.href = this.href({ view: 'story', story: name });
      return card;
    });
    return this.part(word('gallery.stories'), word('gallery.stories.lead'), this.cards(cards));
  }

  /* ---- pairs ---- */

  hasModels({ a, b }) { return Boolean(this.page.catalogue.preset(a.preset) && this.page.catalogue.preset(b.preset)); }

  halves({ a, b, both }) {
    return [a, b].map((side) => this.picture(pairPicture(side, both), '', { width: 120, height: 160 }));
  }

  pairList() {
    const cards = PAIRS.filter((pair) => this.hasModels(pair)).map((pair) => this.pairCard(pair));
    return this.part(word('gallery.pairs'), word('gallery.pairs.lead'), this.cards(cards));
  }

  pairCard(pair) {
    const rows = [pair.a, pair.b].map((side) => this.page.catalogue.preset(side.preset));
    const [one, other] = rows.map((row) => name(row.label));
    const within = (side) => code(pair[side][pair.titled]);
    const title = pair.titled ? phrase('gallery.within', { model: one, one: within('a'), other: within('b') })
      : phrase('gallery.against', { one, other });
    const lesson = word(`gallery.pair.${pair.id}`);
    const card = this.card(pairStart(pair), { 'data-pair': pair.id }, this.halves(pair), make('strong', null, title),
      lesson);
    return this.findable(card, ...rows);
  }

  /* ---- schemes, by family ---- */

  family(family) {
    const rows = this.catalogue.schemes.filter((row) => row.family === family.name);
    return this.part(label(family), summary(family), this.cards(rows.map((row) => this.schemeCard(row))));
  }

  schemeCard(row) {
    const seen = row.picture ? this.picture(row.picture, word('gallery.pictureOf', { scheme: label(row) }))
      : make('span', { class: 'hatched', 'aria-hidden': 'true' }, code(row.name));
    const title = make('strong', { class: titleClass(row), translate: 'no' }, label(row));
    return this.findable(this.card(startOf(row), { 'data-scheme': row.name }, seen, title, summary(row)), row);
  }

  /* ---- models ---- */

  modelList() {
    const all = make('summary', null, word('gallery.models.all', { count: this.catalogue.presets.length }));
    this.list = make('ul', { class: 'model-list' });
    const ontoggle = ({ target }) => target.open && this.fillModels();
    return this.part(word('gallery.models'), word('gallery.models.lead'),
      make('details', { ontoggle }, all, this.list));
  }

  /* More elements than all else here, so they are made when they are wanted. */
  fillModels() {
    if (this.list.hasChildNodes()) return;
    this.list.append(...this.catalogue.presets.map((preset) => {
      const row = this.page.catalogue.scheme(preset.config.scheme);
      const link = this.link(modelStart(preset, row), { 'data-preset': preset.name }, name(preset.label));
      return this.findable(make('li', null, link), preset, row);
    }));
  }

  close() {
    this.#asker.close();
    for (const url of this.#urls) URL.revokeObjectURL(url);
    this.#urls = null;   /* what is still on its way gets none */
  }
}

/* A title begins with a capital unless its name has its own (xPos). */
const titleClass = (row) => /^[a-z][a-z ]/.test(row.label) && 'capital';

/* ---- numbers of the slider: ten a decade, round as resistors are ---- */

const DECADE = [1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.4, 8];

function steps(low, high) {
  const all = [];
  for (let power = 0; Number(`1e${power}`) <= high; power += 1) {
    all.push(...DECADE.map((digits) => Number(`${digits}e${power}`)));
  }
  return all.filter((value) => value >= low && value <= high);
}

export default { name: 'gallery', forms: false, open: (page, root) => new Gallery(page, root) };
