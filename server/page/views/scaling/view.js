/* Scaling: the wavelength of each pair under every rule that stretches the context, against two lengths to drag. */
import { cell, columns, make, name, row, scrolling, table } from '../../dom.js';
import { colorOf, dashOf } from '../../draw/series.js';
import { extent, roomy } from '../../draw/axes.js';
import { short } from '../../draw/numbers.js';
import { datum, shortDatum } from '../../figure.js';
import { gap, live, phrase, word } from '../../words.js';
import { FACTOR, askScalings, lengthNoted, lengthOf, ownRequest, ownScaling, scalingRow } from './ask.js';
import { sliderField } from '../controls.js';
import { Charts } from '../charts.js';
import { colorOfSlot, dashOfSlot } from '../slots.js';

const TRAIN = 4096;          /* assumed of what does not say */
const LENGTH_MAX = 2 ** 24;
const LENGTH_MIN = 16;
const tidy = (length) => Math.round(Number(length.toPrecision(3)));

const lookOf = (slot) => ({ color: () => colorOfSlot(slot), dash: dashOfSlot(slot) });

class Scaling extends Charts {
  constructor(page, root) {
    super(page, 'scaling');
    const length = (key) => sliderField({
      name: key, text: word(`scaling.${key}`), spacing: 'log', move: (value) => this.#setLength(key, value),
    });
    this.sliders = { train: length('train'), eval: length('eval') };
    this.factor = sliderField({
      name: 'factor', text: word('scaling.factor'), spacing: 'log', whole: false,
      move: (value) => this.#setFactor(value),
    });
    root.append(
      make('div', { class: 'view-controls' }, this.sliders.train.element, this.sliders.eval.element,
        this.factor.element),
      this.place
    );
  }

  build(slot) {
    const one = super.build(slot,
      { scales: { y: 'log' }, onCursor: (x) => this.page.store.set({ cur: [this.state.cur[0], x] }, { undo: false }) });
    const rules = scrolling(word('scaling.rules'));
    one.chart.figure.extra.append(rules);
    return { ...one, rules };
  }

  /* ---- lengths and factor ---- */

  factorOf(slot, config) { return ownScaling(this.page, slot, config)?.factor ?? FACTOR; }

  lengths(slot, config) {
    const { train, eval: beyond } = this.state.own;
    const factor = this.factorOf(slot, config);
    const known = train ?? lengthOf(ownScaling(this.page, slot, config)) ?? lengthNoted(this.page, config);
    const trained = Math.max(1, Number(known ?? TRAIN));
    const most = Math.max(trained, Number(beyond ?? Math.round(trained * factor)));
    return { isAssumed: known === null, factor, train: trained, eval: most };
  }

