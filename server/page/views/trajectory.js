/* Trajectory: three columns of an encoding as the three coordinates of a path, around which a camera turns. */
import { Refusal } from '../ask.js';
import { code, copyText, freshId, make, mark, name } from '../dom.js';
import { extent, roomy } from '../draw/axes.js';
import { short } from '../draw/numbers.js';
import { Figure, datum, paintMeasure } from '../figure.js';
import { titleOf } from '../heat/beside.js';
import { frontChooser } from '../heat/toolbar.js';
import { bind, phrase, rewrite, word } from '../words.js';
import { Player, choice, sliderField } from './controls.js';
import { ColumnCharts, askCurve } from './curve_asking.js';
import { bodyFor, fillTable } from './parts.js';
import { wantedOf } from './slots.js';

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
      const { results } = await get(
        {
          path: '/analyze',
          body: { ...bodyFor(this.page.catalogue, '/analyze', config), metrics: [METRIC], outputs: [] },
        },
        { as: 'json' }
      );
      return results[0][METRIC];
    } catch (error) {
      if (error instanceof Refusal && [413, 422].includes(error.status)) return null;
      throw error;
    }
  }

  /* One answer, its three columns as points; a column that is not there gives way to the first. */
  #take(slot, picture, columns) {
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
        this.page.catalogue.scheme(picture.scheme), picture.output
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
    phrase('trajectory.caption', { scheme: name(scheme), output: code(output), cols: name(cols.join(', ')) }),
  ];
  if (run?.len > dots.length) parts.push(' ', phrase('trajectory.first', { n: String(dots.length) }));
  const [, values] = dots.find(([x]) => x === at) ?? [];
  if (values) {
    parts.push(' ',
      phrase('trajectory.at', {
        x: short(at, 8),
        values: make('span', { translate: 'no' },
          values.flatMap((value, k) => [k ? ', ' : '', datum(value, 'value', short(value, 5))])),
      }));
  }
  if (largest) parts.push(' ',
    phrase('curves.largest', {
      value: datum(largest.value, 'difference', short(largest.value)), x: short(largest.x, 6), col: String(largest.col),
    }));
  else if (step) {
    const numbers = {
      mean: datum(step.mean, 'mean', short(Number(step.mean), 5)),
      largest: datum(step.value, 'step', short(Number(step.value), 5)),
    };
    parts.push(' ', phrase('trajectory.step', numbers));
  }
  return parts;
}

/* ---- the figure of one path: a canvas with a cube, the path and the cursor on it, seen without perspective ---- */

const TILT = 20;          /* degrees that the camera looks down */
const ROOM = 300;         /* pixels of the page, before the figure has been laid out */
const HEIGHT_MAX = 440;
const SHARE = 0.58;       /* of half the canvas that half an edge of the cube takes */
const DEGREES = 0.5;      /* that a drag of one pixel turns */
const GRAB = 14;          /* pixels of the page within which a press chooses a dot */
const TABLE_MAX = 32;
const STEPS = {
  ArrowLeft: -1, ArrowRight: 1, '[': -1, ']': 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity,
};
const CORNERS = [0, 1, 2, 3, 4, 5, 6, 7].map((bits) => [bits & 1, bits >> 1 & 1, bits >> 2]);
const EDGES = CORNERS.flatMap((from, i) => [1, 2, 4].filter((bit) => !(i & bit)).map(
  (bit) => [from, CORNERS[i | bit]]
));

class Path {
  #shown = null;          /* { points, dots, cols, range, spin, at } */
  #drag = null;
  #places = [];           /* of the dots, in pixels of the bitmap */

