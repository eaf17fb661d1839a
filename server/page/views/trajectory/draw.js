/* The figure of one path: a canvas with a cube, the path and the cursor on it, seen without perspective. */
import { copyText, freshId, isNarrow, make, mark, name, pictureHeight, styleOf } from '../../dom.js';
import { short } from '../../draw/numbers.js';
import { Figure, paintMeasure } from '../../figure.js';
import { titleOf } from '../../heat/beside.js';
import { bind, rewrite, word } from '../../words.js';
import { fillTable } from '../parts.js';
import { colorOfSlot } from '../slots.js';

const TILT = 20;          /* degrees that the camera looks down */
const ROOM = 300;         /* pixels of the page, before the figure has been laid out */
const HEIGHT_MAX = 440;
const NARROW = { least: 150, screen: 0.36 };   /* of a page that shares its screen with a tray of sliders */
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

export class Path {
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

  rename(label, row, output) {
    for (const element of [this.canvas, this.element]) bind(element, 'aria-label', label);
    this.figure.title.replaceChildren(...titleOf({ name: output }, this.slot, row));
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

  #heightMax() {
    if (this.page.story) return pictureHeight(this.element);
    return isNarrow() ? Math.max(NARROW.least, Math.min(HEIGHT_MAX, innerHeight * NARROW.screen)) : HEIGHT_MAX;
  }

  #paint() {
    const dense = devicePixelRatio || 1;
    const width = Math.floor(this.figure.stage.clientWidth) || ROOM;
    const height = Math.min(width, this.#heightMax());
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

const colours = (slot) => ({
  color: colorOfSlot(slot), paper: styleOf('--paper'), line: styleOf('--line'), edge: styleOf('--edge'),
  ink: styleOf('--ink'), dim: styleOf('--dim'),
});

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
