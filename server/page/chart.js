/* A line picture: a canvas with lines, a cross at the cursor above it, a legend, and, unless it is bare, the figure
 * around them. It draws what it is given; a view asks for the numbers. */
import { cell, columns, copyText, freshId, make, mark, row, scrolling, styleOf, table } from './dom.js';
import { Figure, painters, paintMeasure } from './figure.js';
import { extent, roomy } from './draw/axes.js';
import { titleOf } from './heat/beside.js';
import { layout, nearest, paint, paintCursor } from './draw/lines.js';
import { short } from './draw/numbers.js';
import { bind, live, rewrite, word } from './words.js';

const WHEEL = 40;  /* how far a wheel turns for a step of zoom */
const CLICK = 4;   /* a press that moves less is a click */
const GRAB = 12;   /* how near to a handle a press must be, in pixels of the page */
const TABLE_MAX = 32;
const LEAST = { width: 120, height: 80 };

/* draw(series, picture):
 *   series   [{ id: 'a:12', name, color, dash, width, x, y, dots }]; x ascending; values that are not finite make gaps
 *   picture  { xLabel, yLabel, xRange, yRange, whole (ticks of x on integers only), bands: [{ axis, from, to }],
 *              stops: [x of the arrow keys], marks: [{ axis, at, label, handle: { move(value), lo, hi } }],
 *              cell(series, i) → { row, col } }
 * Options: scales { x, y }; bare; onPan(x of the left edge) and onRelease() of its drag; onZoom(direction, x) by
 * Ctrl and wheel; onCursor(x, by 'key' or 'pointer'); onHover(x or null); onKey(event) true where it was of use;
 * onResize(). */
export class Chart {
  #series = [];
  #picture = {};
  #plan = null;
  #cursor = null;       /* x of the cross; null: none */
  #drag = null;
  #hover = null;        /* x under the pointer, shown in place of the cursor */
  #turned = 0;

  constructor(page, { view, slot, label, scales = {}, bare = false, ...listeners }) {
    Object.assign(this, { page, listeners, scales: { x: 'linear', y: 'linear', ...scales } });
    this.canvas = make('canvas', { 'data-lines': '', tabindex: 0, role: 'application', 'aria-label': label });
    this.over = make('canvas', { class: 'chart-cursor', 'aria-hidden': 'true' });
    this.readout = make('div', { class: 'readout chart-readout', 'data-readout': '', hidden: true });
    this.plot = make('div', { class: 'chart-plot' }, this.canvas, this.over, this.readout);
    this.legend = make('ul', { class: 'legend' });
    this.element = make('div', { class: 'chart' }, this.plot, this.legend);
    painters.set(this.canvas, (ctx) => this.#paintOn(ctx));
    if (!bare) this.#frame(view, slot, label);
    this.#listen();
  }

  #frame(view, slot, label) {
    this.figure = new Figure(this.page, { view, slot, label });
    this.figure.stage.append(this.element);
    this.figure.caption.id ||= freshId('caption');
    this.canvas.setAttribute('aria-describedby', this.figure.caption.id);
    this.figure.onTable = async () => this.#fillTable();
  }

  /* ---- drawing ---- */

  draw(series, picture = {}) {
    this.element.classList.add('drawn');
    this.#series = series;
    this.#picture = picture;
    this.repaint();
  }

