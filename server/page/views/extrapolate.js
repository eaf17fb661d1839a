/* Extrapolate: what a configuration meets beyond the length of its training, against the length of evaluation. */
import { cell, columns, make, row, scrolling, table } from '../dom.js';
import { colorOf, dashOf } from '../draw/series.js';
import { roomy } from '../draw/axes.js';
import { short } from '../draw/numbers.js';
import { datum, shortDatum } from '../figure.js';
import { gap, phrase, word } from '../words.js';
import { bodyFor } from './parts.js';
import { lengthNoted, lengthOf, ownScaling } from './scaling/ask.js';
import { sliderField } from './controls.js';
import { Charts } from './charts.js';

const METRIC = 'extrapolation';
const LENGTH = { lo: 16, hi: 2 ** 16 };   /* the server takes no longer evaluation */
const NEAR = 4096;   /* so far a line goes by itself: longer ones take the server a second a point */
const POINTS = [32, 64, 128, 256, 512, 1024, 2048, NEAR];
const NONE = { train_len: 128, eval_len: 256 };   /* until there is an answer */

/* Shares, 0 to 1: the first that a scheme has is its headline. */
const SHARES = ['positions_without_row', 'unseen_angles', 'mass_beyond', 'unseen_pairs', 'saturated'];

const partOf = (result, name) => result[name] ?? result.attention?.[name];
const shareOf = (result, name) => partOf(result, name)?.eval ?? partOf(result, name);
const sharesOf = (result) => SHARES.filter((name) => shareOf(result, name) !== undefined);

class Extrapolate extends Charts {
  constructor(page, root) {
    super(page, 'extrapolate');
    const length = (key) => sliderField({
      name: key, text: word(`scaling.${key}`), spacing: 'log', move: (value) => this.#setLength(key, value),
    });
    this.sliders = { train: length('train'), eval: length('eval') };
    root.append(make('div', { class: 'view-controls' }, this.sliders.train.element, this.sliders.eval.element),
      this.place);
  }

  build(slot) {
    const one = super.build(slot,
      { scales: { x: 'log' }, onCursor: (x) => this.page.store.set({ cur: [this.state.cur[0], x] }, { undo: false }) });
    const facts = scrolling(word('extrapolate.facts'));
    one.chart.figure.extra.append(facts);
    return { ...one, facts };
  }

  /* ---- lengths ---- */

