/* What stands beside the canvas of a heat map and says the same: caption, read-out, colour bar, data table. */
import { cell, code, columns, make, mark, name, row, scrolling, table } from '../dom.js';
import { lookup } from '../draw/colors.js';
import { printed, short, ticks } from '../draw/numbers.js';
import { placeText } from '../draw/places.js';
import { about as cellsAbout } from '../draw/windows.js';
import { shortDatum } from '../figure.js';
import { bind, gap, label, phrase, word } from '../words.js';

const TABLE_MOST = 32;
const TICK_PX = 56;   /* room for the text of a tick of the colour bar */
const DIGIT_PX = 7.7; /* at most, of that text */

/* ---- words ---- */

export const shapeText = (shape) => shape.length ? shape.join(' × ') : '1';

const AXES = ['axis', 'batch', 'component', 'dim', 'distance', 'head', 'key', 'pair', 'position', 'query', 'row',
  'column', 'term'];

/* An axis in the page's language. */
export const axisName = (axis) => AXES.includes(axis) ? word(`axis.${axis}`) : axis;

/* Names of rows and columns; a tensor of one axis is a row, and so is what stands at no position that one number
 * says. */
export function axesOf({ axes, places }) {
  const names = axes.length > 1 ? axes.slice(-2) : ['row', axes[0] ?? 'column'];
  return names.map((one, i) => one === 'position' && !places?.[['row', 'col'][i]] ? 'row' : one);
}

const times = (one, other) => name(`${one} × ${other}`);
/* about, axes, reduce, range [min, max]; difference: largest |Δ| of the window, null where none is meant; hasGaps: some
 * cells are not finite; isEmpty: none is in view; key: of the first sentence. */
export function captionOf({
  about, axes, reduce, range, scheme, difference, hasGaps, isEmpty,
  key = difference === null ? 'heat.caption' : 'heat.captionDifference',
}) {
  const { row, col } = axes;
  const parts = {
    output: typeof about.name === 'string' ? code(about.name) : make('span', null, about.name),
    scheme: scheme ? label(scheme) : name(about.scheme ?? ''),
    shape: name(shapeText(about.shape)), min: shortDatum(range[0], 'min'), max: shortDatum(range[1], 'max'),
    cells: times(row.step, col.step), pixels: times(row.px, col.px), red: code(reduce),
  };
  const zoomedOut = row.step > 1 || col.step > 1;
  const largest = difference === null
    ? {}
    : { difference: shortDatum(difference, 'difference'), most: shortDatum(range[1], 'max') };
  const sentences = [phrase(key, { ...parts, ...largest })];
  if (about.isPart) {
    sentences.push(phrase(
      'heat.captionPart',
      { part: times(about.rows, about.cols), a: name(shapeText(about.a.shape)), b: name(shapeText(about.b.shape)) }
    ));
  }
  sentences.push(phrase(
    isEmpty ? 'heat.captionEmpty'
      : !zoomedOut ? 'heat.captionPixels'
      : difference === null ? 'heat.captionReduced'
      : 'heat.captionReducedDifference',
    parts
  ));
  if (hasGaps) sentences.push(phrase('heat.captionGaps', {}));
  return sentences.flatMap((sentence, i) => i ? [gap(), sentence] : [sentence]);
}

/* The canvas's name. */
export function labelOf(about, slot) {
  return word(slot === 'b-a' ? 'heat.labelDifference' : 'heat.label',
    { scheme: about.scheme ?? '', output: about.name, shape: shapeText(about.shape) });
}

/* The figure's title: shorter, since the caption says the rest. row: what the configuration is called by. */
export function titleOf(about, slot, row) {
  const output = [' ', make('code', { class: 'figure-output' }, about.name)];
  if (slot === 'b-a') return [name('b − a'), ...output];
  const rule = row?.rule ? [' ', code(row.rule)] : [];
  return [make('span', { class: 'slot-letter', translate: 'no' }, slot), ' ',
    make('span', { class: 'scheme' }, row ? label(row) : about.scheme ?? ''), ...rule, ...output];
}

