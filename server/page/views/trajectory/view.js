/* Trajectory: three columns of an encoding as the three coordinates of a path, around which a camera turns. */
import { Refusal } from '../../ask.js';
import { labelsOf } from '../../catalogue.js';
import { code, make, name } from '../../dom.js';
import { extent, roomy } from '../../draw/axes.js';
import { short } from '../../draw/numbers.js';
import { shortDatum } from '../../figure.js';
import { frontChooser } from '../../heat/toolbar.js';
import { gap, phrase, word } from '../../words.js';
import { Player, choice, sliderField } from '../controls.js';
import { ColumnCharts, askCurve } from '../curves/ask.js';
import { bodyFor } from '../parts.js';
import { wantedOf } from '../slots.js';
import { Path } from './draw.js';

const START = { cols: [0, 1, 2], spin: 30 };
const AXES = ['x', 'y', 'z'];
const POSITIONS_MAX = 512;   /* of a longer run: the picture would only get denser */
const STEP_MS = 40;
const TURN = 1.5;            /* degrees a picture of the player */
const METRIC = 'step';

class Trajectory extends ColumnCharts {
  #width = 1;                /* columns to choose from, once the server has said */

  constructor(page, root) {
    super(page, 'trajectory');
    this.choice = choice({
      name: 'out', text: word('heat.output'), pick: (out) => page.store.set({ out }, { undo: 'out' }),
    });
    this.sliders = AXES.map((axis, k) => sliderField(
      { name: axis, text: word(`trajectory.${axis}`), move: (col) => this.#setColumn(k, col) }
    ));
    this.spin = sliderField({
      name: 'spin', text: word('trajectory.spin'), whole: false,
      move: (spin) => page.setOwn({ spin: String(spin) }, 'spin'),
    });
    this.player = new Player({ step: () => this.#turn(TURN), ms: STEP_MS });
    this.chooser = frontChooser(page);
    root.append(
      make('div', { class: 'view-controls' }, this.chooser.element, this.choice.element,
        [...this.sliders, this.spin].map(({ element }) => element), this.player.element),
      this.place
    );
  }

  build(slot) {
    const path = new Path(this.page, slot, {
      turn: (by) => this.#turn(by), step: (by) => this.#setRow(this.state.cur[0] + by),
      choose: (row) => this.#setRow(row), play: () => this.player.toggle(),
    });
    return { path, picture: null, element: path.element, close: () => path.close() };
  }

  /* ---- state ---- */

  get spinNow() { return Number(this.state.own.spin ?? START.spin); }

  columns() {
    const given = this.state.own.cols?.split(',').map(Number) ?? [];
    return START.cols.map((col, k) => given[k] ?? col);
  }

  #setColumn(k, col) {
    this.page.setOwn({ cols: this.columns().map((one, i) => i === k ? col : one).join(',') }, `cols${k}`);
  }

  /* Within a turn: what comes round is the same picture. */
  #turn(by) { this.page.setOwn({ spin: String(Math.round((this.spinNow + by + 720) % 360 * 100) / 100) }, 'spin'); }

  #setRow(row) {
    this.page.store.set({ cur: [Math.max(0, Math.min(Math.round(row), this.#last())), this.state.cur[1]] },
      { undo: false });
  }

  #last() { return Math.max(0, ...this.drawn().map(([, { picture }]) => picture.dots.length - 1)); }

  #window(config) {
    const { offset, len } = this.run(config) ?? { offset: 0, len: POSITIONS_MAX };
    return [offset, offset + Math.min(len, POSITIONS_MAX) - 1];
  }

  /* ---- figures ---- */

  update() {
    const wanted = wantedOf(this.page);
    this.slots.sync(wanted.map(([slot]) => slot));
    this.#updateControls();
    if (this.isNew(wanted, this.columns(), this.state.out)) {
      for (const [slot, configs] of wanted) this.#ask(slot, configs);
    }
    this.#drawAll();
  }

  #updateControls() {
    const outputs = this.outputs();
    this.chooser.update();
    this.choice.element.hidden = outputs.length < 2;
    this.choice.show(outputs.map((row) => [row.name, code(row.name)]), this.output(this.front()));
    this.columns().forEach((value, k) => this.sliders[k].show({ value, min: 0, max: Math.max(2, this.#width - 1) }));
    this.spin.show({ value: this.spinNow, min: 0, max: 360 });
  }

  #ask(slot, configs) {
    const { figure } = this.slots.get(slot).path;
    const why = this.whyNot(configs);
    if (why) {
      this.slots.get(slot).picture = null;
      return figure.refuse(why);
    }
    const columns = this.columns();
    figure.ask(async (get, stage) => {
      let drawn = null;
      await askCurve(this.page, get, stage, {
        slot, configs, columns, window: this.#window(configs.at(-1)), width: POSITIONS_MAX,
        out: (config) => this.output(config), run: (config) => this.run(config),
        draw: (picture) => { drawn = this.slots.has(slot) && this.#setPicture(slot, picture, columns); },
      });
      if (!drawn || configs.length === 2 || stage.over()) return;
      drawn.step = await this.#stepOf(get, configs[0]);
      this.#drawAll();
    });
  }

  /* Largest and mean step, null where the metric does not apply. */
  async #stepOf(get, config) {
    try {
      const { results } = await get({
        path: '/analyze',
        body: { ...bodyFor(this.page.catalogue, '/analyze', config), metrics: [METRIC], outputs: [] },
      }, { as: 'json' });
      return results[0][METRIC];
    } catch (error) {
      if (error instanceof Refusal && [413, 422].includes(error.status)) return null;
      throw error;
    }
  }

  /* One answer, its three columns as points; a column that is not there gives way to the first. */
  #setPicture(slot, picture, columns) {
    const one = this.slots.get(slot);
    const three = columns.map((col) => picture.columns.find((curve) => curve.col === col) ?? picture.columns[0]);
    const of = ([across, ...others]) =>
      across.map(([x, value], i) => [x, [value, ...others.map((curve) => curve[i][1])]]);
    this.#width = picture.width ?? this.#width;
    one.picture = {
      ...picture, cols: three.map(({ col }) => col),
      points: of(three.map(({ x, y }) => Array.from(x, (at, i) => [at, y[i]]))),
      dots: of(three.map(({ dots }) => dots)), step: one.picture?.step,
    };
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
      path.rename(
        word('trajectory.label',
          { scheme: picture.scheme, output: picture.output, cols: picture.cols.join(', '), slot }),
        this.page.calledBy(slot), picture.output
      );
      path.figure.caption.replaceChildren(...captionOf(picture, at));
      path.figure.fillTable();
    }
  }

  #range(which) {
    const pictures = this.drawn().filter(([slot]) => which(slot)).map(([, { picture }]) => picture);
    if (pictures.length && pictures.every(({ range }) => range)) return extent(pictures.map(({ range }) => range));
    return roomy(extent(pictures.flatMap(({ points }) => points.map(([, values]) => values))));
  }

  close() {
    this.player.close();
    super.close();
  }
}

function captionOf({ scheme, output, cols, dots, run, largest, step }, at) {
  const parts = [
    phrase('trajectory.caption', { scheme: labelsOf(scheme), output: code(output), cols: name(cols.join(', ')) }),
  ];
  if (run?.len > dots.length) parts.push(gap(), phrase('trajectory.first', { n: String(dots.length) }));
  const [, values] = dots.find(([x]) => x === at) ?? [];
  if (values) {
    parts.push(gap(),
      phrase('trajectory.at', {
        x: short(at, 8),
        values: make('span', { translate: 'no' },
          values.flatMap((value, k) => [k ? ', ' : '', shortDatum(value, 'value', 5)])),
      }));
  }
  if (largest) parts.push(gap(),
    phrase('curves.largest', {
      value: shortDatum(largest.value, 'difference'), x: short(largest.x, 6), col: String(largest.col),
    }));
  else if (step) {
    const numbers = {
      mean: shortDatum(step.mean, 'mean', 5),
      largest: shortDatum(step.value, 'step', 5),
    };
    parts.push(gap(), phrase('trajectory.step', numbers));
  }
  return parts;
}

export default {
  name: 'trajectory', path: '/encode',
  example: () => ({ a: { scheme: 'sinusoidal', dim: 32, len: 64 } }),
  open: (page, root) => new Trajectory(page, root),
};
