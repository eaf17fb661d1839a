/* The row and the column through the cursor as two small line pictures, exact values, one line a configuration. The
 * lines come out of the kept window where it has them cell by cell; else the map asks for them once its picture
 * stands. */
import { busy } from '../../ask.js';
import { Chart } from '../../chart.js';
import { make, styleOf } from '../../dom.js';
import { about as cellsAbout } from '../../draw/windows.js';
import { axesOf, axisName } from '../../heat/beside.js';
import { placeText } from '../../draw/places.js';
import { bind, word } from '../../words.js';

const MOST = 2048;   /* values of a line */
const SIDES = ['row', 'col'];

/* A line of slot a has the colour of a, and each another dash. */
const DASHES = { a: [], b: [7, 4], c: [2, 3], d: [9, 3, 2, 3], 'b-a': [] };
const colorOf = (slot) => () => styleOf(slot === 'b-a' ? '--ink' : `--${slot}`);

export class Strips {
  #lines = new Map();   /* slot: { row, col }, each { key, x, y } or null */
  #maps = [];
  #frame = null;
  #shown = '';

  constructor(page) {
    this.page = page;
    this.charts = {};
    this.titles = {};
    this.element = make('div', { class: 'strips' }, SIDES.map((side) => this.#strip(side)));
  }

  #strip(side) {
    const text = word(`table.${side}Line`);
    this.titles[side] = make('h2', null, text);
    this.charts[side] = new Chart(this.page, { view: 'table', slot: side, label: text, bare: true,
      onCursor: (x) => this.#point(side, x) });
    return make('div', { class: 'strip' }, this.titles[side], this.charts[side].element);
  }

  /* Along the row lies the column of the cursor, along the column its row. */
  #point(side, x) {
    const [row, col] = this.page.store.state.cur;
    const cell = x - this.#along(side).shift;
    this.page.store.set({ cur: side === 'row' ? [row, cell] : [cell, col] }, { undo: false });
  }

  /* The axis along a line: what it is called, and where its first cell stands. Cells at a list of positions, which may
   * lie anywhere, are drawn by their number. */
  #along(side) {
    const about = this.#about;
    const [rowAxis, colAxis] = axesOf(about).map(axisName);
    const { row, col } = about.places ?? {};
    const [place, name, plain] = side === 'row' ? [col, colAxis, 'column'] : [row, rowAxis, 'row'];
    return place?.list ? { name: axisName(plain), shift: 0 } : { name, shift: place?.first ?? 0 };
  }

  /* Neighbouring channels are other waves, often sine and cosine in turn: no line joins them. */
  #isApart(side) { return side === 'row' && axesOf(this.#about)[1] === 'dim'; }

  get #about() { return this.#maps.find(([, map]) => map.about)?.[1].about ?? { axes: [] }; }

  /* maps: [[slot, HeatMap], …]. */
  update(maps) {
    this.#maps = maps;
    const slots = maps.map(([slot]) => slot);
    for (const slot of this.#lines.keys()) if (!slots.includes(slot)) this.#lines.delete(slot);
    const shown = `${slots} ${this.page.store.state.cur}`;
    if (shown !== this.#shown) this.#schedule();
    this.#shown = shown;
  }

  /* ---- what a heat map asks of its companion ---- */

  /* Has this map all lines of this cursor? Takes those that its window holds. */
  isServed(map) { return this.#wanted(map).every((wish) => this.#serve(map, wish)); }

  async fill(map, get) {
    for (const wish of this.#wanted(map)) {
      if (this.#serve(map, wish)) continue;
      this.#keep(map, wish, await map.picture.askLine(get, wish));
    }
  }

  /* [{ side, at, first, stop, key }] for the row and the column; none where the cursor lies outside. */
  #wanted(map) {
    const { about } = map;
    const [row, col] = this.page.store.state.cur;
    if (!about || row >= about.rows || col >= about.cols) return [];
    const sides = [['row', row, about.cols, col], ['col', col, about.rows, row]];
    return sides.map(([side, at, cells, cursor]) => {
      const [first, stop] = cellsAbout(cells, cursor, MOST);
      return { side, at, first, stop, key: `${map.picture.source.key} ${side} ${at} ${first} ${stop}` };
    });
  }

  #serve(map, wish) {
    if (this.#lines.get(map.slot)?.[wish.side]?.key === wish.key) return true;
    const values = map.picture.line(wish);
    if (values) this.#keep(map, wish, values);
    return Boolean(values);
  }

  #keep(map, { side, key, first }, values) {
    const lines = this.#lines.get(map.slot) ?? {};
    lines[side] = { key, x: Float64Array.from(values, (_, i) => first + i), y: values };
    this.#lines.set(map.slot, lines);
    this.#schedule();
  }

  /* ---- drawing ---- */

  #schedule() {
    if (this.#frame) return;
    busy.begin();
    this.#frame = requestAnimationFrame(() => {
      this.#frame = null;
      for (const side of SIDES) this.#draw(side);
      busy.end();
    });
  }

  #draw(side) {
    const [row, col] = this.page.store.state.cur;
    const [at, cursor, through] = side === 'row' ? [row, col, 0] : [col, row, 1];
    const { places } = this.#about;
    const { name, shift } = this.#along(side);
    const isApart = this.#isApart(side);
    bind(this.titles[side], null, word('table.line',
      { axis: axisName(axesOf(this.#about)[through]), at: placeText(places?.[side], at) }));
    const series = this.#maps.filter(([slot]) => this.#lines.get(slot)?.[side]).map(([slot]) => {
      const { x: cells, y } = this.#lines.get(slot)[side];
      const x = cells.map((cell) => cell + shift);
      const dots = isApart ? Array.from(x, (at, i) => [at, y[i]]) : null;
      return {
        id: slot, name: slot.replace('-', ' − '), color: colorOf(slot), dash: DASHES[slot], width: isApart ? 0 : 1.5,
        x, y, dots,
      };
    });
    this.charts[side].draw(series, { xLabel: name, whole: { x: true } });
    this.charts[side].setCursor(series.length ? cursor + shift : null);
  }

  close() {
    if (this.#frame) {
      cancelAnimationFrame(this.#frame);
      busy.end();
    }
    for (const chart of Object.values(this.charts)) chart.close?.();
  }
}