/* ---- the exact value of one cell, as the server writes it: [data-readout] with an output ---- */

export class Readout {
  #wanted = null;
  text = null;          /* the value itself, null while it is on its way */

  constructor(slot) {
    this.slot = slot;
    this.where = make('span', { class: 'readout-where' });
    this.output = make('output', { 'data-config': slot, 'aria-live': 'off', translate: 'no' });
    this.element = make('div', { class: 'readout', 'data-readout': '' }, this.where, this.output);
  }

  /* At a cell of a picture: what its window knows of it stands there until the exact value comes. */
  aim(picture, cell) {
    const wanted = `${picture.source.key} ${cell}`;
    if (this.#wanted === wanted && this.about?.rows === picture.about.rows) return;
    const { about } = picture;
    Object.assign(this, { about, cell });
    this.#wanted = wanted;
    this.#name();
    this.output.classList.add('pending');
    if (cell[0] >= about.rows || cell[1] >= about.cols) return this.#write('', word('heat.outside'));
    this.text = null;
    this.output.removeAttribute('data-value');
    const near = picture.near(cell);
    if (near !== null) bind(this.output, null, short(near, 7));
  }

  #name() {
    const [row, col] = this.cell;
    const { places } = this.about;
    const [rowAxis, colAxis] = axesOf(this.about).map(axisName);
    bind(this.where, null,
      word('heat.where', { rowAxis, row: placeText(places.row, row), colAxis, col: placeText(places.col, col) }));
    mark(this.output, { row, col });
  }

  #write(value, text = printed(value)) {
    this.text = value;
    mark(this.output, { value });
    bind(this.output, null, text);
    this.output.classList.remove('pending');
  }

  /* Asks for the cell that is aimed at. */
  async fill(get, { source, about }) {
    const wanted = this.#wanted;
    if (this.text !== null || !this.cell) return;   /* nothing of the map is in view */
    const [row, col] = this.cell;
    const [[text]] = await source.texts(get, about, [row, row + 1], [col, col + 1]);
    if (wanted === this.#wanted) this.#write(text);
  }
}

/* ---- a choice among names, written to the state ---- */

/* also: what else is set with it. */
export function picker(page, key, text, names, also = {}) {
  const pick = (event) => page.store.set({ [key]: event.target.value, ...also }, { undo: key });
  return make('select', { 'data-field': key, 'aria-label': text, title: text, translate: 'no', onchange: pick },
    names.map((one) => make('option', { value: one }, one)));
}

/* ---- the colours and what they stand for: [data-colorbar]; `fields`: its ends can be set and the colours chosen
 * ---- */

export class ColorBar {
  #shown = '';
  #given = null;   /* of show(): another width has other ticks */

