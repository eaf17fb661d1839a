/* The view `models`: two models, chosen by name, over one picture: a column of both against position on one axis, their
 * difference below it, and the wavelength of each pair. Where they part stands above (views/parting.js). */
import { Chart } from '../../chart.js';
import { code, make } from '../../dom.js';
import { extent, roomy } from '../../draw/axes.js';
import { shortDatum } from '../../figure.js';
import { PresetChoice } from '../../forms/sources.js';
import { axisName } from '../../heat/beside.js';
import { label, live, phrase, word } from '../../words.js';
import { sliderField } from '../controls.js';
import { appliesTo, colorOfSlot, dashOfSlot } from '../slots.js';
import { askCurves, askWavelengths, differenceOf, runOf, withSequence } from './ask.js';

const SLOTS = ['a', 'b'];
const POSITION_MAX = 131072;
const lookOf = (slot) => ({ color: () => colorOfSlot(slot), dash: dashOfSlot(slot), width: 2 });

class Models {
  #asked = '';
  #curves = null;   /* of askCurves() */
  #waves = null;    /* of askWavelengths() */

  constructor(page, root) {
    Object.assign(this, { page });
    this.names = Object.fromEntries(SLOTS.map((slot) => [slot, new PresetChoice(slot, (value) => value
      && page.setConfig(slot, withSequence({ preset: value }), `${slot}.model`), 'model')]));
    this.position = sliderField({
      name: 'position', text: word('axis.position'), spacing: 'log', move: (row) => this.#point(row, this.column),
    });
    this.columns = sliderField({
      name: 'column', text: word('curves.column'), move: (col) => this.#point(page.store.state.cur[0], col),
    });
    const chart = (slot, key) => new Chart(page, {
      view: 'models', slot, label: word(key),
      onCursor: (x) => this.#point(...slot === 'b' ? [page.store.state.cur[0], x] : [x, this.column]),
    });
    this.charts = {
      both: chart('a', 'models.both'), difference: chart('b-a', 'curves.difference'),
      wavelengths: chart('b', 'scaling.wavelength'),
    };
    const { both, difference, wavelengths } = this.charts;
    wavelengths.scales.y = 'log';
    root.append(make('div', { class: 'model-names' }, SLOTS.map((slot) => make('div', { 'data-config': slot },
        make('span', { class: 'slot', 'aria-hidden': 'true' }, slot), this.names[slot].element))),
      make('div', { class: 'model-pictures' },
        make('div', null, both.figure.element,
          make('div', { class: 'view-controls' }, this.position.element, this.columns.element),
          difference.figure.element),
        wavelengths.figure.element));
  }

  get column() { return this.page.store.state.cur[1]; }

  #point(row, col) { this.page.store.set({ cur: [Math.round(row), Math.round(col)] }, { undo: 'cur' }); }

