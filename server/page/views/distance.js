/* Distance: the product of two rows against how far apart they are, and all products as a matrix. */
import { labelsOf } from '../catalogue.js';
import { code, make } from '../dom.js';
import { extent, roomy } from '../draw/axes.js';
import { datum, shortDatum } from '../figure.js';
import { frontChooser } from '../heat/toolbar.js';
import { HeatMap, Scale } from '../heat/heatmap.js';
import { gap, phrase, word } from '../words.js';
import { bodyFor } from './parts.js';
import { choice, sliderField } from './controls.js';
import { Charts } from './charts.js';
import { Slots, appliesTo, colorOfSlot, dashOfSlot, wantedOf } from './slots.js';

const GRAM_MAX = 256;     /* rows of the matrix: more would only be more of the same */
const OTHER_BASE = 500;   /* until one is chosen */
const DOTS_MAX = 96;

const METRIC = 'similarity';

class Distance extends Charts {
  constructor(page, root) {
    super(page, 'distance');
    this.pairing = choice({
      name: 'pairing', text: word('distance.pairing'), pick: (pairing) => page.setOwn({ pairing }, 'pairing'),
    });
    this.distance = sliderField({ name: 'm', text: word('view.distance'), move: (m) => this.#setDistance(m) });
    this.base = sliderField({
      name: 'other_base', text: word('distance.other'), spacing: 'log', whole: false,
      move: (base) => this.#setOtherBase(base),
    });
    this.chooser = frontChooser(page);
    const maps = make('div', { class: 'figures' });
    this.scale = new Scale();
    this.maps = new Slots(maps, (slot) => this.#buildMap(slot));
    root.append(
      make('div', { class: 'view-controls' }, this.chooser.element, this.pairing.element, this.distance.element,
        this.base.element),
      this.place, maps
    );
  }

  build(slot) { return super.build(slot, { onCursor: (x) => this.#setDistance(x) }); }

  #buildMap(slot) {
    const map = new HeatMap(this.page,
      { view: 'distance', slot, scale: this.scale, label: word('distance.gram'), quiet: true });
    return { map, element: map.figure.element, close: () => map.close() };
  }

  /* ---- state ---- */

  get pairingNow() { return this.state.own.pairing ?? 'paired'; }

  /* The distance of the two rows that the cursor of the matrix is at. */
  get m() {
    const [row, col] = this.state.cur;
    return Math.abs(row - col);
  }

  #setDistance(m) { this.page.store.set({ cur: [Math.round(m), 0] }, { undo: false }); }

  #setOtherBase(base) { this.page.changeAll((config) => ({ ...config, other_base: base }), 'other_base'); }

  /* The metric's own parameters belong to no other path: here they are added again. */
  #body(config, more) {
    const pairing = this.pairingNow === 'paired' ? {} : { pairing: this.pairingNow };
    const other = this.pairingNow === 'mismatched' ? { other_base: config.other_base ?? OTHER_BASE } : {};
    return {
      metrics: [METRIC], outputs: [METRIC], ...bodyFor(this.page.catalogue, '/analyze', config), ...pairing, ...other,
      ...more,
    };
  }

  /* The first rows of a long run say all that its matrix has to say. */
  #gramSource(config) {
    const len = config.len > GRAM_MAX ? { len: GRAM_MAX } : {};
    return {
      path: '/analyze', body: this.#body(config, { outputs: ['gram'], ...len }), output: 'gram', axes: ['query', 'key'],
      called: word('distance.products'),
    };
  }

  /* ---- figures ---- */

  update() {
    const wanted = wantedOf(this.page);
    const slots = wanted.map(([slot]) => slot);
    this.slots.sync(slots);
    this.#syncMaps();
    this.#updateControls();
    if (this.isNew(wanted, this.pairingNow)) for (const [slot, configs] of wanted) this.#ask(slot, configs);
    this.#showCursor();
  }

  /* A matrix where there is a line. */
  #syncMaps() { this.maps.sync(this.drawn().map(([slot]) => slot)); }

  #updateControls() {
    this.chooser.update();
    const row = this.page.catalogue.metric(METRIC).parameters.find((one) => one.name === 'pairing');
    this.pairing.show(row.values.map((value) => [value, code(value)]), this.pairingNow);
    const longest = Math.max(1, ...this.slots.values().map(({ picture }) => (picture?.x.length ?? 1) - 1));
    this.distance.show({ value: this.m, min: 0, max: longest });
    this.base.element.hidden = this.pairingNow !== 'mismatched';
    this.base.show({ value: this.front()?.other_base ?? OTHER_BASE, min: 10, max: 1e6 });
  }

  #ask(slot, configs) {
    this.slots.get(slot).chart.figure.ask(async (get, stage) => {
      const answers = await Promise.all(
        configs.map((config) => get({ path: '/analyze', body: this.#body(config) }, { as: 'json' }))
          .map((answer) => this.#orRefuse(slot, answer))
      );
      if (!answers.every(Boolean) || !this.slots.has(slot)) return;
      this.#draw(slot, pictureOf(answers));
      if (slot !== 'b-a') this.page.publish?.(slot, { config: answers[0].configs[0], tensors: {} });
      if (!stage.over()) {
        this.maps.get(slot)?.map.show(
          configs.length === 2
            ? { of: configs.map((config) => this.#gramSource(config)) }
            : { ...this.#gramSource(configs[0]), caption: 'distance.gramCaption' }
        );
      }
    });
  }

  /* Where the metric does not apply its row says to what it does. */
  async #orRefuse(slot, answer) {
    try {
      return await answer;
    } catch (error) {
      if (error.problem?.pointer !== '/metrics/0') throw error;
      const line = this.slots.get(slot);
      if (line) line.picture = null;
      line?.chart.figure.refuse(appliesTo(this.page.catalogue.metric(METRIC)));
      this.#syncMaps();
      return null;
    }
  }

  #draw(slot, picture) {
    const one = this.slots.get(slot);
    one.picture = picture;
    this.#syncMaps();
    for (const [other] of this.#alike(slot)) this.#drawOne(other);
    one.chart.figure.drawn();
    this.#updateControls();
    this.#showCursor();
  }

  /* The figures whose numbers compare with those of this one: a difference stands alone. */
  #alike(slot) { return this.drawn().filter(([other]) => (other === 'b-a') === (slot === 'b-a')); }

  /* The figure's own line, and those of the others thin behind it: all figures have one range. */
  #drawOne(slot) {
    const drawn = this.#alike(slot);
    const ordered = [...drawn.filter(([other]) => other === slot), ...drawn.filter(([other]) => other !== slot)];
    const series = ordered.map(([other, { picture: { x, y, scheme } }]) => ({
      id: `${other}:similarity`, name: `${other} ${scheme}`, color: () => colorOfSlot(other), dash: dashOfSlot(other),
      width: other === slot ? 2.5 : 1, x, y,
      dots: other === slot && x.length <= DOTS_MAX ? x.map((at) => [at, y[at]]) : null,
    }));
    const { chart, picture } = this.slots.get(slot);
    chart.draw(series, {
      xLabel: word('axis.distance'), yLabel: word(slot === 'b-a' ? 'curves.difference' : 'distance.product'),
      whole: true,
      yRange: roomy(extent(series.map((line) => line.y))), marks: this.#marks(),
      cell: (line, i) => ({ row: i, col: 0 }),
    });
    chart.rename(word('distance.label', { scheme: picture.scheme, slot, n: picture.x.length }),
      this.page.calledBy(slot), 'similarity');
  }

  #marks() {
    return [{ axis: 'x', at: this.m, handle: { lo: 0, move: (value) => this.#setDistance(value) } }];
  }

  #showCursor() {
    for (const [slot, { chart, picture }] of this.drawn()) {
      const m = Math.min(this.m, picture.x.length - 1);
      if (picture.m !== m) this.#drawOne(slot);
      picture.m = m;
      chart.setCursor(m);
      chart.figure.caption.replaceChildren(...captionOf(slot, picture, m));
    }
  }

  /* ---- for the page ---- */

  request(slot) {
    const config = this.page.config(slot);
    return config ? { path: '/analyze', body: this.#body(config) } : null;
  }

  close() {
    super.close();
    this.maps.close();
  }
}

/* One answer as it is; of two the first less the second, as far as both go. */
function pictureOf(answers) {
  const [first, second] = answers.map(({ tensors }) => tensors['similarity.0'].data.map(Number));
  const y = second ? first.slice(0, second.length).map((value, i) => value - second[i]) : first;
  const scheme = [...new Set(answers.map(({ configs }) => configs[0].scheme))].join(' − ');
  return { scheme, x: y.map((_, i) => i), y, result: second ? null : answers[0].results[0].similarity };
}

function captionOf(slot, { scheme, y, result }, m) {
  const value = shortDatum(y[m], slot === 'b-a' ? 'difference' : 'similarity', 6);
  const at = phrase(slot === 'b-a' ? 'distance.atDifference' : 'distance.at',
    { m: String(m), value, scheme: labelsOf(scheme) });
  if (!result) return [at];
  const minimum = phrase('distance.minimum', {
    m: datum(result.minimum.distance, 'distance'),
    value: shortDatum(result.minimum.value, 'minimum', 5),
  });
  const spread = phrase(result.value === 0 ? 'distance.only' : 'distance.spread',
    { value: shortDatum(result.value, 'spread') });
  return [at, gap(), minimum, gap(), spread];
}

export default {
  name: 'distance', path: '/analyze',
  example: () => ({ a: { scheme: 'sinusoidal', dim: 128, len: 64 } }),
  open: (page, root) => new Distance(page, root),
};
