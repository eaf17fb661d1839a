/* Curves: the value of single columns against a position that need not be whole, with a dot at each whole one. */
import { code, make, served } from '../../dom.js';
import { colorOf, dashOf } from '../../draw/series.js';
import { extent, roomy } from '../../draw/axes.js';
import { short } from '../../draw/numbers.js';
import { shortDatum } from '../../figure.js';
import { tool } from '../../icons.js';
import { gap, phrase, word } from '../../words.js';
import { COLUMNS_MAX, ColumnCharts, askCurve, columnsOf, whole, windowOf, zoomBy } from './ask.js';
import { frontChooser } from '../../heat/toolbar.js';
import { choice, sliderField } from '../controls.js';
import { wantedOf } from '../slots.js';

const STEP_LEAST = 2;   /* pixels from one position to the next */
const ROWS = 64;        /* until their number is known */

class Curves extends ColumnCharts {
  #left = null;             /* left edge while it is dragged: between positions */
  #widths = new Map();      /* slot: columns of its output */

  constructor(page, root) {
    super(page, 'curves');
    this.controls = make('div', { class: 'view-controls' });
    this.#makeControls();
    root.append(this.controls, this.place);
  }

  /* ---- state ---- */

  columns() {
    const widths = [...this.#widths.values()];
    return columnsOf(this.state.own.cols, widths.length ? Math.max(...widths) : null);
  }

  /* The column that slider and arrow keys move: that of the cursor. */
  active() {
    const columns = this.columns();
    return columns.includes(this.state.cur[1]) ? this.state.cur[1] : columns[0];
  }

  /* All that can be in view; what is no run of positions has its rows, once the server has told how many. */
  bounds() {
    const runs = this.page.configs()
      .map(([slot, config]) => this.run(config) ?? { offset: 0, len: this.slots.get(slot)?.rows ?? ROWS });
    return runs.length ? whole(runs) : [0, 0];
  }

  get width() { return this.slots.values()[0]?.chart.width ?? 800; }
  get zoom() { return this.state.zoom === 'fit' ? 'fit' : this.state.zoom.row.px / this.state.zoom.row.step; }

  window() {
    const bounds = this.bounds();
    const start = this.#left ?? bounds[0] + this.state.win[0];
    return windowOf(bounds,
      { start, zoom: this.zoom === 'fit' ? 'fit' : Math.max(STEP_LEAST, this.zoom), width: this.width });
  }

  /* ---- controls ---- */

  #makeControls() {
    this.outputChoice = choice({
      name: 'out', text: word('heat.output'), pick: (out) => this.page.store.set({ out }, { undo: 'out' }),
    });
    this.chips = make('div', { class: 'chips', role: 'group', 'aria-label': word('curves.columns') });
    this.columnSlider = sliderField({
      name: 'cols', text: word('curves.column'), move: (col) => this.#moveColumn(col),
    });
    this.positionSlider = sliderField({ name: 'win', text: word('curves.first'), move: (row) => this.#start(row) });
    const zoom = (which, direction) => tool(which, word(`curves.${which}`),
      { class: 'icon', 'data-action': which, onclick: () => this.#zoomBy(direction) });
    this.zooms = make('div', { class: 'segmented', role: 'group', 'aria-label': word('heat.zoom') },
      zoom('zoom-out', -1), zoom('zoom-in', 1), zoom('fit', 0));
    this.chooser = frontChooser(this.page);
    this.controls.append(this.chooser.element, this.outputChoice.element,
      make('div', { class: 'field' }, make('span', { class: 'field-label' }, word('curves.columns')), this.chips),
      this.columnSlider.element, this.positionSlider.element, this.zooms);
  }

  #setColumns(columns, active, undo = 'cols') {
    this.page.setOwn({ cols: columns.join(',') }, undo, { cur: [this.state.cur[0], active] });
  }

  #moveColumn(col) {
    const active = this.active();
    if (col === active || this.columns().includes(col)) return;
    this.#setColumns(this.columns().map((one) => one === active ? col : one), col);
  }

  #addColumn() {
    const columns = this.columns();
    const width = Math.max(...this.#widths.values(), 1);
    const free = Array.from({ length: width }, (_, i) => (this.active() + 1 + i) % width)
      .find((col) => !columns.includes(col));
    if (free !== undefined) this.#setColumns([...columns, free], free, `cols+${free}`);
  }

  #dropColumn(col) {
    const columns = this.columns().filter((one) => one !== col);
    this.#setColumns(columns, columns[0], `cols-${col}`);
  }

  #start(position) {
    this.page.store.set({ win: [Math.max(0, Math.round(position - this.bounds()[0])), this.state.win[1]] },
      { undo: false });
  }

