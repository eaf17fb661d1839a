/* The view `bias`: what a scheme adds to the logits, head by head. One head is enlarged (`at`), beside it all heads are
 * small maps with the same or their own colours; below, the same numbers as lines over the distance. */
import { make } from '../../dom.js';
import { HeatMap, Scale } from '../../heat/heatmap.js';
import { frontChooser } from '../../heat/toolbar.js';
import { label, live, word } from '../../words.js';
import { HEADS_SHOWN, biasBody, hasBias, headsWith } from './ask.js';
import { Heads } from './draw.js';
import { choice } from '../controls.js';
import { cannot, nameOf } from '../parts.js';
import { Slots, wantedOf } from '../slots.js';

const example = () => ({ a: { scheme: 'alibi', num_heads: 8, len: 64 } });

/* The range of the enlarged head alone. */
class OwnScale {
  #map = null;
  constructor(range) { this.read = range; }
  get range() { return this.read(); }
  set(map) { this.#map = map; }
  leave() { this.#map = null; }
  refresh() { this.#map?.refresh(); }
}

/* A configuration: its enlarged head, its heads, and the buckets or indices that a table is looked up with. */
class Part {
  constructor(view, slot) {
    Object.assign(this, { view, page: view.page, slot });
    this.title = live(() => String(
      word('bias.enlarged', { head: this.head(), scheme: nameOf(this.page.catalogue, this.config, slot) })
    ));
    this.heads = new Heads(view, slot);
    this.own = new OwnScale(() => this.heads.rangeOf(this.head()));
    this.map = new HeatMap(this.page,
      { view: 'bias', slot, scale: view.scale, label: this.title, after: () => this.#showOthers() });
    this.following = new MutationObserver(this.#follow);
    this.following.observe(this.map.element, { attributeFilter: ['data-state'] });
    this.figures = make('div', { class: 'figures' }, this.map.element);
    this.element = make('div',
      { class: 'bias-part', role: 'group', 'data-config': slot, 'aria-label': this.title }, this.figures);
  }

  /* What keeps the enlarged head from being shown keeps the others too. */
  #follow = () => { this.heads.figure.state = this.map.figure.state; };

  /* How many heads it has, once that is known; and the one in front. */
  get count() { return this.shape?.[0] ?? 0; }
  head() { return Math.min(this.page.store.state.at[0] ?? 0, Math.max(0, this.count - 1)); }

  update(config) {
    const { catalogue } = this.page;
    this.config = config;
    const row = catalogue.schemeOf(config);
    this.map.figure.rename(this.title);
    if (!row) return this.#learn(config);
    if (!hasBias(row)) return this.#refuse(row.name);
    this.body = biasBody(catalogue, config);
    this.map.shareScale(this.view.isShared() ? this.view.scale : this.own);
    this.#place();
    this.map.show(this.spec());
    if (this.shapeOf === JSON.stringify(this.body)) this.#showHeads();
  }

  /* Only the server can read a model's config.json. What is still under way for the configuration before must not ask
   * again. */
  #learn(config) {
    this.body = null;
    this.map.pause();
    this.map.figure.ask(async (get) => {
      const meta = await get({ path: '/encode', body: { ...config, len: 1, data: false } }, { as: 'json' });
      this.page.catalogue.learn(config, meta.config);
      this.page.publish(this.slot, meta);
      this.view.update();
    });
  }

  spec() { return { path: '/encode', body: this.body, output: 'bias', at: this.page.store.state.at }; }

  #refuse(scheme) {
    this.body = null;
    this.map.pause();
    this.map.figure.refuse(cannot(this.page.catalogue, 'bias.cannot', scheme, hasBias));
    for (const figure of [this.heads.figure, this.heads.chart.figure]) figure.element.remove();
    this.#dropTable();
  }

  /* The enlarged head is drawn: now the others. */
  async #showOthers() {
    if (!this.body) return;
    const { shape } = this.map.about;
    Object.assign(this, { shape, shapeOf: JSON.stringify(this.body) });
    this.view.showPages();
    await this.#showHeads();
  }

  /* All its figures, also those that are drawn later. */
  #place() {
    if (this.heads.element.isConnected) return;
    this.element.prepend(this.heads.element);
    this.map.element.after(this.heads.chart.figure.element);
  }

  async #showHeads() {
    this.map.figure.rename(this.title);
    await this.heads.show(this.body, this.shape);
    if (!this.body) return;
    this.own.refresh();
    this.#showTable();
  }

  /* Integers that say which row of a table each pair of positions reads. */
  #showTable() {
    const row = this.page.catalogue.outputsOf(this.body, '/encode').find(({ axes }) => String(axes) === 'query,key');
    if (!row) return void this.#dropTable();
    this.table ??= this.#newTable(row);
    this.table.figure.rename(label(row));
    this.table.show({ path: '/encode', body: this.body, output: row.name, at: [] });
  }