  /* Of the address, else as the server chose them. */
  #lengths() {
    const { train_len, eval_len } = this.slots.get(this.page.front())?.picture?.result ?? NONE;
    const { train, eval: beyond } = this.state.own;
    return { train: Number(train ?? train_len), eval: Number(beyond ?? eval_len) };
  }

  #setLength(key, value) {
    const now = { ...this.#lengths(), [key]: Math.round(Number(value.toPrecision(3))) };
    const own = { [key]: String(Math.min(now[key], LENGTH.hi)) };
    const follows = key === 'train' && !this.state.own.eval && 2 * now.train <= LENGTH.hi;
    if (key === 'eval' || !follows) own.eval = String(Math.min(Math.max(now.train, now.eval), LENGTH.hi));
    this.page.setOwn(own, key);
  }

  /* ---- asking ---- */

  /* A model's own length of training, where nothing else is chosen: that its scaling states is the server's default. */
  #body(slot, config, more) {
    const { eval: beyond, ...own } = this.state.own;
    const train = own.train ?? (lengthOf(ownScaling(this.page, slot, config)) ? null : lengthNoted(this.page, config));
    const lengths = { ...train && { train_len: Number(train) }, ...beyond && { eval_len: Number(beyond) } };
    return { metrics: [METRIC], outputs: [], ...bodyFor(this.page.catalogue, '/analyze', config), ...lengths, ...more };
  }

  /* The lengths in front, then the line through others: those do not depend on where evaluation ends, so they are asked
   * once. */
  async #job(get, slot, config) {
    const ask = (more) => get({ path: '/analyze', body: this.#body(slot, config, more) }, { as: 'json' });
    const { configs: [resolved], results: [{ [METRIC]: result }] } = await ask();
    const { train_len, eval_len } = result;
    const lengths = [...new Set([train_len, ...POINTS.filter((length) => length > train_len), eval_len])]
      .sort((one, other) => one - other);
    const points = [];
    for (const length of lengths) {
      points.push(length === eval_len ? result : (await ask({ train_len, eval_len: length })).results[0][METRIC]);
    }
    if (!this.slots.has(slot)) return;
    this.page.publish?.(slot, { config: resolved, tensors: {} });
    this.#draw(slot, { scheme: resolved.scheme, result, lengths, points });
  }

  /* ---- figures ---- */

  update() {
    this.askEach(METRIC, (...all) => this.#job(...all), this.state.own);
    this.#updateControls();
    for (const { chart } of this.slots.values()) chart.setCursor(this.state.cur[1]);
  }

  #updateControls() {
    const lengths = this.#lengths();
    for (const key of ['train', 'eval']) {
      this.sliders[key].show({ value: lengths[key], min: LENGTH.lo, max: LENGTH.hi });
    }
  }

  #draw(slot, picture) {
    const one = this.slots.get(slot);
    one.picture = picture;
    for (const [other] of this.drawn()) this.#drawOne(other);
    this.#explain(one, picture.result);
    this.#updateControls();
    one.chart.figure.drawn();
  }

  #drawOne(slot) {
    const { chart, picture: { scheme, result, lengths, points } } = this.slots.get(slot);
    const series = sharesOf(result).map((name, i) => {
      const place = SHARES.indexOf(name);
      const y = points.map((point) => shareOf(point, name));
      return {
        id: `${slot}:${name}`, name: word(`extrapolate.${name}`), translate: 'yes',
        color: (theme) => colorOf(place, theme), dash: dashOf(place), width: i ? 1.5 : 3, x: lengths, y,
        dots: lengths.map((length, at) => [length, y[at]]),
      };
    });
    const mark = (key, at) => ({
      axis: 'x', at, label: short(at), handle: { ...LENGTH, move: (value) => this.#setLength(key, value) },
    });
    chart.draw(series, {
      xLabel: word('scaling.eval'), yLabel: word('extrapolate.share'), xRange: this.#range(), yRange: roomy([0, 1]),
      marks: [mark('train', result.train_len), mark('eval', result.eval_len)],
      bands: [{ axis: 'x', from: result.train_len, to: result.eval_len }],
      cell: (_, i) => ({ row: i }),
    });
    chart.rename(word('extrapolate.label', { scheme, slot }), this.page.calledBy(slot), METRIC);
  }

  /* One of two, so that the axis stays while a length is dragged. */
  #range() {
    return [LENGTH.lo, this.drawn().every(([, { picture }]) => picture.result.eval_len <= NEAR) ? NEAR : LENGTH.hi];
  }

  #explain({ chart, facts }, result) {
    const [headline] = sharesOf(result);
    const lengths = () =>
      ({ train: shortDatum(result.train_len, 'train_len'), eval: shortDatum(result.eval_len, 'eval_len') });
    const pair = result.witness && phrase('extrapolate.pair', { pair: datum(result.witness.pair, 'pair') });
    chart.figure.caption.replaceChildren(
      phrase('extrapolate.caption',
        { what: word(`extrapolate.${headline}`), value: shortDatum(result.value, 'value'), ...lengths() }),
      ...pair ? [gap(), pair] : []
    );
    const line = (name, values) => row(word(`extrapolate.${name}`),
      values.map((value) => cell(value === null ? '' : shortDatum(value, name))), { 'data-fact': name });
    const found = [...SHARES, 'entropy', 'mean_distance'].map((name) => [name, partOf(result, name)])
      .filter(([, values]) => values !== undefined);
    const rows = found.map(([name, values]) => line(
      name, typeof values === 'number' ? [null, values] : Object.values(values)
    ));
    facts.replaceChildren(table(null, columns([word('properties.len'), ...Object.values(lengths())]), rows));
  }

  /* ---- for the page ---- */

  /* Ladders have a file of numbers: a share for each pair. */
  request(slot) {
    const config = this.page.config(slot);
    if (!config) return null;
    const isLadder = this.slots.get(slot)?.picture?.result.unseen_angles !== undefined;
    return { path: '/analyze', body: this.#body(slot, config, { outputs: isLadder ? ['unseen'] : [] }) };
  }
}

export default {
  name: 'extrapolate', path: '/analyze',
  example: () => ({
    a: { scheme: 'rope', len: 128 }, b: { scheme: 'rope', len: 128, scaling: { type: 'ntk', factor: 8 } },
    c: { scheme: 'alibi', len: 128, causal: true },
  }),
  open: (page, root) => new Extrapolate(page, root),
};