  /* Keeps the cursor, or the middle of the picture, where it is. */
  #zoomBy(direction, at = null) {
    if (!direction) return this.page.store.set({ zoom: 'fit', win: [0, this.state.win[1]] }, { undo: false });
    const [from, to] = this.window();
    const px = zoomBy(this.width / (to - from), direction);
    const middle = at ?? (from + to) / 2;
    const start = middle - (middle - from) / (to - from) * (this.width / px);
    const row = { px, step: 1 };
    const zoom = { row, col: this.state.zoom === 'fit' ? { px: 1, step: 1 } : this.state.zoom.col };
    this.page.store.set({ zoom, win: [Math.max(0, Math.round(start - this.bounds()[0])), this.state.win[1]] },
      { undo: false });
  }

  #updateControls() {
    const outputs = this.outputs();
    const [first, last] = this.bounds();
    const [from, to] = this.window();
    const width = Math.max(...this.#widths.values(), 1);
    this.chooser.update();
    this.outputChoice.element.hidden = outputs.length < 2;
    this.outputChoice.show(outputs.map((row) => [row.name, code(row.name)]), this.output(this.front()));
    this.columnSlider.show({ value: this.active(), min: 0, max: width - 1, step: 1, disabled: width < 2 });
    this.positionSlider.element.hidden = last - first <= to - from;
    this.positionSlider.show({
      value: Math.round(from), min: first, max: Math.max(first, Math.ceil(last - (to - from))), step: 1,
    });
    this.#updateChips();
  }

  #updateChips() {
    const [columns, active, theme] = [this.columns(), this.active(), document.documentElement.dataset.theme];
    const key = JSON.stringify([columns, active, theme]);
    if (this.chips.dataset.key === key) return;
    this.chips.dataset.key = key;
    const had = this.chips.contains(document.activeElement);
    const chip = (col, i) => {
      const swatch = make('i', { class: 'swatch', 'aria-hidden': 'true' });
      swatch.style.setProperty('background', colorOf(i, theme));
      return make('button', {
        type: 'button', class: 'chip', 'data-value': col, 'aria-pressed': String(col === active),
        onclick: () => this.#activate(col),
      }, swatch, String(col));
    };
    this.chips.replaceChildren(...columns.map(chip),
      tool('close', word('curves.drop', { col: active }),
        { disabled: columns.length < 2, onclick: () => this.#dropColumn(active) }),
      tool('add', word('curves.add'), { disabled: columns.length >= COLUMNS_MAX, onclick: () => this.#addColumn() }));
    if (had) this.chips.querySelector('[aria-pressed=true]').focus();
  }

  #activate(col) { this.page.store.set({ cur: [this.state.cur[0], col] }, { undo: false }); }

  /* ---- figures ---- */

  update() {
    const wanted = wantedOf(this.page);
    this.slots.sync(wanted.map(([slot]) => slot));
    this.#updateControls();
    this.#askAll(wanted);
    this.#showCursor();
  }

  build(slot) {
    const one = super.build(slot, {
      onPan: (x) => this.#pan(x),
      onRelease: () => this.#release(),
      onCursor: (x) =>
        this.page.store.set({ cur: [Math.round(x - (one.picture?.offset ?? 0)), this.active()] }, { undo: false }),
      onKey: (event) => this.#key(event, slot),
      onZoom: (direction, x) => this.#zoomBy(direction, x),
      onResize: () => this.update(),
    });
    return Object.assign(one, { close: () => { one.chart.close(); this.#widths.delete(slot); } });
  }

  #pan(x) {
    const [first, last] = this.bounds();
    const [from, to] = this.window();
    if (last - first <= to - from) return;
    this.#left = Math.min(Math.max(x, first), last - (to - from));
    this.#start(this.#left);
    this.update();
  }

  #release() {
    this.#left = null;
    this.update();
  }

  /* The window and the cursor in it go on by one window: false where all is in view. */
  #page(direction) {
    const [first, last] = this.bounds();
    const [from, to] = this.window();
    if (last - first <= to - from) return false;
    const start = Math.round(Math.min(Math.max(from + direction * (to - from), first), last - (to - from)));
    const cur = Math.min(Math.max(this.state.cur[0] + start - Math.round(from), 0), last - first);
    this.page.store.set({ win: [start - first, this.state.win[1]], cur: [cur, this.active()] }, { undo: false });
    return true;
  }

  /* Keys beside those that move along the curve. */
  #key(event, slot) {
    const columns = this.columns();
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const pages = { PageUp: -1, PageDown: 1 }[event.key];
    if (pages) return this.#page(pages);
    if (step) this.#activate(columns[(columns.indexOf(this.active()) + step + columns.length) % columns.length]);
    else if (event.key === '+' || event.key === '=') this.#zoomBy(1, this.#cursorOf(slot));
    else if (event.key === '-') this.#zoomBy(-1, this.#cursorOf(slot));
    else if (event.key === '0') this.#zoomBy(0);
    else return false;
    return true;
  }

  /* ---- asking and drawing ---- */

  #askAll(wanted) {
    const view = { window: this.window(), width: this.width, columns: columnsOf(this.state.own.cols, null) };
    if (!this.isNew(wanted, view, this.state.out)) return;
    for (const [slot, configs] of wanted) this.#ask(slot, configs, view);
  }

  #ask(slot, configs, view) {
    const { chart } = this.slots.get(slot);
    const why = this.whyNot(configs);
    if (why) return chart.figure.refuse(why);
    chart.figure.ask((get, stage) => askCurve(this.page, get, stage, {
      slot, configs, ...view, out: (config) => this.output(config), run: (config) => this.run(config),
      draw: (picture) => this.slots.has(slot) && this.#draw(slot, picture),
    }));
  }

  #draw(slot, picture) {
    const one = this.slots.get(slot);
    one.picture = picture;
    one.rows = picture.rows ?? one.rows;
    if (slot.length === 1 && picture.width) this.#widths.set(slot, picture.width);
    this.#drawAll();
    one.chart.figure.drawn();
    this.update();
  }

  /* All figures have one range, so that a value stands equally high in each. */
  #drawAll() {
    const shared = this.#yRange((slot) => slot !== 'b-a');
    const difference = this.#yRange((slot) => slot === 'b-a');
    for (const [slot, { chart, picture, rows }] of this.drawn()) {
      const columns = this.columns();
      const series = picture.columns.filter((col) => columns.includes(col.col)).map(({ col, x, y, dots }) => {
        const i = columns.indexOf(col);
        return {
          id: `${slot}:${col}`, name: word('curves.series', { col }), translate: 'yes',
          color: (theme) => colorOf(i, theme), dash: picture.real ? dashOf(i) : [1, 4], width: picture.real ? 2 : 1, x,
          y, dots,
        };
      });
      chart.draw(series, {
        xLabel: word(picture.run ? 'axis.position' : 'axis.row'),
        yLabel: word(slot === 'b-a' ? 'curves.difference' : 'curves.value'),
        xRange: this.window(), yRange: slot === 'b-a' ? difference : shared, stops: picture.stops,
        cell: (line, i) => ({ row: Math.round(line.x[i] - picture.offset), col: line.id.split(':')[1] }),
      });
      const about = {
        scheme: picture.scheme, output: picture.output, shape: rows ? `${rows} × ${this.#widths.get(slot)}` : '', slot,
      };
      chart.rename(word('curves.label', about), this.page.calledBy(slot), picture.output);
    }
  }

  #yRange(which) {
    const pictures = this.drawn().filter(([slot]) => which(slot)).map(([, { picture }]) => picture);
    const fixed = pictures.length && pictures.every((picture) => picture.range);
    const found = extent(pictures.flatMap((picture) => picture.columns.map((one) => one.y)));
    if (!fixed) return roomy(found);
    return roomy(extent([...pictures.map((picture) => picture.range), found ?? []]));
  }

  #cursorOf(slot) {
    const picture = this.slots.get(slot)?.picture;
    return picture ? picture.offset + this.state.cur[0] : null;
  }

  #showCursor() {
    for (const [slot, { chart }] of this.drawn()) {
      chart.setCursor(this.#cursorOf(slot));
      this.#caption(slot);
    }
  }

  #caption(slot) {
    const { chart, picture } = this.slots.get(slot);
    const [x, col] = [this.#cursorOf(slot), this.active()];
    const column = picture.columns.find((one) => one.col === col) ?? picture.columns[0];
    const i = column ? column.x.indexOf(x) : -1;
    const key = JSON.stringify([
      picture.scheme, picture.output, picture.real, x, col, i >= 0 && column.y[i], picture.largest,
    ]);
    if (chart.figure.caption.dataset.key === key) return;
    chart.figure.caption.dataset.key = key;
    const parts = [
      phrase(picture.real ? 'curves.caption' : 'curves.captionWhole',
        { scheme: this.page.catalogue.labelsOf(picture.scheme), output: code(picture.output) }),
    ];
    if (picture.refusal) parts.push(gap(), served(picture.refusal, 'q'));
    if (picture.largest) parts.push(gap(),
      phrase('curves.largest', {
        value: shortDatum(picture.largest.value, 'difference'), x: short(picture.largest.x, 6),
        col: String(picture.largest.col),
      }));
    else if (i >= 0) parts.push(gap(),
      phrase(picture.run ? 'curves.at' : 'curves.atRow',
        { x: short(x, 8), col: String(column.col), value: shortDatum(column.y[i], 'value', 6) }));
    chart.figure.caption.replaceChildren(...parts);
  }
}

export default {
  name: 'curves', path: '/encode',
  example: () => ({ a: { scheme: 'sinusoidal', dim: 64, len: 64 } }),
  open: (page, root) => new Curves(page, root),
};