  #newTable(row) {
    const table = new HeatMap(this.page,
      { view: 'bias', slot: this.slot, scale: new Scale(), quiet: true, label: label(row) });
    this.figures.append(table.element);
    return table;
  }

  #dropTable() {
    this.table?.close();
    this.table = null;
  }

  close() {
    this.#dropTable();
    this.following.disconnect();
    this.heads.close();
    this.map.close();
    this.element.remove();
  }
}

/* b - a of the head in front. */
function difference(page) {
  const map = new HeatMap(page, { view: 'bias', slot: 'b-a', quiet: true });
  const show = (of) => of.every(({ body }) => body) ? map.show({ of }) : map.figure.refuse(word('heat.noCommon'));
  return { element: map.element, show, close: () => map.close() };
}

class Bias {
  constructor(page, root) {
    Object.assign(this, { page, scale: new Scale() });
    this.front = frontChooser(page);
    this.scaling = choice({
      name: 'scale', text: word('bias.scale'), pick: (scale) => page.setOwn({ scale }, 'own.scale'),
    });
    this.pages = choice({ name: 'at', text: word('bias.pages'), pick: (head) => this.choose(Number(head)) });
    this.figures = make('div', { class: 'bias-parts' });
    this.parts = new Slots(this.figures, (slot) => slot === 'b-a' ? difference(page) : new Part(this, slot));
    root.append(make('div', { class: 'controls' }, this.scaling.element, this.pages.element, this.front.element),
      this.figures);
  }

  isShared() { return this.page.store.state.own.scale !== 'own'; }

  choose(head) { this.page.store.set({ at: [head] }, { undo: 'at' }); }

  update() {
    const wanted = wantedOf(this.page);
    this.parts.sync(wanted.map(([slot]) => slot));
    for (const [slot, [config, other]] of wanted) {
      if (other) this.parts.get(slot).show(['b', 'a'].map((one) => this.parts.get(one).spec()));
      else this.parts.get(slot).update(config);
    }
    this.front.update();
    this.scaling.show(['shared', 'own'].map((which) => [which, word(`bias.${which}`)]),
      this.isShared() ? 'shared' : 'own');
    this.showPages();
  }

  /* Pages of heads, where there are more than fit. */
  showPages() {
    const heads = Math.max(1, ...this.parts.values().map((part) => part.count ?? 1));
    const first = Array.from({ length: Math.ceil(heads / HEADS_SHOWN) }, (_, i) => i * HEADS_SHOWN);
    this.pages.element.hidden = heads <= HEADS_SHOWN;
    this.pages.show(first.map((from) => [String(from), `${from}–${Math.min(heads, from + HEADS_SHOWN) - 1}`]),
      String(headsWith(this.page.store.state.at[0] ?? 0, heads)[0]));
  }

  request(slot) {
    const body = this.parts.get(slot)?.body;
    return body ? { path: '/encode', body: { ...body, outputs: ['bias'] } } : null;
  }

  close() { this.parts.close(); }
}

export default { name: 'bias', path: '/encode', example, open: (page, root) => new Bias(page, root) };
