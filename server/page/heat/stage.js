/* What is seen of a heat map: the canvas of its cells, hatching behind them, the cursor above, ticks or labels at its
 * left and top edges. On the canvas itself is nothing but cells: data-… say where each one is. */
import { lookup, number, paint } from '../draw/colors.js';
import { cellTicks } from '../draw/numbers.js';
import { placeOf, placeText } from '../draw/places.js';
import { isDrawn, pixelOf } from '../draw/windows.js';
import { make, mark } from '../dom.js';
import { axisName } from './beside.js';

const TICK_APART = { row: 26, col: 46 };
const LABEL_PX_MAX = 112;
export const NAMES_PX = 18;   /* the line of the axes' names */
const CURSOR_PX_MIN = 7;   /* the cursor's frame is no smaller, however small the cell */

const NOTHING = { row: { start: 0, count: 0, px: 0 }, col: { start: 0, count: 0, px: 0 } };

const tables = new Map();  /* colours: pixels */

function tableOf(colors) {
  if (!tables.has(colors)) tables.set(colors, lookup(colors));
  return tables.get(colors);
}

export class Stage {
  #image = null;
  #numbered = {};   /* whose colour numbers are kept, and for which range */
  #ticks = {};

  constructor(root, { ticks = true } = {}) {
    this.withTicks = ticks;
    this.canvas = make('canvas', { 'data-heat': '', tabindex: 0, role: 'application', width: 1, height: 1 });
    this.hatch = make('div', { class: 'heat-hatch hatched', 'aria-hidden': 'true' });
    this.cursor = ['heat-across', 'heat-down', 'heat-cell']
      .map((kind) => make('div', { class: kind, 'aria-hidden': 'true' }));
    this.frame = make('div', { class: 'heat-frame' }, this.hatch, this.canvas, ...this.cursor);
    this.rows = make('div', { class: 'heat-rows', 'aria-hidden': 'true' });
    this.cols = make('div', { class: 'heat-cols', 'aria-hidden': 'true' });
    this.names = make('div', { class: 'heat-names', 'aria-hidden': 'true' });
    this.element = make('div', { class: 'heat' }, this.names, this.cols, this.rows, this.frame);
    root.append(this.element);
  }

  /* Widths at the edges in pixels, { left, top }, for ticks of that many cells or for labels; upright: the top where
   * labels of columns stand on end. */
  margins(about, labels) {
    if (!this.withTicks && !labels) return { left: 0, top: 0, upright: 0 };
    const widest = (texts) =>
      Math.min(LABEL_PX_MAX, Math.ceil(Math.max(0, ...texts.map((text) => this.#measure(text)))) + 8);
    const ends = () => [0, about.rows - 1].map((cell) => this.#measure(placeText(about.places.row, cell)));
    const left = labels ? widest(labels.rows) : Math.max(...ends()) + 12;
    return { left: Math.ceil(left), top: 20, upright: labels ? widest(labels.cols) : 0 };
  }

  #measure(text) {
    this.pen ??= document.createElement('canvas').getContext('2d');
    const { fontSize, fontFamily } = getComputedStyle(this.rows);
    this.pen.font = `${fontSize} ${fontFamily}`;
    return this.pen.measureText(text).width;
  }

  /* ---- cells ---- */

  /* axes, grid: { row, col } of draw/windows.js, grid null where nothing is in view; kept: { values, stride };
   * attributes: what data-… say. */
  paint({ axes, grid, kept, range, colors, attributes }) {
    const [width, height] = [axes.col.room, axes.row.room];
    const pixels = this.#pixels(width, height);
    if (!grid) pixels.fill(0);
    else paint({ pixels, width, height }, grid, { numbers: this.#numbers(kept, range), stride: kept.stride },
      tableOf(colors));
    this.canvas.getContext('2d').putImageData(this.#image, 0, 0);
    mark(this.canvas, attributes);
    const { row, col } = grid ?? NOTHING;
    setPixels(this.hatch, { left: col.start, top: row.start, width: col.count * col.px, height: row.count * row.px });
  }

  #pixels(width, height) {
    const { canvas } = this;
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    if (this.#image?.width !== width || this.#image.height !== height) this.#image = new ImageData(width, height);
    return new Uint32Array(this.#image.data.buffer);
  }

  /* A change of colours alone need not number the cells again. */
  #numbers(kept, range) {
    const { values, numbers, key } = this.#numbered;
    if (values === kept.values && key === String(range)) return numbers;
    const room = numbers?.length === kept.values.length ? numbers : new Uint8Array(kept.values.length);
    this.#numbered = { values: kept.values, key: String(range), numbers: number(kept.values, range, room) };
    return this.#numbered.numbers;
  }

  /* Is there a cell that is not finite in the window painted last? */
  get hasGaps() { return this.#numbered.numbers?.includes(0) ?? false; }

  /* ---- the cursor ---- */

  point(axes, cell) {
    const seen = axes && isDrawn(axes.row, cell[0]) && isDrawn(axes.col, cell[1]);
    for (const part of this.cursor) part.hidden = !seen;
    if (!seen) return;
    const [top, left] = [pixelOf(axes.row, cell[0]), pixelOf(axes.col, cell[1])];
    const [height, width] = [axes.row.px, axes.col.px].map((px) => Math.max(CURSOR_PX_MIN, px));
    const [across, down, box] = this.cursor;
    setPixels(across, { top: top + axes.row.px / 2 });
    setPixels(down, { left: left + axes.col.px / 2 });
    setPixels(box,
      { left: left + axes.col.px / 2 - width / 2, top: top + axes.row.px / 2 - height / 2, width, height });
  }

  /* ---- edges ---- */

  /* Do labels of columns need more room than their columns have? */
  #isUpright({ col }, labels) {
    return Boolean(labels?.cols.some((text) => this.#measure(text) + 6 > col.px / col.step));
  }

  /* The height of a picture that is to come. */
  reserve(axes, margins, labels) {
    const top = this.#isUpright(axes, labels) ? margins.upright : margins.top;
    setPixels(this.element, { '--reserved': NAMES_PX + top + axes.row.room });
  }

  /* names: the axes', [of rows, of columns]. */
  edge(axes, margins, { labels, places, names }) {
    const upright = this.#isUpright(axes, labels);
    setPixels(this.element,
      { '--left': margins.left, '--top': upright ? margins.upright : margins.top, '--room': axes.col.room });
    const key = JSON.stringify([axes, labels, places, names]);
    if (this.#ticks.key === key || !(this.withTicks || labels)) return;
    this.#ticks.key = key;
    this.names.replaceChildren(...names.map((name, i) => make('span', null, axisName(name), [' ↓', ' →'][i])));
    this.#write(this.rows, axes.row, labels?.rows, TICK_APART.row, places.row);
    this.cols.classList.toggle('upright', upright);
    this.#write(this.cols, axes.col, labels?.cols, labels ? 14 : TICK_APART.col, places.col);
  }

  #write(edge, axis, labels, apart, place) {
    const cells = labels ? cellTicks(axis, 14) : cellTicks(axis, apart, placeOf({ ...place, list: null }, 0));
    edge.replaceChildren(...cells.map((cell) => {
      const text = labels ? labels[cell] ?? '' : placeText(place, cell);
      const tick = make('span', labels ? { translate: 'no' } : null, text);
      setPixels(tick, { '--at': pixelOf(axis, cell) + axis.px / 2 });
      return tick;
    }));
  }
}

/* Through CSSOM: the page's policy allows no style attributes. */
function setPixels(element, values) {
  for (const [name, value] of Object.entries(values)) element.style.setProperty(name, `${value}px`);
}