  /* Told of { turn(degrees), step(rows), choose(row), play() }. */
  constructor(page, slot, told) {
    Object.assign(this, { page, slot, told });
    this.figure = new Figure(page, { view: 'trajectory', slot, label: word('view.trajectory') });
    this.element = this.figure.element;
    this.figure.caption.id = freshId('caption');
    this.canvas = make('canvas', {
      class: 'hands', 'data-path': '', tabindex: 0, role: 'application', 'aria-label': word('view.trajectory'),
      'aria-describedby': this.figure.caption.id,
    });
    this.figure.stage.append(this.canvas);
    this.figure.onTable = () => this.#fillTable();
    this.resizing = new ResizeObserver(this.#draw);
    this.resizing.observe(this.figure.stage);
    document.addEventListener('posenc:theme', this.#draw);
    rewrite(this.canvas, this.#draw);   /* names of columns stand on it */
    this.#listen();
  }

  rename(label, scheme, output) {
    for (const element of [this.canvas, this.element]) bind(element, 'aria-label', label);
    this.figure.title.replaceChildren(...titleOf({ name: output }, this.slot, scheme));
  }

  /* points, dots: [[x, [three values]]]; range: of all three axes; at: the x of the cursor. */
  show(shown) {
    this.#shown = shown;
    this.#draw();
  }

  /* ---- drawing ---- */

  #draw = () => { if (this.#shown) paintMeasure(() => this.#paint()); };

  /* From values to pixels of the bitmap: the third column is up, the second goes away from the eye. */
  #camera(width, height) {
    const { range: [lo, hi], spin } = this.#shown;
    const size = SHARE * Math.min(width, height) / 2;
    const middle = -(lo + (hi - lo) / 2);
    return new DOMMatrix().translateSelf(width / 2, height / 2).scaleSelf(size, -size, size)
      .rotateAxisAngleSelf(1, 0, 0, TILT)
      .rotateAxisAngleSelf(0, 1, 0, spin).scaleSelf(2 / (hi - lo), 2 / (hi - lo), 2 / (hi - lo))
      .translateSelf(middle, middle, middle);
  }

  #paint() {
    const dense = devicePixelRatio || 1;
    const width = Math.floor(this.figure.stage.clientWidth) || ROOM;
    const height = Math.min(width, HEIGHT_MAX);
    Object.assign(this.canvas, { width: Math.round(width * dense), height: Math.round(height * dense) });
    this.canvas.style.setProperty('width', `${width}px`);
    this.canvas.style.setProperty('height', `${height}px`);
    const camera = this.#camera(this.canvas.width, this.canvas.height);
    const size = SHARE * Math.min(this.canvas.width, this.canvas.height);
    const { cols, range, spin, at } = this.#shown;
    const pen = {
      ctx: this.canvas.getContext('2d'), dense, near: (z) => Math.min(1, Math.max(0, 0.5 - z / (1.6 * size))),
      place: ([x, y, z]) => camera.transformPoint({ x, y: z, z: y }), ...colours(this.slot),
      font: getComputedStyle(document.body).fontFamily,
    };
    this.#places = this.#shown.dots.map(([, values]) => pen.place(values));
    drawCube(pen, this.#shown);
    drawPath(pen, this.#shown);
    drawNames(pen, this.#shown);
    const { m11, m12, m21, m22, m31, m32, m41, m42 } = camera;
    mark(this.canvas, {
      cols: cols.join(','), spin, at, min: range[0], max: range[1], color: pen.color, x: [m41, m11, m31, m21].join(','),
      y: [m42, m12, m32, m22].join(','),
    });
  }

  #fillTable() {
    const { dots, cols, at } = this.#shown;
    const first = Math.max(0, Math.min(dots.findIndex(([x]) => x === at) - TABLE_MAX / 2, dots.length - TABLE_MAX));
    const rows = dots.slice(first, first + TABLE_MAX)
      .map(([x, values], i) => [first + i, name(short(x, 8)), values.map((value) => short(value, 6))]);
    fillTable(this.figure, word('view.trajectory'), cols.map((col) => word('curves.series', { col })), rows, cols);
  }

  /* ---- touching ---- */

  #listen() {
    const { canvas } = this;
    canvas.addEventListener('pointerdown', ({ button, pointerId, clientX }) => {
      if (button) return;
      canvas.setPointerCapture(pointerId);
      this.#drag = { at: clientX, moved: false };
    });
    canvas.addEventListener('pointermove', ({ clientX }) => {
      const by = this.#drag ? clientX - this.#drag.at : 0;
      if (!by) return;
      this.told.turn(by * DEGREES);
      this.#drag = { at: clientX, moved: true };
    });
    canvas.addEventListener('pointerup', (event) => { if (this.#drag && !this.#drag.moved) this.#choose(event); });
    for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, () => { this.#drag = null; });
    canvas.addEventListener('keydown', (event) => {
      const act = {
        p: () => this.told.play(),
        t: () => { this.figure.table.open = !this.figure.table.open; },
        c: () => copyText(this.figure.caption.querySelector('data')?.value ?? ''),
        '?': () => this.page.help(),
      }[event.key];
      const step = STEPS[event.key];
      if (event.ctrlKey || event.metaKey || event.altKey || !(act || step)) return;
      event.preventDefault();
      if (act) act();
      else this.told.step(step);
    });
  }

  /* A press that does not turn chooses the dot there. */
  #choose({ offsetX, offsetY }) {
    const dense = devicePixelRatio || 1;
    const away = this.#places.map(({ x, y }) => Math.hypot(x - offsetX * dense, y - offsetY * dense));
    const nearest = Math.min(...away);
    if (nearest <= GRAB * dense) this.told.choose(away.indexOf(nearest));
  }

  close() {
    this.resizing.disconnect();
    document.removeEventListener('posenc:theme', this.#draw);
    this.figure.close();
  }
}

function colours(slot) {
  const style = getComputedStyle(document.documentElement);
  const of = (property) => style.getPropertyValue(property).trim();
  return {
    color: of(`--${slot === 'b-a' ? 'link' : slot}`), paper: of('--paper'), line: of('--line'), edge: of('--edge'),
    ink: of('--ink'), dim: of('--dim'),
  };
}

function stroke({ ctx, place }, points) {
  ctx.beginPath();
  for (const point of points.map(place)) ctx.lineTo(point.x, point.y);
  ctx.stroke();
}

/* The three edges that meet where all are least are the axes. */
function drawCube(pen, { range }) {
  const { ctx, dense } = pen;
  const corner = (bits) => bits.map((bit) => range[bit]);
  for (const [from, to] of EDGES) {
    const isAxis = !from.some(Boolean);
    Object.assign(ctx, { strokeStyle: isAxis ? pen.edge : pen.line, lineWidth: (isAxis ? 1.5 : 1) * dense });
    stroke(pen, [corner(from), corner(to)]);
  }
}

/* A text with a rim of paper, so that it is read above lines; none leaves the canvas. */
function write({ ctx, dense, paper, font }, text, [x, y], look) {
  Object.assign(ctx, {
    font: `${look.weight ?? 400} ${13 * dense}px ${font}`, fillStyle: look.color, strokeStyle: paper,
    lineWidth: 4 * dense, textAlign: 'center', textBaseline: 'middle', lineJoin: 'round',
  });
  const room = ctx.measureText(text).width / 2 + 4 * dense;
  const at = [Math.min(Math.max(x, room), ctx.canvas.width - room),
    Math.min(Math.max(y, 10 * dense), ctx.canvas.height - 10 * dense)];
  ctx.strokeText(text, ...at);
  ctx.fillText(text, ...at);
}

function drawNames(pen, { range: [lo, hi], cols }) {
  const middle = lo + (hi - lo) / 2;
  const centre = pen.place([middle, middle, middle]);
  cols.forEach((col, k) => {
    const end = pen.place([0, 1, 2].map((axis) => axis === k ? hi : lo));
    const out = 18 * pen.dense;
    write(pen, String(word('curves.series', { col })),
      [end.x + Math.sign(end.x - centre.x) * out, end.y + Math.sign(end.y - centre.y) * out], { color: pen.dim });
  });
}

/* What is nearer to the eye is stronger. */
function drawPath(pen, { points, dots, at, real }) {
  const { ctx, dense, place, near } = pen;
  Object.assign(ctx, { strokeStyle: pen.color, fillStyle: pen.color, lineCap: 'round' });
  const places = points.map(([, values]) => place(values));
  places.forEach((to, i) => {
    if (!i || !Number.isFinite(to.x + to.y + places[i - 1].x + places[i - 1].y)) return;
    Object.assign(ctx, { globalAlpha: 0.25 + 0.75 * near(to.z), lineWidth: (real ? 1 + 1.5 * near(to.z) : 1) * dense });
    ctx.beginPath();
    ctx.moveTo(places[i - 1].x, places[i - 1].y);
    ctx.lineTo(to.x, to.y);
    ctx.stroke();
  });
  for (const [, values] of dots) dot(pen, place(values), 2.2 + near(place(values).z));
  ctx.globalAlpha = 1;
  const [, here] = dots.find(([x]) => x === at) ?? [];
  if (!here) return;
  const { x, y } = place(here);
  Object.assign(ctx, { strokeStyle: pen.paper, lineWidth: 2 * dense });
  dot(pen, { x, y }, 6);
  ctx.stroke();
  write(pen, short(at, 8), [x + 14 * dense, y - 14 * dense], { color: pen.ink, weight: 600 });
}

function dot({ ctx, dense }, { x, y }, radius) {
  ctx.globalAlpha = 1;
  ctx.beginPath();
  ctx.arc(x, y, radius * dense, 0, 7);
  ctx.fill();
}

export default {
  name: 'trajectory', path: '/encode',
  example: () => ({ a: { scheme: 'sinusoidal', dim: 32, len: 64 } }),
  open: (page, root) => new Trajectory(page, root),
};