  constructor(page, { fields }) {
    this.page = page;
    this.canvas = make('canvas', { width: 255, height: 1, 'aria-hidden': 'true' });
    this.ticks = make('div', { class: 'colorbar-ticks', translate: 'no' });
    this.title = make('div', { class: 'colorbar-title', translate: 'no' });
    this.bar = make('div', { class: 'colorbar-bar', 'data-colorbar': '', role: 'img' },
      this.title, this.canvas, this.ticks);
    this.ends = fields ? { lo: this.#end('lo'), hi: this.#end('hi') } : {};
    this.choice = fields && picker(page, 'cmap', word('heat.cmap'), Object.keys(page.catalogue.catalogue().cmaps));
    this.element = make('div', { class: 'colorbar' }, this.ends.lo, this.bar, this.ends.hi, this.choice);
    new ResizeObserver(() => this.#given && this.show(...this.#given)).observe(this.canvas);
  }

  /* Empty: the range follows the numbers. */
  #end(which) {
    const text = word(`heat.${which}`);
    const onchange = ({ target }) => {
      const number = target.value === '' ? null : Number(target.value);
      const { lo, hi } = { ...this.page.store.state, [which]: number };
      const good = lo === null || hi === null || lo < hi;
      target.setAttribute('aria-invalid', !good);
      if (good) this.page.store.set({ [which]: number }, { undo: which });
    };
    return make('input', {
      type: 'number', step: 'any', class: 'colorbar-end', 'data-field': which, 'aria-label': text, title: text,
      onchange,
    });
  }

  show(...given) {
    this.#given = given;
    const [[min, max], cmap, colors, title] = given;
    const { lo, hi } = this.page.store.state;
    const key = JSON.stringify([min, max, cmap, lo, hi, Math.round(this.canvas.clientWidth / TICK_PX), title]);
    if (key === this.#shown) return;
    this.#shown = key;
    mark(this.bar, { min, max, cmap });
    bind(this.title, null, title);
    bind(this.bar, 'aria-label', word('heat.colorbar', { min: short(min), max: short(max), cmap }));
    const image = new ImageData(255, 1);
    new Uint32Array(image.data.buffer).set(lookup(colors).subarray(1));
    this.canvas.getContext('2d').putImageData(image, 0, 0);
    this.#writeTicks(min, max);
    this.#writeFields({ lo, hi }, { lo: min, hi: max }, cmap);
  }

  /* The ends are ticks of their own, unless their fields say them; no two texts meet. */
  #writeTicks(min, max) {
    const span = max - min || 1;
    const room = this.canvas.clientWidth;
    const width = (value, digits = 3) => short(value, digits).length * DIGIT_PX;
    const ends = this.ends.lo ? [] : max > min ? [min, max] : [min];
    const digits = [3, 2].find((count) => ends.reduce((sum, end) => sum + width(end, count), DIGIT_PX) < room) ?? 1;
    const [left, right] = [0, 1].map((i) => i in ends ? width(ends[i], digits) + DIGIT_PX : room * 0.08);
    const isFree = (value) => {
      const [at, half] = [(value - min) / span * room, ends.length ? width(value) / 2 : 0];
      return at - half > left && at + half < room - right;
    };
    const inner = ticks(min, max, Math.max(1, Math.floor(room / TICK_PX))).filter(isFree);
    this.ticks.replaceChildren(...[...inner, ...ends].map((value) => {
      const tick = make('span', { class: ['from', 'to'][ends.indexOf(value)] },
        short(value, ends.includes(value) ? digits : 3));
      tick.style.setProperty('--at', `${(value - min) / span * 100}%`);
      return tick;
    }));
  }

  #writeFields(fixed, range, cmap) {
    for (const [which, input] of Object.entries(this.ends)) {
      input.placeholder = short(range[which], 4);
      if (document.activeElement !== input) input.value = fixed[which] ?? '';
    }
    if (this.choice) this.choice.value = cmap;
  }
}

/* ---- the cells about the cursor as a table, for those to whom a picture says nothing ---- */

/* Fills a figure's table with the exact texts about a cell. */
export async function fillTable(figure, get, { source, about }, cursor, caption) {
  const rows = cellsAbout(about.rows, cursor[0], TABLE_MOST);
  const cols = cellsAbout(about.cols, cursor[1], TABLE_MOST);
  const key = JSON.stringify([source.key, rows, cols]);
  if (figure.table.shown === key) return;
  const texts = await source.texts(get, about, rows, cols);
  figure.table.shown = key;
  figure.showTable(scrolling(word('figure.table'), tableOf(texts, rows[0], cols[0], about.places, caption)));
}

function tableOf(texts, row0, col0, places, caption) {
  const lines = texts.map((cells, i) => row(
    placeText(places.row, row0 + i), cells.map((text, j) => cell(printed(text), { row: row0 + i, col: col0 + j }))
  ));
  const heads = texts[0].map((_, j) => placeText(places.col, col0 + j));
  return table({ class: 'cells', translate: 'no' }, [make('td'), ...columns(heads)], lines,
    make('caption', null, caption));
}