  /* Paints again what was drawn last: another size, theme or language. */
  repaint() {
    legendOf(this.legend, this.#series);
    if (!this.#hasRoom()) return;
    const k = devicePixelRatio || 1;
    const size = this.#sizeAt(k);
    paintMeasure(() => {
      for (const canvas of [this.canvas, this.over]) fitBitmap(canvas, size);
      const ctx = this.canvas.getContext('2d');
      ctx.clearRect(0, 0, size.width, size.height);
      this.#plan = this.#draw(ctx, size, k, this.#picture.marks);
      this.#promise();
      this.element.classList.toggle('named', this.#plan.hasEnds);
    });
    this.#paintCursor();
  }

  #hasRoom() {
    const { clientWidth, clientHeight } = this.plot;
    return this.#series.length && clientWidth >= LEAST.width && clientHeight >= LEAST.height;
  }

  #sizeAt(k) {
    return { width: Math.round(this.plot.clientWidth * k), height: Math.round(this.plot.clientHeight * k) };
  }

  /* Gives where everything stands. */
  #draw(ctx, size, k, marks) {
    const look = lookOf();
    const series = this.#series.map((line) => this.#inLook(line, look));
    const plan = layout(ctx, {
      size, k, look, scales: this.scales, ranges: this.#ranges(), series,
      titles: { x: this.#picture.xLabel, y: this.#picture.yLabel }, whole: this.#picture.whole,
    });
    paint(ctx, plan, { series, bands: this.#picture.bands, marks });
    return plan;
  }

  /* As it is saved: nothing to take hold of. */
  #paintOn(ctx) {
    const marks = this.#picture.marks?.map(({ handle, ...mark }) => mark);
    if (this.#hasRoom()) this.#draw(ctx, this.#sizeAt(1), 1, marks);
  }

  /* A colour may depend on the theme: then it is a function of it. */
  #inLook(line, look) {
    return typeof line.color === 'function' ? { ...line, color: line.color(look.theme) } : line;
  }

  #ranges() {
    const { xRange, yRange } = this.#picture;
    return {
      x: xRange ?? roomy(extent(this.#series.map((line) => line.x), this.scales.x), this.scales.x, 0.02),
      y: yRange ?? roomy(extent(this.#series.map((line) => line.y), this.scales.y), this.scales.y),
    };
  }

  /* What tests and other programs may read of the picture. */
  #promise() {
    const { box, x, y } = this.#plan;
    mark(this.canvas,
      { ...box, 'x-min': x.lo, 'x-max': x.hi, 'y-min': y.lo, 'y-max': y.hi, 'x-scale': x.scale, 'y-scale': y.scale });
  }

  /* The plot box in pixels of the page, for controls that lie above it. */
  get width() {
    return this.#plan ? this.#plan.box.w / this.#plan.k : Math.max(LEAST.width, this.plot.clientWidth - 60);
  }

  /* ---- the cursor ---- */

  /* Puts the cross at x, or takes it away (null). */
  setCursor(x) {
    this.#cursor = x;
    this.#paintCursor();
  }

  /* The same for the place under the pointer, which leaves the cursor alone. */
  setHover(x) {
    if (x === this.#hover) return;
    this.#hover = x;
    this.#paintCursor();
  }

  #paintCursor() {
    if (!this.#plan) return;
    const x = this.#hover ?? this.#cursor;
    const points = x === null ? [] : this.#pointsAt(x);
    paintCursor(this.over.getContext('2d'), this.#plan, x === null ? null : { x, points });
    const shown = points.length > 0 && (this.#hover !== null || document.activeElement === this.canvas);
    readoutOf(this.readout, shown ? { x, points, title: this.#picture.xLabel, cell: this.#picture.cell } : null);
    if (shown) this.#placeReadout(x);
  }

  /* Each line's own value at its sample nearest to x: nothing is read between samples. */
  #pointsAt(x) {
    const look = lookOf();
    return this.#series.map((line) => {
      const i = nearest(line.x, x);
      return { series: line, i, x: line.x[i], value: line.y[i], color: this.#inLook(line, look).color };
    }).filter((point) => point.i >= 0);
  }

  /* Beside the cross, on the side with more room. */
  #placeReadout(value) {
    const { box, x, k } = this.#plan;
    const at = x.at(value) / k;
    const right = at < (box.x0 + box.w / 2) / k;
    this.readout.style.setProperty('left', right ? `${at + 14}px` : 'auto');
    this.readout.style.setProperty('right', right ? 'auto' : `${this.plot.clientWidth - at + 14}px`);
    this.readout.style.setProperty('top', `${box.y0 / k + 8}px`);
  }

  #stops() {
    return this.#picture.stops
      ?? this.#series.reduce((longest, line) => line.x.length > longest.length ? line.x : longest, []);
  }

  #moveCursor(x, by) {
    if (x === null) return;
    this.setCursor(x);
    this.listeners.onCursor?.(x, by);
    if (by === 'key') this.page.announce(live(() => this.#spoken()));
  }

  #spoken() {
    const points = this.#pointsAt(this.#cursor).map(({ series, value }) => `${series.name}: ${short(value, 6)}`);
    return [`${this.#picture.xLabel ?? 'x'} ${short(this.#cursor, 6)}`, ...points].join('; ');
  }

  /* ---- keys and pointers ---- */

  #listen() {
    const { canvas } = this;
    canvas.addEventListener('keydown', (event) => this.#key(event));
    canvas.addEventListener('focus', () => this.#paintCursor());
    canvas.addEventListener('blur', () => this.#paintCursor());
    canvas.addEventListener('pointerdown', (event) => this.#press(event));
    canvas.addEventListener('pointermove', (event) => this.#move(event));
    canvas.addEventListener('pointerup', (event) => this.#release(event));
    canvas.addEventListener('pointercancel', () => this.#release(null));
    canvas.addEventListener('pointerleave', () => this.#hoverAt(null));
    this.onTheme = () => this.repaint();
    document.addEventListener('posenc:theme', this.onTheme);
    canvas.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
    this.observer = new ResizeObserver(() => this.#resize());
    this.observer.observe(this.plot);
    let started = false;
    rewrite(canvas, () => { if (started) this.repaint(); });
    started = true;
  }

  #resize() {
    this.repaint();
    this.listeners.onResize?.();
  }

  /* A plain wheel scrolls the page; a pinch on a trackpad comes as a wheel with Ctrl. */
  #wheel(event) {
    if (!this.#plan || !this.listeners.onZoom || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    this.#turned += event.deltaY;
    if (Math.abs(this.#turned) < WHEEL) return;
    this.listeners.onZoom(-Math.sign(this.#turned), this.#plan.x.value(this.#place(event).x));
    this.#turned = 0;
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (this.listeners.onKey?.(event) || this.#command(event.key)) return event.preventDefault();
    const stops = this.#stops();
    const i = this.#cursor === null ? -1 : nearest(stops, this.#cursor);
    const next = {
      ArrowLeft: i - 1, ArrowRight: i + 1, '[': i - 1, ']': i + 1, PageUp: i - 10, PageDown: i + 10, Home: 0,
      End: stops.length - 1,
    }[event.key];
    if (next === undefined || !stops.length) return;
    event.preventDefault();
    this.#moveCursor(stops[Math.min(Math.max(next, 0), stops.length - 1)], 'key');
  }

  /* Keys that every figure has. */
  #command(key) {
    const act = {
      t: () => { this.figure.table.open = !this.figure.table.open; },
      c: () => copyText(this.#pointsAt(this.#cursor).map(({ value }) => String(value)).join('\n')),
      '?': () => this.page.help?.(),
    }[key];
    if (!act || !this.figure) return false;
    act();
    return true;
  }

  /* Bitmap pixels of a pointer. */
  #place(event) {
    const { k } = this.#plan;
    const { left, top } = this.canvas.getBoundingClientRect();
    return { x: (event.clientX - left) * k, y: (event.clientY - top) * k };
  }

  #handleAt(place) {
    const { x, y, k } = this.#plan;
    const distance = ({ axis, at }) => axis === 'y' ? Math.abs(y.at(at) - place.y) : Math.abs(x.at(at) - place.x);
    return (this.#picture.marks ?? []).filter((one) => one.handle && distance(one) <= GRAB * k)
      .sort((a, b) => distance(a) - distance(b))[0];
  }

  #press(event) {
    if (!this.#plan || event.button) return;
    const place = this.#place(event);
    const held = this.#handleAt(place);
    this.#drag = held
      ? { handle: held.handle, axis: held.axis }
      : { from: this.listeners.onPan && this.#plan.x, start: place };
    if (held || event.pointerType === 'mouse') event.preventDefault();
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
  }

  #move(event) {
    if (!this.#plan) return;
    const place = this.#place(event);
    if (this.#drag?.handle) return this.#dragHandle(place);
    if (this.#drag) this.#drag.moved ||= Math.abs(place.x - this.#drag.start.x) > CLICK * this.#plan.k;
    if (this.#drag?.moved && this.#drag.from) {
      return this.listeners.onPan(this.#drag.from.value(this.#drag.from.from - (place.x - this.#drag.start.x)));
    }
    const held = this.#handleAt(place);
    mark(this.plot, { grab: held ? held.axis ?? 'x' : this.listeners.onPan ? 'pan' : '' });
    if (event.pointerType !== 'touch') this.#hoverAt(this.#stopAt(place));
  }

  #dragHandle(place) {
    const { axis, handle } = this.#drag;
    const value = axis === 'y' ? this.#plan.y.value(place.y) : this.#plan.x.value(place.x);
    handle.move(Math.min(Math.max(value, handle.lo ?? -Infinity), handle.hi ?? Infinity));
  }

  /* A press that has not moved puts the cursor there. */
  #release(event) {
    const drag = this.#drag;
    this.#drag = null;
    if (!drag || !this.#plan) return;
    if (event && !drag.handle && !drag.moved) this.#moveCursor(this.#stopAt(this.#place(event)), 'pointer');
    this.listeners.onRelease?.();
  }

  #hoverAt(x) {
    this.setHover(x);
    this.listeners.onHover?.(x);
  }

  /* The stop that is nearest to a pointer. */
  #stopAt(place) {
    const stops = this.#stops();
    return stops[nearest(stops, this.#plan.x.value(place.x))] ?? null;
  }

  /* ---- what else shows the same numbers ---- */

  #fillTable() {
    const { xLabel: title, cell } = this.#picture;
    this.figure.showTable(scrolling(word('figure.table'),
      tableOf(this.#series, { title, at: this.#cursor, cell, stops: this.#stops() })));
  }

  /* text: what a screen reader needs to know the picture by; over it stand the name of its configuration (row) and the
   * output. */
  rename(text, row, output) {
    bind(this.canvas, 'aria-label', text);
    if (!this.figure) return;
    bind(this.figure.element, 'aria-label', text);
    this.figure.title.replaceChildren(...titleOf({ name: output }, this.figure.slot, row));
  }

  close() {
    document.removeEventListener('posenc:theme', this.onTheme);
    this.observer.disconnect();
    this.figure?.close();
    this.element.remove();
  }
}

/* A bitmap with as many pixels as the screen has there, so that no pixel of it is stretched. */
function fitBitmap(canvas, { width, height }) {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  canvas.style.setProperty('width', `${width / (devicePixelRatio || 1)}px`);
  canvas.style.setProperty('height', `${height / (devicePixelRatio || 1)}px`);
}

/* ---- what stands beside a picture and says the same ---- */

/* Colours, font and theme of the page as it is now. */
function lookOf() {
  const root = document.documentElement;
  return {
    theme: root.dataset.theme === 'dark' ? 'dark' : 'light', font: getComputedStyle(document.body).fontFamily,
    ink: styleOf('--ink'), dim: styleOf('--dim'), paper: styleOf('--paper'), soft: styleOf('--soft'),
    line: styleOf('--line'),
  };
}

const colorIn = (line, theme) => typeof line.color === 'function' ? line.color(theme) : line.color;

/* A short piece of the line as it is drawn: colour and dash. */
function sample(line, color) {
  const canvas = make('canvas', { class: 'legend-line', width: 56, height: 16, 'aria-hidden': 'true' });
  const ctx = canvas.getContext('2d');
  Object.assign(ctx, { strokeStyle: color, lineWidth: 4 });
  ctx.setLineDash((line.dash ?? []).map((length) => length * 2));
  ctx.beginPath();
  ctx.moveTo(0, 8);
  ctx.lineTo(56, 8);
  ctx.stroke();
  return canvas;
}

/* One item a line; kept as it is while the same lines are drawn again. */
function legendOf(list, series) {
  const { theme } = lookOf();
  const key = JSON.stringify([
    theme, series.map((line) => [line.id, String(line.name), colorIn(line, theme), line.dash]),
  ]);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...series.map((line) => {
    const color = colorIn(line, theme);
    return mark(make('li', { translate: line.translate ?? 'no' }, sample(line, color), line.name),
      { series: line.id, color });
  }));
}

/* The values at the cross: null hides them. */
function readoutOf(box, shown) {
  box.hidden = !shown;
  if (!shown) return;
  const { x, points, title, cell } = shown;
  const head = make('div', { class: 'readout-title' }, title ?? 'x', ' ', make('b', null, short(x, 6)));
  box.replaceChildren(head, ...points.map((point) => {
    const [config, col] = point.series.id.split(':');
    const swatch = make('i', { 'aria-hidden': 'true', class: 'swatch' });
    swatch.style.setProperty('background', point.color);
    const output = mark(make('output', null, short(point.value, 5)),
      { config, col, x: point.x, value: point.value, ...cell?.(point.series, point.i) });
    return make('div', { class: 'readout-row' }, swatch, make('span', { translate: 'no' }, point.series.name), output);
  }));
}

/* At most 32 rows about the cursor, one column a line. Lines share their samples or are read at the nearest one. */
function tableOf(series, { title, at, cell: of, stops }) {
  const first = Math.min(Math.max(0, nearest(stops, at ?? stops[0]) - TABLE_MAX / 2),
    Math.max(0, stops.length - TABLE_MAX));
  const rows = Array.from(stops).slice(first, first + TABLE_MAX);
  const shown = series.slice(0, TABLE_MAX);
  const heads = shown.map((line) => make('th', { scope: 'col', translate: 'no' }, line.name));
  const body = rows.map((x, i) => row(
    short(x, 8),
    shown.map((line, j) => tableCell(line, x, { row: first + i, col: j, ...of?.(line, nearest(line.x, x)) }))
  ));
  return table(null, [...columns([title ?? 'x']), ...heads], body);
}

function tableCell(line, x, where) {
  const i = nearest(line.x, x);
  return cell(line.x[i] === x ? short(line.y[i], 7) : '', where);
}
