/* A heat map: a figure whose canvas shows a window of a tensor, cell by cell or in the server's reductions. It follows the
 * state (window, zoom, cursor, colours, reduction) by itself; a view only says what to show.
 *
 *   const map = new HeatMap(page, { view, slot, scale, label, quiet, compact, outputs, ticks })
 *   map.show({ path, body, output, at, axes, square, labels })   or, for b - a, map.show({ of: [of b, of a] })
 *
 * scale: a Scale shared by maps that are to have the same colours. quiet: no controls, because another map has them.
 * compact: small, without controls, read-out, colour bar and ticks. outputs: the output can be chosen in the toolbar.
 * companion: { isServed(map), fill(map, get) }, what else is asked for with the picture (views/table_strips.js).
 * at: indices of leading axes; without it they are the state's, with a slider each. axes: names of the last two.
 * square: cells as high as wide; by default where both axes are positions. labels: { rows, cols }, texts at the edges. */
import { busy } from './ask.js';
import { extremes, limited, symmetric } from './draw/colors.js';
import { cellAt, clampCell, covers, fitBoth, lay, overlap } from './draw/windows.js';
import { Figure, paintMeasure } from './figure.js';
import { captionOf, labelOf, titleOf } from './heat/caption.js';
import { ColorBar } from './heat/colorbar.js';
import { fillTable } from './heat/datatable.js';
import { listenTo } from './heat/gestures.js';
import { hover, hovered, onHover } from './heat/hovering.js';
import { Keys } from './heat/keys.js';
import { Moves } from './heat/moves.js';
import { Readout } from './heat/readout.js';
import { Scale } from './heat/scale.js';
import { NoCommon, WHOLE_MAX, sourceOf } from './heat/sources.js';
import { Stage } from './heat/stage.js';
import { Toolbar } from './heat/toolbar.js';
import { bind, word } from './words.js';

export { Scale };

const ROOM_HEIGHT = { least: 300, shape: 0.72, screen: 0.64 };   /* of a picture: pixels, of its width, of the window */
const COMPACT_FIT_PX = 8;

let lastId = 0;

export class HeatMap {
  #source = null;      /* what is to be shown */
  #shown = null;       /* what is: { source, about, sure, kept, own } */
  #axes = null;        /* of the picture on the canvas */
  #painted = '';
  #frame = null;

