/* Trajectory: three columns of an encoding as the three coordinates of a path, around which a camera turns. */
import { code, make, name } from '../dom.js';
import { Refusal } from '../ask.js';
import { extent, roomy } from '../draw/axes.js';
import { short } from '../draw/numbers.js';
import { datum } from '../figure.js';
import { frontChooser } from '../heat/toolbar.js';
import { phrase, word } from '../words.js';
import { askCurve, curveOutputs, isCurve, runOf } from './curve_asking.js';
import { bodyFor, cannot } from './parts.js';
import { Player, choice, sliderField } from './controls.js';
import { Charts } from './charts.js';
import { wantedOf } from './slots.js';
import { Path } from './trajectory_path.js';

const START = { cols: [0, 1, 2], spin: 30 };
const AXES = ['x', 'y', 'z'];
const POSITIONS_MAX = 512;   /* of a longer run: the picture would only get denser */
const STEP_MS = 40;
const TURN = 1.5;            /* degrees a picture of the player */
const METRIC = 'step';

class Trajectory extends Charts {
  #width = 1;                /* columns to choose from, once the server has said */

  constructor(page, root) {
    super(page, 'trajectory');
    this.output = choice({ name: 'out', text: word('heat.output'), pick: (out) => page.store.set({ out }, { undo: 'out' }) });
    this.sliders = AXES.map((axis, k) => sliderField({ name: axis, text: word(`trajectory.${axis}`), move: (col) => this.#setColumn(k, col) }));
    this.position = sliderField({ name: 'cur', text: word('trajectory.row'), move: (row) => this.#setRow(row) });
    this.spin = sliderField({ name: 'spin', text: word('trajectory.spin'), whole: false, move: (spin) => page.setOwn({ spin: String(spin) }, 'spin') });
    this.player = new Player({ step: () => this.#turn(TURN), ms: STEP_MS });
    this.chooser = frontChooser(page);
    root.append(make('div', { class: 'view-controls' }, this.chooser.element, this.output.element, [...this.sliders, this.spin, this.position].map(({ element }) => element), this.player.element), this.place);
  }

  build(slot) {
    const path = new Path(this.page, slot, { turn: (by) => this.#turn(by), step: (by) => this.#setRow(this.state.cur[0] + by), play: () => this.player.toggle() });
    return { path, picture: null, element: path.element, close: () => path.close() };
  }

  /* ---- state ---- */

  get spinNow() { return Number(this.state.own.spin ?? START.spin); }

  columns() {
    const given = this.state.own.cols?.split(',').map(Number) ?? [];
    return START.cols.map((col, k) => given[k] ?? col);
  }

  #setColumn(k, col) { this.page.setOwn({ cols: this.columns().map((one, i) => i === k ? col : one).join(',') }, `cols${k}`); }

  /* Within a turn: what comes round is the same picture. */
  #turn(by) { this.page.setOwn({ spin: String(Math.round((this.spinNow + by + 720) % 360 * 100) / 100) }, 'spin'); }

  #setRow(row) { this.page.store.set({ cur: [Math.max(0, Math.min(Math.round(row), this.#last())), this.state.cur[1]] }, { undo: false }); }

  #last() { return Math.max(0, ...this.drawn().map(([, { picture }]) => picture.dots.length - 1)); }

  outOf(config) {
    const rows = config ? curveOutputs(this.page, config) : [];
    return (rows.find((row) => row.name === this.state.out) ?? rows[0])?.name ?? null;
  }

  #run(config) { return runOf(config, this.page.catalogue.sequenceRows().map((one) => one.name)); }

  #window(config) {
    const { offset, len } = this.#run(config) ?? { offset: 0, len: POSITIONS_MAX };
    return [offset, offset + Math.min(len, POSITIONS_MAX) - 1];
  }

  /* ---- figures ---- */

  update() {
    const wanted = wantedOf(this.page);
    this.slots.sync(wanted.map(([slot]) => slot));
    this.#updateControls();
    if (this.isNew(wanted, this.columns(), this.state.out)) for (const [slot, configs] of wanted) this.#ask(slot, configs);
    this.#drawAll();
  }

  #updateControls() {
    const front = this.front();
    const outputs = front ? curveOutputs(this.page, front) : [];
    this.chooser.update();
    this.output.element.hidden = outputs.length < 2;
    this.output.show(outputs.map((row) => [row.name, code(row.name)]), this.outOf(front));
    this.columns().forEach((value, k) => this.sliders[k].show({ value, min: 0, max: Math.max(2, this.#width - 1) }));
    this.spin.show({ value: this.spinNow, min: 0, max: 360 });
    this.position.show({ value: Math.min(this.state.cur[0], this.#last()), min: 0, max: this.#last() });
  }

  #ask(slot, configs) {
    const { figure } = this.slots.get(slot).path;
    const other = configs.map((config) => this.page.catalogue.schemeOf(config)).find((row, i) => row && !curveOutputs(this.page, configs[i]).length);
    if (other) return this.#refuse(slot, cannot(this.page.catalogue, 'curves.cannot', other.name, (row) => row.outputs.some((one) => one.default && isCurve(one))));
    const columns = this.columns();
    figure.ask(async (get, stage) => {
      let drawn = null;
      await askCurve(this.page, get, stage, {
        slot, configs, columns, window: this.#window(configs.at(-1)), width: POSITIONS_MAX, out: (config) => this.outOf(config), run: (config) => this.#run(config),
        draw: (picture) => { drawn = this.slots.has(slot) && this.#take(slot, picture, columns); },
      });
      if (!drawn || configs.length === 2 || stage.over()) return;
      drawn.step = await this.#stepOf(get, configs[0]);
      this.#drawAll();
    });
  }

  /* Largest and mean step, null where the metric does not apply. */
  async #stepOf(get, config) {
    try {
      const { results } = await get({ path: '/analyze', body: { ...bodyFor(this.page.catalogue, '/analyze', config), metrics: [METRIC], outputs: [] } }, { as: 'json' });
      return results[0][METRIC];
    } catch (error) {
      if (error instanceof Refusal && [413, 422].includes(error.status)) return null;
      throw error;
    }
  }

  #refuse(slot, text) {
    const one = this.slots.get(slot);
    one.picture = null;
    one.path.figure.refuse(text);
  }

  /* One request's answer, its three columns as points; null where it has not three. */
  #take(slot, picture, columns) {
    const one = this.slots.get(slot);
    const three = columns.map((col) => picture.columns.find((curve) => curve.col === col));
    if (three.some((curve) => !curve)) {
      this.#refuse(slot, word('trajectory.narrow', { scheme: picture.scheme, col: columns[three.findIndex((curve) => !curve)] }));
      return null;
    }
    const of = (curves) => curves[0].map(([x], i) => [x, curves.map((curve) => curve[i][1])]);
    if (picture.width) this.#width = picture.width;
    one.picture = { ...picture, cols: columns, points: of(three.map(({ x, y }) => Array.from(x, (at, i) => [at, y[i]]))), dots: of(three.map(({ dots }) => dots)), step: one.picture?.step };
    this.#drawAll();
    one.path.figure.drawn();
    this.#updateControls();
    return one.picture;
  }

  /* All figures have one range and one camera. */
  #drawAll() {
    const ranges = { plain: this.#range((slot) => slot !== 'b-a'), difference: this.#range((slot) => slot === 'b-a') };
    for (const [slot, { path, picture }] of this.drawn()) {
      const at = picture.dots[Math.min(this.state.cur[0], picture.dots.length - 1)]?.[0];
      path.show({ ...picture, at, spin: this.spinNow, range: slot === 'b-a' ? ranges.difference : ranges.plain });
      path.rename(word('trajectory.label', { scheme: picture.scheme, output: picture.output, cols: picture.cols.join(', '), slot }), this.page.catalogue.scheme(picture.scheme), picture.output);
      path.figure.caption.replaceChildren(...captionOf(picture, at));
      path.figure.fillTable();
    }
  }

  #range(which) {
    const pictures = this.drawn().filter(([slot]) => which(slot)).map(([, { picture }]) => picture);
    if (pictures.length && pictures.every(({ range }) => range)) return extent(pictures.map(({ range }) => range));
    return roomy(extent(pictures.flatMap(({ points }) => points.map(([, values]) => values))));
  }

  /* ---- for the page ---- */

  request(slot) {
    const config = this.page.config(slot);
    const out = config && this.outOf(config);
    return out ? { path: '/encode', body: { ...bodyFor(this.page.catalogue, '/encode', config), outputs: [out] } } : null;
  }

  close() {
    this.player.close();
    super.close();
  }
}

function captionOf({ scheme, output, cols, dots, run, largest, step }, at) {
  const parts = [phrase('trajectory.caption', { scheme: name(scheme), output: code(output), cols: name(cols.join(', ')) })];
  if (run?.len > dots.length) parts.push(' ', phrase('trajectory.first', { n: String(dots.length) }));
  const [, values] = dots.find(([x]) => x === at) ?? [];
  if (values) parts.push(' ', phrase(run ? 'trajectory.at' : 'trajectory.atRow', { x: short(at, 8), values: make('span', { translate: 'no' }, values.flatMap((value, k) => [k ? ', ' : '', datum(value, 'value', short(value, 5))])) }));
  if (largest) parts.push(' ', phrase('curves.largest', { value: datum(largest.value, 'difference', short(largest.value)), x: short(largest.x, 6), col: String(largest.col) }));
  else if (step) {
    const numbers = { mean: datum(step.mean, 'mean', short(Number(step.mean), 5)), largest: datum(step.value, 'step', short(Number(step.value), 5)) };
    parts.push(' ', phrase('trajectory.step', numbers), ...step.witness?.rows ? [' ', phrase('trajectory.witness', { i: String(step.witness.rows[0]), j: String(step.witness.rows[1]) })] : []);
  }
  return parts;
}

export default {
  name: 'trajectory', path: '/encode',
  example: () => ({ a: { scheme: 'sinusoidal', dim: 32, len: 64 } }),
  open: (page, root) => new Trajectory(page, root),
};