  update({ cur: [row, col] }) {
    const { page } = this;
    for (const slot of SLOTS) {
      const config = page.config(slot);
      this.names[slot].show({ value: config?.preset, isOwn: Boolean(config?.preset) });
      if (config && !config.preset) this.names[slot].input.placeholder = label(page.calledBy(slot));   /* a file */
    }
    this.position.show({ value: Math.max(1, row), min: 1, max: POSITION_MAX, step: 1 });
    this.columns.show({ value: col, min: 0, max: Math.max(1, (this.#curves?.cols ?? 64) - 1), step: 1 });
    const configs = SLOTS.map((slot) => page.config(slot));
    if (!configs.every(Boolean)) {
      for (const one of Object.values(this.charts)) one.figure.refuse(word('models.two'));
      return;
    }
    const run = runOf(row);
    const asked = JSON.stringify([configs, run, col, page.store.state.out]);
    if (asked !== this.#asked) this.#ask(configs, run, col);
    this.#asked = asked;
    this.#showCursor();
  }

  #ask(configs, run, col) {
    const { page, charts } = this;
    charts.both.figure.ask(async (get, stage) => {
      const found = await askCurves(page, get, configs.map(withSequence), { run, col, out: page.store.state.out });
      if (!found) return this.#lacks(charts.both, word('heat.noCommon'));
      this.#curves = found;
      this.#drawCurves();
      if (!stage.over()) await this.#askWaves(get, found.resolved);
    });
  }

  #lacks(chart, text) {
    for (const one of [chart, this.charts.difference]) one.figure.refuse(text);
  }

  async #askWaves(get, resolved) {
    const { figure } = this.charts.wavelengths;
    const waves = await askWavelengths(this.page, get, SLOTS.map((slot) => this.page.config(slot)), resolved);
    if (!waves) return figure.refuse(appliesTo(this.page.catalogue.metric('wavelengths')));
    this.charts.wavelengths.draw(
      waves.map((y, i) => ({ id: `${SLOTS[i]}:wavelength`, name: this.#called(SLOTS[i]), ...lookOf(SLOTS[i]),
        x: Array.from(y, (_, pair) => pair), y })),
      {
        xLabel: word('axis.pair'), yLabel: word('scaling.wavelength'), whole: true,
        cell: (_, i) => ({ row: i, col: 0 }),
      }
    );
    this.#waves = waves;
    figure.drawn();
    this.#showCursor();
  }

  /* Texts are written again after their configuration has gone: until they are gone too. */
  #called(slot) { return live(() => String(label(this.page.calledBy(slot) ?? { name: slot }))); }

  /* ---- drawing ---- */

  #drawCurves() {
    const { x, lines, axis, output } = this.#curves;
    const { both, difference } = this.charts;
    const col = Math.min(this.column, this.#curves.cols - 1);
    const series = SLOTS.map((slot) => ({ id: `${slot}:${col}`, name: this.#called(slot), ...lookOf(slot), x,
      y: lines[slot] }));
    const picture = { xLabel: word('axis.position'), whole: true, stops: x, xRange: [x[0], x.at(-1)],
      cell: (_, i) => ({ row: x[i], col }) };
    both.draw(series, { ...picture, yLabel: live(() => `${output}, ${axisName(axis)} ${col}`),
      yRange: roomy(extent(series.map((line) => line.y))) });
    const y = differenceOf(lines);
    difference.draw([{ id: `b-a:${col}`, name: 'b − a', color: () => colorOfSlot('b-a'), x, y }],
      { ...picture, yLabel: word('curves.difference') });
    for (const chart of [both, difference]) chart.figure.drawn();
    this.update(this.page.store.state);
  }

  #showCursor() {
    if (!this.#curves) return;
    const { x, lines, output } = this.#curves;
    const { both, difference, wavelengths } = this.charts;
    const [row, col] = this.page.store.state.cur;
    for (const chart of [both, difference]) chart.setCursor(row);
    wavelengths.setCursor(col);
    const i = x.indexOf(row);
    if (i >= 0) {
      both.figure.caption.replaceChildren(phrase('models.at', {
        output: code(output), x: String(row), col: String(col), a: this.#named('a'), b: this.#named('b'),
        first: shortDatum(lines.a[i], 'value-a', 5), second: shortDatum(lines.b[i], 'value-b', 5),
      }));
      difference.figure.caption.replaceChildren(phrase('models.apart',
        { value: shortDatum(lines.b[i] - lines.a[i], 'difference', 5), x: String(row) }));
    }
    const [a, b] = this.#waves ?? [];
    if (a?.[col] && b?.[col]) wavelengths.figure.caption.replaceChildren(phrase('models.waves', {
      col: String(col), a: this.#named('a'), b: this.#named('b'), first: shortDatum(a[col], 'wavelength-a', 6),
      second: shortDatum(b[col], 'wavelength-b', 6),
    }));
  }

  #named(slot) { return make('strong', { translate: 'no' }, this.#called(slot)); }

  /* ---- for the page ---- */

  request(slot) {
    const config = this.page.config(slot);
    if (!config || !this.#curves) return null;
    const { x, output } = this.#curves;
    const { path, body } = this.#curves.requestOf(withSequence(config));
    return { path, body: { ...body, positions: [x[0], x.at(-1)], outputs: [output] } };
  }

  close() { for (const chart of Object.values(this.charts)) chart.close(); }
}

export default {
  name: 'models', path: '/encode',
  example: () => ({ a: withSequence({ preset: 'llama-3.1' }), b: withSequence({ preset: 'qwen2.5' }) }),
  open: (page, root) => new Models(page, root),
};