  #setLength(key, value) {
    const front = this.page.front();
    const now = this.lengths(front, this.page.config(front));
    const own = { ...this.state.own, [key]: String(tidy(Math.min(Math.max(value, 1), LENGTH_MAX))) };
    if (key === 'eval' && Number(own.eval) < now.train) own.eval = String(now.train);
    if (key === 'train' && own.eval && Number(own.train) > Number(own.eval)) own.eval = own.train;
    this.page.store.set({ own }, { undo: key });
  }

  /* The factor is part of a configuration; one without scaling gets the catalogue's first rule that takes a factor. */
  #setFactor(factor) {
    const configs = this.page.configs().map(([slot, config]) => {
      const row = scalingRow(this.page, config);
      if (!row) return [slot, config];
      const [, plain] = row.parameters.find((one) => one.name === 'type').values;
      return [slot, { ...config, scaling: { ...ownScaling(this.page, slot, config) ?? { type: plain }, factor } }];
    });
    this.page.store.set({ configs: Object.fromEntries(configs), emptied: false }, { undo: 'factor' });
  }

  #config(slot) { return this.page.configs().find(([one]) => one === slot)?.[1]; }

  /* ---- figures ---- */

  update() {
    this.askEach('wavelengths', (...all) => this.#job(...all), this.state.own);
    const front = this.page.front();
    if (!front) return;
    const shown = this.lengths(front, this.page.config(front));
    for (const key of ['train', 'eval']) {
      this.sliders[key].show({ value: shown[key], min: LENGTH_MIN, max: LENGTH_MAX });
    }
    const usual = scalingRow(this.page, this.page.config(front))?.parameters.find((row) => row.name === 'factor')?.usual
      ?? [1, 64];
    this.factor.show({
      value: shown.factor, min: usual[0], max: usual[1], disabled: !scalingRow(this.page, this.page.config(front)),
    });
    for (const { chart } of this.slots.values()) chart.setCursor(this.state.cur[1]);
  }

  async #job(get, slot, config) {
    if (!this.page.catalogue.schemeOf(config)) await this.#learn(get, slot, config);
    const lengths = this.lengths(slot, config);
    const picture = await askScalings(this.page, get, slot, config, lengths);
    if (this.slots.has(slot)) this.#draw(slot, { ...picture, lengths });
  }

  /* What a config.json means only the server can tell. */
  async #learn(get, slot, config) {
    const meta = await get({ path: '/analyze', body: { ...config, metrics: ['wavelengths'], outputs: [] } });
    this.page.catalogue.learn?.(config, meta.configs[0]);
    this.page.publish?.(slot, { config: meta.configs[0], tensors: {} });
  }

  #draw(slot, picture) {
    const one = this.slots.get(slot);
    one.picture = picture;
    for (const [other] of this.drawn()) this.#drawOne(other);
    this.#explain(one, picture);
    one.chart.figure.drawn();
  }

  /* All figures have one range. */
  #range() {
    const lists = this.drawn().flatMap(([, { picture: { lines, lengths } }]) => [
      ...lines.map((line) => line.wavelength), [lengths.train, lengths.eval],
    ]);
    return roomy(extent(lists, 'log'), 'log');
  }

  #drawOne(slot) {
    const { chart, picture } = this.slots.get(slot);
    const { lines, own, lengths, scheme } = picture;
    const others = this.drawn().filter(([other]) => other !== slot);
    /* Among several configurations their colours, the first of the list, are their own rules'. */
    const taken = others.length && others.length + 1;
    const series = lines.map((line) => ({
      id: `${slot}:${line.type}`, name: line.type, color: (theme) => colorOf(line.place + taken, theme),
      dash: dashOf(line.place + taken), width: line.type === own ? 3 : 2,
      x: Array.from(line.wavelength, (_, pair) => pair), y: line.wavelength,
      ...taken && line.type === own && lookOf(slot),
    }));
    const mark = (key) => ({
      axis: 'y', at: lengths[key], label: markText(key, lengths),
      handle: { lo: LENGTH_MIN, hi: LENGTH_MAX, move: (value) => this.#setLength(key, value) },
    });
    chart.draw([...series, ...others.map((other) => this.#lineOf(...other))], {
      xLabel: word('scaling.pair'), yLabel: word('scaling.wavelength'), whole: true, yRange: this.#range(),
      marks: [...others.map((other) => this.#markOf(...other)), mark('train'), mark('eval')],
      bands: [{ axis: 'y', from: lengths.train, to: lengths.eval }],
      cell: (line, i) => ({ row: i }),
    });
    chart.rename(word('scaling.label', { scheme, slot, n: lines[0].wavelength.length }),
      this.page.calledBy(slot), 'wavelength');
  }

  /* Of another configuration its own rule and the length of its training: all on one axis. */
  #lineOf(slot, { picture: { lines: [line], own } }) {
    return {
      id: `${slot}:${own}`, name: `${slot} ${own}`, width: 3, ...lookOf(slot),
      x: Array.from(line.wavelength, (_, pair) => pair), y: line.wavelength,
    };
  }

  #markOf(slot, { picture: { lengths } }) {
    return { axis: 'y', at: lengths.train, atEnd: true, label: live(() => `${slot}: ${markText('train', lengths)}`) };
  }

  #explain({ chart, rules }, { lines, own, lengths }) {
    const [{ result }] = lines;
    const values = {
      type: name(own), train: shortDatum(result.train_len, 'train_len'),
      share: shortDatum(result.value, 'value'),
      longest: shortDatum(result.longest, 'longest'),
      factor: short(lengths.factor), eval: short(lengths.eval),
    };
    const first = result.witness && phrase('scaling.witness', {
      pair: datum(result.witness.pair, 'pair'),
      turns: shortDatum(result.witness.turns, 'turns'),
    });
    chart.figure.caption.replaceChildren(phrase('scaling.caption', values), ...first ? [gap(), first] : []);
    const heads = ['type', 'full', 'kept', 'longest', 'attention'].map((key) => word(`scaling.${key}`));
    rules.hidden = lines.length < 2;   /* of one line the caption says all */
    rules.replaceChildren(table(null, columns(heads), lines.map(rowOf)));
  }

  /* ---- for the page ---- */

  request(slot) {
    const config = this.page.config(slot);
    return config ? { path: '/analyze', body: ownRequest(this.page, slot, config, this.lengths(slot, config)) } : null;
  }
}

/* What a line across says; a length that nobody has stated is an assumption. */
const markText = (key, lengths) => live(() => {
  const text = `${word(`scaling.${key}`)} ${short(lengths[key])}`;
  return key === 'train' && lengths.isAssumed ? String(word('scaling.assumed', { text })) : text;
});

/* One rule's numbers, as the server states them. */
function rowOf({ type, result, wavelength }) {
  const number = (value, what) => cell(shortDatum(value, what));
  return row(name(type), [number(result.value, 'value'), cell([datum(result.kept, 'kept'), ` / ${wavelength.length}`]),
    number(result.longest, 'wavelength'), number(result.attention_factor, 'attention_factor')], { 'data-type': type });
}

export default {
  name: 'scaling', path: '/analyze', setsSequence: true,
  example: () => ({ a: { preset: 'llama-3.1', len: 128 } }),
  open: (page, root) => new Scaling(page, root),
};
