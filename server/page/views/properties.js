/* Properties: the five wishes for an encoding, each with its number and a witness to open, and the step between
 * neighbours. */
import { make } from '../dom.js';
import { extent, roomy } from '../draw/axes.js';
import { printedIn, short } from '../draw/numbers.js';
import { datum, shortDatum } from '../figure.js';
import { gap, language, live, phrase, word } from '../words.js';
import { bodyFor } from './parts.js';
import { sliderField } from './controls.js';
import { Charts } from './charts.js';
import { colorOfSlot } from './slots.js';

const METRIC = 'properties';
/* metrics that say where; not all are for all configurations */
const WITNESSES = ['unique', 'shift', 'bounds', 'step'];
const WISHES = ['unique', 'linear', 'generalises', 'deterministic', 'n_dimensional'];
const OF_WISH = { unique: 'unique', linear: 'shift', generalises: 'bounds' };
const LENGTH = { min: 2, max: 4096 };
const GRID = [8, 8];   /* of the server's number for several axes */

class Properties extends Charts {
  #missing = new Map();   /* kind of configuration: metrics that the server does not have for it */

  constructor(page, root) {
    super(page, METRIC);
    this.length = sliderField({
      name: 'len', text: word('properties.len'), spacing: 'log',
      move: (len) => page.changeAll((config) => ({ ...this.#bare(config), len }), 'len'),
    });
    root.append(make('div', { class: 'view-controls' }, this.length.element), this.place);
  }

  build(slot) {
    const one = super.build(slot, { onCursor: (x) => this.page.store.set({ cur: [x, 0] }, { undo: false }) });
    const wishes = make('ul', { class: 'wishes stage' }, WISHES.map((key) => make('li', null, ...this.#asked(key))));
    one.chart.figure.stage.parentElement.before(wishes);
    return { ...one, wishes };
  }

  /* ---- asking ---- */

  /* Without the sequence, but for where it begins. */
  #bare(config) {
    const out = this.page.catalogue.sequenceRows().map((row) => row.name).filter((name) => name !== 'offset');
    return Object.fromEntries(Object.entries(config).filter(([name]) => !out.includes(name)));
  }

  #family(config) { return this.page.catalogue.schemeOf(config)?.family; }
  #kind(config) { return JSON.stringify([this.#family(config), Object.keys(config)]); }
  #without(config) {
    return this.#missing.get(this.#kind(config)) ?? (this.#family(config) === 'bias' ? ['shift'] : []);
  }

  #body(config) {
    const witnesses = WITNESSES.filter((name) => !this.#without(config).includes(name));
    return { metrics: [METRIC, ...witnesses], outputs: ['step'], ...bodyFor(this.page.catalogue, '/analyze', config) };
  }

  /* A witness that the server does not have for this configuration is done without, from then on. */
  async #answer(get, config) {
    const body = this.#body(config);
    try {
      return await get({ path: '/analyze', body }, { as: 'json' });
    } catch (error) {
      const [, list, i] = error.problem?.pointer?.split('/') ?? [];
      if (list !== 'metrics' || !(i > 0)) throw error;
      this.#missing.set(this.#kind(config), [...this.#without(config), body.metrics[i]]);
      return this.#answer(get, config);
    }
  }

  async #job(get, slot, config) {
    const { configs: [resolved], results: [results], tensors } = await this.#answer(get, config);
    if (!this.slots.has(slot)) return;
    this.page.publish?.(slot, { config: resolved, tensors: {} });
    this.#draw(slot, { config, resolved, results, y: tensors['step.0']?.data.map(Number) ?? [] });
  }

  /* ---- figures ---- */

  update() {
    this.askEach(METRIC, (...all) => this.#job(...all));
    this.length.show({ value: this.front()?.len ?? LENGTH.min, ...LENGTH });
    for (const { chart } of this.slots.values()) chart.setCursor(this.state.cur[0]);
  }

  #draw(slot, picture) {
    const one = this.slots.get(slot);
    one.picture = picture;
    for (const [other] of this.drawn()) this.#drawOne(other);
    const { [METRIC]: { value, wishes }, step } = picture.results;
    one.wishes.replaceChildren(...Object.entries(wishes).map(([key, wish]) => this.#wish(key, wish, picture)));
    const steps = step?.mean === undefined ? [] : [phrase('properties.steps', { mean: shortDatum(step.mean, 'step') })];
    one.chart.figure.caption.replaceChildren(
      phrase('properties.caption', { n: datum(value, 'value') }), gap(), ...steps
    );
    one.chart.figure.drawn();
  }

  /* All figures have one range. */
  #drawOne(slot) {
    const { chart, picture: { resolved: { scheme }, y } } = this.slots.get(slot);
    const line = { id: `${slot}:step`, name: scheme, color: () => colorOfSlot(slot), x: y.map((_, i) => i), y };
    const yRange = roomy(extent([[0], ...this.drawn().map(([, { picture }]) => picture.y)]));
    chart.draw(y.length ? [line] : [], {
      xLabel: word('axis.row'), yLabel: word('properties.step'), whole: true, yRange,
      cell: (_, i) => ({ row: i, col: 0 }),
    });
    chart.rename(word('properties.label', { scheme, slot }), this.page.calledBy(slot), METRIC);
  }

  /* A wish, and what its number is called. */
  #asked(key, number = '') {
    return [make('strong', null, word(`properties.${key}`)),
      make('div', { class: 'wish-number' }, make('span', null, word(`properties.${key}.number`)), number)];
  }

  /* What the metric behind a wish has to say stands in the server's own words. */
  #wish(key, { value, holds, length_change: change }, picture) {
    const said = value === null ? null : picture.results[OF_WISH[key]];
    const text = said ? live(() => printedIn(said[language() === 'zh' ? 'detail_zh' : 'detail']))
      : value === null && !holds ? word('properties.none')
      : '';
    const changed = change ? [phrase('properties.changed', { value: shortDatum(change, 'length_change') })] : [];
    return make('li', { 'data-wish': key, 'data-holds': String(holds) },
      ...this.#asked(key, value === null ? '–' : shortDatum(value, key)),
      make('p', { class: 'hint' },
        make('span', { class: holds ? 'good' : 'bad' },
          holds ? '✓ ' : '✗ ', word(`properties.${holds ? 'holds' : 'fails'}`)), ' ', text,
        changed.flatMap((one) => [gap(), one]),
        this.#links(key, value, said?.witness ?? {}, picture).flatMap((one, i) => [i ? ' ' : gap(), one])));
  }

  /* ---- links to witnesses ---- */

  #links(key, value, { rows, distances, row, column, distance }, picture) {
    if (rows) return rows.map((at) => this.#cell(picture, at, 0));
    if (distances) return distances.map((at) => this.#distance(picture, at, 0));
    if (row !== undefined) return [this.#cell(picture, row, column)];
    if (distance !== undefined) return [this.#distance(picture, distance, column)];
    if (key === 'deterministic' && value) return [this.#open(picture, {}, word('view.table'))];
    if (key !== 'n_dimensional' || value === null) return [];
    const { offset, ...config } = this.#bare(picture.config);
    return [this.#open(picture, { configs: { a: { ...config, grid: GRID } } }, GRID.join(' × '))];
  }

  /* The configuration alone, in the view of its kind of output. */
  #open({ config, resolved }, patch, text) {
    const view = this.page.catalogue.scheme(resolved.scheme).family === 'bias' ? 'bias' : 'table';
    return make('a',
      { href: this.page.href(view, { configs: { a: config }, emptied: false, on: 'a', ...patch }), 'data-witness': '' },
      text);
  }

  /* Rotary rows are cosines, then sines, one of each for a pair. */
  #cell(picture, row, column) {
    const { config, resolved: { rotary_dim, form } } = picture;
    const col = column - rotary_dim / 2;
    const place = !rotary_dim ? { cur: [row, column] }
      : col < 0 ? { out: 'cos', cur: [row, column] }
      : { out: 'sin', cur: [row, col] };
    const configs = { a: rotary_dim && form !== 'pairs' ? { ...config, form: 'pairs' } : config };
    return this.#open(picture, { ...place, configs }, live(() => `${word('axis.row')} ${row}`));
  }

  /* A key before its query is seen from the last one, one behind it from the first. */
  #distance(picture, distance, head) {
    const last = (picture.config.len ?? 1) - 1;
    const cur = distance > 0 ? [0, distance] : [last, Math.max(0, last + distance)];
    return this.#open(picture, { at: [head], cur }, live(() => `${word('axis.distance')} ${short(distance)}`));
  }

  /* ---- for the page ---- */

  request(slot) {
    const config = this.page.config(slot);
    return config ? { path: '/analyze', body: this.#body(config) } : null;
  }
}

export default {
  name: METRIC, path: '/analyze',
  example: () => ({
    a: { scheme: 'sinusoidal', dim: 64, len: 64 }, b: { scheme: 'learned', dim: 64, len: 64, seed: 0 },
    c: { scheme: 'alibi', len: 64 },
  }),
  open: (page, root) => new Properties(page, root),
};
