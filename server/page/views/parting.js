/* Where two configurations part, above the views that compare them: the fields in which they differ, and, from the
 * difference of their numbers, where it begins and where it is largest. */
import { Asker, busy } from '../ask.js';
import { code, make, name } from '../dom.js';
import { printedIn } from '../draw/numbers.js';
import { differing, partings } from '../draw/parting.js';
import { placeText } from '../draw/places.js';
import { shortDatum } from '../figure.js';
import { axesOf, axisName } from '../heat/beside.js';
import { sourceOf } from '../heat/sources.js';
import { label, live, phrase, word } from '../words.js';
import { withSequence } from './models/ask.js';
import { bodyFor } from './parts.js';

const PATH = '/encode';
const LEAST = 0.01;       /* two numbers closer than this do not part */
const CELLS_MAX = 2 ** 18;
const REST_MS = 120;      /* nothing is asked while a slider moves */

export class Parting {
  #asker = new Asker();
  #shown = '';
  #timer = null;

  constructor(page, place) {
    this.page = page;
    this.fields = make('p');
    this.numbers = make('p');
    this.element = make('section', { class: 'parting', 'aria-label': word('parting.title'), hidden: true },
      this.fields, this.numbers);
    place.append(this.element);
  }

  /* When configurations, view or output have changed, and when the server has answered for one of them. */
  update() {
    const { page } = this;
    const configs = ['a', 'b'].map((slot) => page.config(slot)).map((config) => config && withSequence(config));
    const resolved = ['a', 'b'].map((slot) => page.resolved.get(slot)?.config);
    const isOn = page.isCompared();
    if (!isOn || !resolved.every(Boolean)) {
      this.element.hidden = !isOn;
      if (!isOn) this.#forget('');
      return;
    }
    const { out, at } = page.store.state;
    const key = JSON.stringify([configs, resolved, out, at, page.view.name]);
    if (key === this.#shown) return;
    this.#forget(key);
    this.element.hidden = false;
    this.#showFields(configs, resolved);
    busy.begin();
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#ask(configs, key).finally(() => busy.end());
    }, REST_MS);
  }

  #forget(key) {
    this.#shown = key;
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    busy.end();
  }

  /* ---- which fields ---- */

  /* Positions are no part of a resolved configuration; a view that chooses them itself compares none. */
  #sequence(configs) {
    if (this.page.setsSequence()) return [{}, {}];
    const names = this.page.catalogue.sequenceRows().map((row) => row.name);
    return configs.map((config) => Object.fromEntries(names.filter((one) => one in config)
      .map((one) => [one, config[one]])));
  }

  #showFields(configs, resolved) {
    const [a, b] = this.#sequence(configs).map((sequence, i) => ({ ...resolved[i], ...sequence }));
    const rows = differing(a, b);
    const models = { a: this.#called('a'), b: this.#called('b') };
    const fields = make('span', { class: 'differing' }, rows.flatMap(([field, one, other], i) => [i ? ', ' : '',
      make('span', { 'data-differs': field }, code(field), ' ', value('a', one), ' / ', value('b', other))]));
    this.fields.replaceChildren(phrase(rows.length ? 'parting.fields' : 'parting.same', { ...models, fields }));
  }

  #called(slot) {
    const row = this.page.calledBy(slot);
    return make('strong', { 'data-config': slot }, make('span', { class: 'slot-letter', translate: 'no' }, slot), ' ',
      name(String(label(row))));
  }

  /* ---- which numbers ---- */

  async #ask(configs, key) {
    const { catalogue, store: { state: { out, at } } } = this.page;
    const [a, b] = configs.map((config) => ({ path: PATH, body: bodyFor(catalogue, PATH, config), output: out, at }));
    try {
      await this.#asker.ask(async (get) => {
        const source = sourceOf({ of: [b, a] }, catalogue);
        const about = await source.about(get);
        const rows = Math.min(about.rows, Math.max(1, Math.floor(CELLS_MAX / about.cols)));
        const run = (count) => ({ first: 0, step: 1, count });
        const found = await source.window(get, about, run(rows), run(about.cols), 'sample');
        if (key === this.#shown) this.#showNumbers(about, found);
      });
    } catch {
      this.numbers.replaceChildren();   /* the figures say what is refused; without a common output nothing parts */
    }
  }

  #showNumbers(about, found) {
    const { cols, first, most, value: largest } = partings(found, LEAST);
    const [, colAxis] = axesOf(about);
    const place = (col) => placeText(about.places.col, col);
    const parts = {
      output: code(about.name), least: String(LEAST), n: String(found.rows), all: String(found.cols),
      count: String(cols.length), axis: axisName(colAxis), from: place(cols[0]), to: place(cols.at(-1)),
      value: shortDatum(largest, 'parting', 5),
    };
    const key = first ? 'parting.apart' : largest ? 'parting.near' : 'parting.equal';
    this.numbers.replaceChildren(phrase(key,
      { ...parts, first: first && this.#cell('first', about, first), most: this.#cell('most', about, most) }));
  }

  /* A way to a cell, in the table of both. */
  #cell(which, about, [row, col]) {
    const [rowAxis, colAxis] = axesOf(about);
    const { at } = this.page.store.state;
    const href = () => this.page.href('table',
      { configs: this.page.configsBySlot(), out: about.name, at, cur: [row, col] });
    const text = live(() => String(word('heat.where', {
      rowAxis: axisName(rowAxis), row: placeText(about.places.row, row), colAxis: axisName(colAxis),
      col: placeText(about.places.col, col),
    })));
    return make('a', { href: href(), 'data-part': which, 'data-row': row, 'data-col': col }, text);
  }
}

const value = (slot, one) => make('b', { 'data-config': slot, translate: 'no' },
  one === undefined ? '–' : typeof one === 'string' ? one : printedIn(JSON.stringify(one)));