  constructor(page, { view, slot, label, scale = new Scale(), quiet = false, compact = false, outputs = false, companion = null, ticks = !compact }) {
    Object.assign(this, { page, slot, scale, quiet, compact, companion, chooses: outputs, label });
    this.figure = new Figure(page, { view, slot, label: label ?? word('heat.title') });
    this.figure.element.classList.toggle('compact', compact);
    this.moves = new Moves(page.store, () => this.#where());
    this.stage = new Stage(this.figure.stage, { ticks });
    this.readout = new Readout(slot);
    this.bar = new ColorBar(page, { fields: !quiet && !compact });
    this.toolbar = new Toolbar(page, this.moves, { quiet });
    this.keys = new Keys(this);
    this.figure.toolbar.append(this.toolbar.element);
    this.figure.extra.append(this.readout.element, this.bar.element);
    this.figure.png = () => this.#picture();
    this.figure.onTable = (get) => this.#fillTable(get);
    this.#describe();
    this.#listen();
  }

  get element() { return this.figure.element; }
  get canvas() { return this.stage.canvas; }
  get about() { return this.#shown?.about ?? null; }
  get key() { return this.#shown?.source.key; }

  #describe() {
    const id = `heat-caption-${lastId += 1}`;
    this.figure.caption.id = id;
    this.canvas.setAttribute('aria-describedby', id);
    bind(this.canvas, 'aria-label', this.label ?? word('heat.title'));
  }

  #listen() {
    let grabbed = null;
    listenTo(this.canvas, {
      hover: (y, x) => hover(y === null ? null : this.#cellAt(y, x)),
      point: (y, x) => this.#axes && this.moves.point(...this.#cellAt(y, x)),
      grab: () => { grabbed = this.#axes && { row: this.#layout(this.about).row, col: this.#layout(this.about).col }; },
      drag: (right, down) => grabbed && this.moves.pan(grabbed, right, down),
      zoom: (factor, pixel) => this.#axes && this.moves.zoom(factor, pixel),
      key: (event) => this.#axes !== null && this.keys.press(event),
    });
    const refresh = () => this.refresh();
    this.resized = new ResizeObserver(refresh);
    this.resized.observe(this.figure.stage);
    this.leave = [this.page.store.subscribe(refresh), onHover(refresh)];
  }

  close() {
    cancelAnimationFrame(this.#frame?.id);
    this.#frame?.over();
    this.resized.disconnect();
    for (const leave of this.leave) leave();
    this.scale.leave(this);
    this.keys.close();
    this.figure.close();
  }

  /* ---- what to show ---- */

  show(spec) {
    const { at, output } = this.page.store.state;
    const given = (one) => ({ at, output, ...one });
    const next = sourceOf(spec.of ? { of: spec.of.map(given) } : given(spec), this.page.catalogue);
    this.spec = spec.of?.[0] ?? spec;
    if (next.key !== this.#source?.key) this.#source = next;
    this.refresh();
  }

  /* Another scale, for instance one of its own. */
  shareScale(scale) {
    if (scale === this.scale) return;
    this.scale.leave(this);
    this.scale = scale;
    if (this.#shown?.own) scale.set(this, this.#shown.own);
    this.refresh();
  }

  /* Brings the picture up to date in the next frame: at once with what is kept, then with what has to be asked for. */
  refresh() {
    if (this.#frame || !this.#source) return;
    busy.begin();
    const over = () => {
      this.#frame = null;
      busy.end();
    };
    const run = () => {
      over();
      this.#draw();
      if (this.#lacks()) this.figure.ask((get, stage) => this.#catchUp(get, stage));
    };
    this.#frame = document.hidden ? { id: setTimeout(run), over } : { id: requestAnimationFrame(run), over };
  }

  /* ---- geometry ---- */

  get #reduce() { return this.#source.reduce ?? this.page.store.state.red; }

  /* Pixels that a picture may take. */
  #rooms(about) {
    const margins = this.stage.margins(about, this.spec.labels);
    const width = Math.max(32, Math.floor(this.figure.stage.clientWidth - margins.left));
    const { least, shape, screen } = ROOM_HEIGHT;
    const height = this.compact ? width : Math.round(Math.max(least, Math.min(width * shape, innerHeight * screen)));
    return { row: height, col: width, margins };
  }

  #isSquare({ axes, cols }) { return this.spec.square ?? (axes.slice(-2).join() === 'query,key' && cols > 1); }

  #fitted(about, rooms) {
    const side = (cells, room) => ({ cells, room });
    return fitBoth(side(about.rows, rooms.row), side(about.cols, rooms.col), { square: this.#isSquare(about), most: this.compact ? COMPACT_FIT_PX : undefined });
  }

  #layout(about) {
    const { zoom, win } = this.page.store.state;
    const rooms = this.#rooms(about);
    const isWhole = this.compact || zoom === 'fit';
    const scales = isWhole ? this.#fitted(about, rooms) : zoom;
    const [row0, col0] = this.compact ? [0, 0] : win;
    return { row: lay(about.rows, rooms.row, scales.row, row0), col: lay(about.cols, rooms.col, scales.col, col0) };
  }

  /* For Moves. */
  #where() {
    const { about } = this.#shown;
    const rooms = this.#rooms(about);
    return { rows: about.rows, cols: about.cols, axes: this.#layout(about), rooms, fitted: this.#fitted(about, rooms) };
  }

  #cellAt(y, x) {
    const { rows, cols } = this.about;
    return [clampCell(rows, cellAt(this.#axes.row, y)), clampCell(cols, cellAt(this.#axes.col, x))];
  }

  /* ---- asking ---- */

  #serves(kept, axes) {
    const reduces = axes.row.step > 1 || axes.col.step > 1;
    return kept && covers(axes.row, kept.row) && covers(axes.col, kept.col) && (!reduces || kept.reduce === this.#reduce);
  }

  #lacks() {
    const { source, about, sure, kept, own } = this.#shown ?? {};
    if (source !== this.#source || !sure || own === undefined) return true;
    const axes = this.#layout(about);
    return (axes.row.count && axes.col.count && !this.#serves(kept, axes)) || this.readout.text === null || this.companion?.isServed(this) === false;
  }

  /* The picture comes first, then the rest, unless a newer wish waits. */
  async #catchUp(get, stage) {
    const source = this.#source;
    try {
      await this.#takeWindow(get, source, await this.#aboutOf(get, source));
      if (!stage.over() && !this.#shown.sure) await this.#verify(get, source);
      if (!stage.over()) await this.#takeRange(get);
      if (!stage.over() && this.readout.text === null) await this.readout.fill(get, source, this.about);
      if (!stage.over()) await this.companion?.fill(this, get);
    } catch (error) {
      if (!(error instanceof NoCommon)) throw error;
      this.figure.refuse(word('heat.noCommon'));
    }
    this.keys.say();
  }

  /* What is known of the tensor. While only numbers such as a base change, its shape is taken to be the one before, so
   * that each movement of a slider costs one request; it is verified once the movement rests. */
  async #aboutOf(get, source) {
    const shown = this.#shown;
    if (shown?.source === source) return shown;
    if (shown && source.resembles(shown.source)) return { about: { ...shown.about, meta: null }, sure: false, own: undefined, guess: shown.own };
    return { about: await source.about(get), sure: true, own: undefined };
  }

  async #verify(get, source) {
    const about = await source.about(get);
    const same = about.name === this.about.name && String(about.shape) === String(this.about.shape);
    if (same) Object.assign(this.#shown, { about, sure: true });
    else await this.#takeWindow(get, source, { about, sure: true, own: undefined });
    this.#publish();
  }

  async #takeWindow(get, source, { about, sure, own, guess }) {
    const { row, col } = this.#layout(about);
    const reduce = source.reduce ?? this.page.store.state.red;
    let { kept } = this.#shown?.source === source ? this.#shown : {};
    if (!row.count || !col.count) kept = null;
    else if (!this.#serves(kept, { row, col })) {
      const values = await source.window(get, about, row, col, reduce);
      kept = { values, stride: col.count, row: { ...row }, col: { ...col }, reduce };
    }
    const before = this.#shown;
    this.#shown = { source, about, sure, kept, own, guess };
    if (own === undefined || kept !== before?.kept) this.#knowRange();
    this.#draw();
    if (sure && before?.source !== source) this.#publish();
    this.figure.drawn();
  }

  #publish() {
    const { meta } = this.about;
    if (meta && this.slot !== 'b-a') this.page.publish(this.slot, meta);
  }

  /* ---- the range of colours ---- */

  /* Where nothing has to be asked: a difference, the catalogue's range, a window that is the whole or is all that can be
   * looked at. Until the extremes are there those before them are used, else the window's. */
  #knowRange() {
    const shown = this.#shown;
    const { source, about, kept } = shown;
    const here = kept && extremes(kept.values);
    const isWhole = kept?.values.length === about.count;
    if (source.isDifference) shown.own = symmetric(here);
    else if (about.range) shown.own = about.range;
    else if (isWhole || about.count > WHOLE_MAX) shown.own = here;
    this.#reportRange(shown.own ?? shown.guess ?? here);
  }

  #reportRange(range) {
    if (!this.#source.isDifference) this.scale.set(this, range ?? null);
  }

  async #takeRange(get) {
    const shown = this.#shown;
    if (shown.own !== undefined) return;
    const range = await shown.source.extremes(get, shown.about);
    if (shown !== this.#shown) return;
    shown.own = range ?? (shown.kept && extremes(shown.kept.values));
    this.#reportRange(shown.own);
    this.#draw();
  }

  #range() {
    const { lo, hi } = this.page.store.state;
    if (!this.#source.isDifference) return limited(this.scale.range, lo, hi) ?? [0, 1];
    return lo === null && hi === null ? this.#shown.own : symmetric([lo ?? 0, hi ?? 0]);
  }

  /* ---- drawing ---- */

  #draw() {
    const shown = this.#shown;
    if (!shown || !this.figure.stage.clientWidth) return;
    const { about, kept } = shown;
    const axes = this.#layout(about);
    const grid = kept && { row: overlap(axes.row, kept.row), col: overlap(axes.col, kept.col) };
    if (grid?.row && grid.col && (kept.reduce === this.#reduce || axes.row.step * axes.col.step === 1)) this.#paint(axes, grid);
    else if (!axes.row.count || !axes.col.count) this.#blank(axes);
    else if (this.#axes && this.last) this.#paint(this.#axes, this.last);   /* other steps: until these numbers are there */
    this.#follow();
  }

  #paint(axes, grid) {
    const { about, kept } = this.#shown;
    const range = this.#range();
    const cmap = this.#cmap();
    const key = JSON.stringify([axes, grid, range, cmap]);
    Object.assign(this, { last: grid });
    this.#axes = axes;
    if (key !== this.#painted || kept.values !== this.paintedValues) {
      this.#painted = key;
      this.paintedValues = kept.values;
      const colors = this.page.catalogue.catalogue().cmaps[cmap];
      paintMeasure(() => this.stage.paint({ axes, grid, kept, range, colors, attributes: this.#attributes(axes, grid, range, cmap) }));
      this.bar.show(range, cmap, colors);
    }
    this.#explain(about, axes, range);
  }

  #blank(axes) {
    this.#axes = axes;
    this.#painted = '';
    const nothing = { first: 0, count: 0, start: 0 };
    const grid = { row: { ...nothing, first: axes.row.first }, col: { ...nothing, first: axes.col.first } };
    this.stage.blank(axes, this.#attributes(axes, grid, this.#range(), this.#cmap()));
    this.#explain(this.about, axes, this.#range());
  }

  #cmap() {
    const { cmap } = this.page.store.state;
    const known = this.page.catalogue.catalogue().cmaps;
    return known[cmap] ? cmap : this.#source.isDifference ? 'coolwarm' : 'viridis';
  }

  #attributes({ row, col }, grid, [min, max], cmap) {
    const { about } = this.#shown;
    return { output: about.name, at: about.lead.join(','), row0: grid.row.first, col0: grid.col.first, rows: grid.row.count, cols: grid.col.count,
      'row-step': row.step, 'col-step': col.step, 'row-px': row.px, 'col-px': col.px, x0: grid.col.start, y0: grid.row.start,
      reduce: this.#shown.kept?.reduce ?? this.#reduce, cmap, min, max };
  }

  /* Toolbar, caption and edges say what stands on the canvas. */
  #explain(about, axes, range) {
    const reduce = this.#shown.kept?.reduce ?? this.#reduce;
    const outputs = this.chooses && !this.#source.isDifference ? this.page.catalogue.outputsOf(this.#source.body, this.#source.path) : null;
    this.toolbar.show({ axes, about, reduce, ownLead: !this.spec.at, outputs });
    this.stage.edge(axes, this.stage.margins(about, this.spec.labels), this.spec.labels);
    const difference = this.#source.isDifference ? this.#largest() : null;
    const key = JSON.stringify([about.name, about.shape, about.rows, about.cols, axes, range, reduce, difference]);
    if (key === this.explained) return;
    this.explained = key;
    const scheme = this.page.catalogue.scheme(about.scheme);
    this.figure.caption.replaceChildren(...captionOf({ about, axes, reduce, range, scheme, difference, hasGaps: this.stage.hasGaps }));
    const label = labelOf(about, this.slot);
    bind(this.canvas, 'aria-label', label);
    if (!this.label) this.#title(label, scheme);
  }

  #title(label, scheme) {
    this.figure.rename(label);
    this.figure.title.replaceChildren(...titleOf(this.about, this.slot, scheme));
  }

  #largest() {
    const found = this.#shown.kept && extremes(this.#shown.kept.values);
    return found ? Math.max(Math.abs(found[0]), Math.abs(found[1])) : 0;
  }

  /* ---- lines through a cell, for a companion ---- */

  /* Values of a row (side 'row', at: which, first...stop: columns) or a column, if the window has each cell of it. */
  keptLine({ side, at, first, stop }) {
    const { kept } = this.#shown;
    const [across, along] = side === 'row' ? ['row', 'col'] : ['col', 'row'];
    if (!kept || kept.row.step * kept.col.step > 1) return null;
    const line = at - kept[across].first;
    const from = first - kept[along].first;
    if (line < 0 || line >= kept[across].count || from < 0 || stop - kept[along].first > kept[along].count) return null;
    if (side === 'row') return kept.values.slice(line * kept.stride + from, line * kept.stride + from + stop - first);
    return Float64Array.from({ length: stop - first }, (_, i) => kept.values[(from + i) * kept.stride + line]);
  }

  /* The same from the server. */
  line(get, { side, at, first, stop }) {
    const [one, many] = [{ first: at, step: 1, count: 1 }, { first, step: 1, count: stop - first }];
    return this.#shown.source.window(get, this.about, ...side === 'row' ? [one, many] : [many, one]);
  }

  /* ---- the cursor and its cell ---- */

  /* Of the picture: its value where the cell is drawn by itself, else null. */
  #near([row, col]) {
    const { kept } = this.#shown;
    if (!kept || kept.row.step > 1 || kept.col.step > 1) return null;
    const [i, j] = [row - kept.row.first, col - kept.col.first];
    const inside = i >= 0 && j >= 0 && i < kept.row.count && j < kept.col.count;
    return inside ? kept.values[i * kept.stride + j] : null;
  }

  #follow() {
    const cell = hovered() ?? this.page.store.state.cur;
    this.stage.point(this.#axes, cell);
    this.readout.aim(this.#shown.source.key, this.about, cell, this.#near(cell));
  }

  async #fillTable(get) {
    const { source, about } = this.#shown;
    await fillTable(this.figure.table, get, source, about, this.page.store.state.cur, labelOf(about, this.slot));
  }

  /* ---- files ---- */

  /* The same picture of the server: the cells of the window, with the same range and colours. */
  #picture() {
    const { source, about, kept } = this.#shown ?? {};
    if (!kept || source.isDifference || source.reduce) return null;
    const { row, col } = this.#axes;
    const part = ({ first, step, count }, cells) => [first, Math.min(cells, first + count * step), step];
    const slice = [...about.lead, ...about.shape.length > 1 ? [part(row, about.rows)] : [], ...about.shape.length ? [part(col, about.cols)] : []];
    const [vmin, vmax] = this.#range();
    const zoom = Math.max(1, Math.min(row.px, col.px));
    return { path: source.path, body: { ...source.body, outputs: [about.name], slice, reduce: kept.reduce, cmap: this.#cmap(), vmin, vmax, zoom } };
  }
}
