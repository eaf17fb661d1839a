/* A heat map: a figure whose canvas shows a window of a tensor, cell by cell or in the server's reductions. It follows
 * the state (window, zoom, cursor, colours, reduction) by itself; a view only says what to show.
 *
 *   const map = new HeatMap(page, { view, slot, scale, label, quiet, outputs, after, awaited, companion })
 *   map.show({ path, body, output, at, axes, square, labels })   or, for b - a, map.show({ of: [of b, of a] })
 *
 * scale: a Scale shared by maps that are to have the same colours. quiet: no controls, because another map has them.
 * outputs: the output can be chosen. after: async (get, stage, about) → nodes to begin the caption with, called once
 * for each source when all else is there; awaited: spec → what keeps their place until then. companion:
 * { isServed(map), fill(map, get) }, what is asked for with each cursor.
 * at: indices of leading axes; without it they are the state's, with a slider each. axes: names of the last axes.
 * square: cells as high as wide; by default where both axes are positions. labels: { rows, cols }, texts at the edges.
 * caption: key of its first sentence; called: another name of the output, a word where it is to be translated. */
import { action, freshId, isNarrow, pictureHeight } from '../dom.js';
import { busy } from '../ask.js';
import { extremes, limited, symmetric, widest } from '../draw/colors.js';
import { cellAt, clampCell, fitBoth, lay, overlap } from '../draw/windows.js';
import { Figure, paintMeasure } from '../figure.js';
import { ColorBar, Readout, axesOf, captionOf, fillTable, labelOf, titleOf } from './beside.js';
import { Keys, Moves, hover, hovered, listenTo, onHover } from './hands.js';
import { Picture } from './picture.js';
import { NoCommon, sourceOf } from './sources.js';
import { NAMES_PX, Stage } from './stage.js';
import { Toolbar } from './toolbar.js';
import { SLOTS } from '../state.js';
import { bind, gap, word } from '../words.js';

/* Of a picture: pixels, of its width, of the window; on a narrow page it shares the screen with a tray of sliders. */
const ROOM_HEIGHT = { least: 300, shape: 0.72, screen: 0.64 };
const ROOM_NARROW = { least: 140, shape: 0.72, screen: 0.4 };
const STORY_CELL = 120;   /* in a story few cells are seen from afar */
const SOME = [0, 0.1234];   /* a range, for the width of its text */

/* One range of colours for the heat maps that share it: the widest of theirs, so that equal colours are equal
 * numbers. */
export class Scale {
  #ranges = new Map();   /* heat map: [min, max] or null */

  get range() { return widest([...this.#ranges.values()]); }

  set(map, range) { this.#change(map, () => this.#ranges.set(map, range)); }
  leave(map) { this.#change(map, () => this.#ranges.delete(map)); }

  #change(by, change) {
    const before = String(this.range);
    change();
    if (String(this.range) !== before) for (const map of this.#ranges.keys()) if (map !== by) map.refresh();
  }
}

/* The one map of the page whose number is explained. */
let explained = null;

export class HeatMap {
  #why = null;         /* beside the picture, while this is that map */
  #source = null;      /* what is to be shown */
  #isPaused = false;      /* its owner asks with its figure meanwhile */
  #picture = null;     /* what is */
  #axes = null;        /* of the cells on the canvas */
  #grid = null;
  #painted = [];
  #explained = '';
  #after = {};         /* { source, nodes } of what was called after its picture */
  #published = null;
  #failed = '';        /* what was refused is not asked for again by itself */
  #frame = null;       /* a promise while one is awaited */
  #due = false;        /* in it, look for what has to be asked for */

  constructor(page, {
    view, slot, label = null, scale = new Scale(), quiet = false, outputs = false, after = null, awaited = null,
    companion = null,
  }) {
    Object.assign(this, { page, slot, label, scale, quiet, outputs, after, awaited, companion });
    this.figure = new Figure(page, { view, slot, label: label ?? word('heat.title') });
    this.moves = new Moves(page.store, () => this.#where());
    this.stage = new Stage(this.figure.stage);
    this.readout = new Readout(slot);
    this.bar = new ColorBar(page, { fields: !quiet && !page.story });
    this.toolbar = new Toolbar(page, this.moves, { quiet });
    this.keys = new Keys(this);
    this.ask = action('why', word(page.story ? 'why.short' : 'why.ask'), () => this.explain(),
      { class: 'link', 'aria-expanded': 'false', hidden: true });
    this.readout.element.append(this.ask);
    this.figure.toolbar.append(this.toolbar.element);
    this.figure.extra.append(this.readout.element, this.bar.element);
    this.figure.png = () => this.#png();
    this.figure.onTable = (get) => this.#fillTable(get);
    this.figure.caption.id = freshId('caption');
    this.canvas.setAttribute('aria-describedby', this.figure.caption.id);
    this.#listen();
  }

  get element() { return this.figure.element; }
  get canvas() { return this.stage.canvas; }
  get about() { return this.#picture?.about ?? null; }
  get picture() { return this.#picture; }

  #listen() {
    let grabbed = null;
    listenTo(this.canvas, {
      hover: (y, x) => hover(y === null || !this.#axes ? null : this.#cellAt(y, x)),
      point: (y, x) => this.#axes && this.moves.point(...this.#cellAt(y, x)),
      grab: () => { grabbed = this.#axes && this.#layout(this.about); },
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
    if (this.canvas.matches(':hover')) hover(null);   /* what is taken from under the pointer hears no leaving */
    this.#source = null;
    this.resized.disconnect();
    for (const leave of this.leave) leave();
    this.scale.leave(this);
    this.keys.close();
    if (explained === this) explained = null;
    this.figure.close();
  }

  /* ---- what to show ---- */

  show(spec) {
    const { at, out: output } = this.page.store.state;
    const given = (one) => ({ at, output, ...one });
    const next = sourceOf(spec.of ? { of: spec.of.map(given) } : given(spec), this.page.catalogue);
    this.spec = spec.of?.[0] ?? spec;
    if (next.key !== this.#source?.key) this.#source = next;
    this.#isPaused = false;
    if (!this.#picture) this.#reserve();
    this.refresh();
  }

  /* Asks no more until the next show(): its owner has another question for its figure. */
  pause() { this.#isPaused = true; }

  /* Another scale, for instance one of its own. */
  shareScale(scale) {
    if (scale === this.scale) return;
    this.scale.leave(this);
    this.scale = scale;
    this.#reportRange();
    this.refresh();
  }

  /* Brings the picture up to date in the next frame: at once with what is kept, then with what has to be asked for. */
  refresh() {
    if (!this.#source || this.#isPaused) return;
    this.#due = true;
    this.#nextFrame();
  }

  /* One paint a frame, however much has changed. */
  #nextFrame() {
    this.#frame ??= new Promise((drawn) => {
      busy.begin();
      const run = () => {
        this.#frame = null;
        if (this.#source && !this.#isPaused) this.#follow();
        drawn();
        busy.end();
      };
      if (document.hidden) setTimeout(run);
      else requestAnimationFrame(run);
    });
    return this.#frame;
  }

  #follow() {
    this.#draw();
    this.#followWhy();
    if (!this.#due) return;
    this.#due = false;
    if (this.#lacks() && this.#failed !== this.#wish()) this.figure.ask((get, stage) => this.#catchUp(get, stage));
  }

  /* ---- geometry ---- */

  /* Integers have no mean. */
  #reduceOf({ dtype }) {
    const chosen = this.#source.reduce ?? this.page.store.state.red;
    return chosen === 'mean' && dtype?.[0] === 'i' ? 'sample' : chosen;
  }

  /* Pixels that a picture may take. */
  #rooms(about) {
    const { left, top, upright } = this.stage.margins(about, this.spec.labels);
    const width = Math.max(32, Math.floor(this.figure.stage.clientWidth - left));
    if (this.page.story) {
      return { row: Math.round(pictureHeight(this.element) - NAMES_PX - Math.max(top, upright)), col: width };
    }
    const { least, shape, screen } = isNarrow() ? ROOM_NARROW : ROOM_HEIGHT;
    return { row: Math.round(Math.max(least, Math.min(width * shape, innerHeight * screen))), col: width };
  }

  #fitted(about, rooms) {
    const square = this.spec.square ?? (about.axes.slice(-2).join() === 'query,key');
    return fitBoth({ cells: about.rows, room: rooms.row }, { cells: about.cols, room: rooms.col },
      { square, most: this.page.story ? STORY_CELL : undefined });
  }

  #layout = (about) => {
    const { zoom, win: [row0, col0] } = this.page.store.state;
    const rooms = this.#rooms(about);
    const scales = zoom === 'fit' ? this.#fitted(about, rooms) : zoom;
    return { row: lay(about.rows, rooms.row, scales.row, row0), col: lay(about.cols, rooms.col, scales.col, col0) };
  };

  /* For Moves. */
  #where() {
    const { about } = this;
    const rooms = this.#rooms(about);
    return { rows: about.rows, cols: about.cols, axes: this.#layout(about), rooms, fitted: this.#fitted(about, rooms) };
  }

  #cellAt(y, x) {
    const { rows, cols } = this.about;
    return [clampCell(rows, cellAt(this.#axes.row, y)), clampCell(cols, cellAt(this.#axes.col, x))];
  }

  /* The place of the first picture and the words about it, unseen as yet, so that nothing moves when it comes. */
  #reserve() {
    const expected = this.#source.expected();
    if (!expected || !this.figure.stage.clientWidth) return;
    const about = this.#named({ lead: [], places: {}, ...expected });
    const axes = this.#layout(about);
    const { labels } = this.spec;
    this.stage.reserve(axes, this.stage.margins(about, labels), labels);
    this.#write(about, { axes, range: SOME, difference: this.#source.isDifference ? SOME[1] : null });
  }

  /* ---- asking ---- */

  #lacks() {
    const picture = this.#picture;
    if (picture?.source !== this.#source || !picture.about.sure || picture.range === undefined) return true;
    return !picture.serves(this.#layout(picture.about), this.#reduceOf(picture.about)) || this.readout.text === null
      || this.companion?.isServed(this) === false || this.#isAfterDue()
      || this.#why?.isServed(this.#picture, this.readout.cell) === false;
  }

  #wish() {
    const { zoom, win, red } = this.page.store.state;
    return JSON.stringify([this.#source.key, zoom, win, red]);
  }

  #isAfterDue() { return this.after !== null && this.#after.source !== this.#source; }

  /* The picture comes first; the rest only if no newer wish waits, so that a slider that is dragged costs one request
   * for each picture. */
  async #catchUp(get, stage) {
    const wish = this.#wish();
    this.#failed = '';
    try {
      for (const step of [this.#askWindow, this.#verify, this.#askRange, this.#fillTexts, this.#runAfter]) {
        await step.call(this, get, stage);
        if (stage.over()) return;
      }
      /* A choice that was made and taken back meanwhile asked for nothing: what it had taken back was still shown. */
      if (this.#wish() !== wish) this.refresh();
    } catch (error) {
      if (error.problem || error instanceof NoCommon) this.#failed = wish;
      if (!(error instanceof NoCommon)) throw error;
      this.figure.refuse(word('heat.noCommon'));
    }
  }

  async #askWindow(get) {
    const source = this.#source;
    const picture = this.#picture?.source === source ? this.#picture : await Picture.of(get, source, this.#picture);
    await picture.askWindow(get, this.#layout, this.#reduceOf(picture.about));
    await this.#setPicture(picture);
  }

  async #verify(get) {
    if (!this.about.sure) {
      const picture = await this.#picture.verified(get);
      await picture.askWindow(get, this.#layout, this.#reduceOf(picture.about));
      await this.#setPicture(picture);
    }
    const { meta } = this.about;
    if (!meta || meta === this.#published || !SLOTS.includes(this.slot)) return;
    this.#published = meta;
    this.page.publish(this.slot, meta);
  }

  async #askRange(get) {
    if (this.#picture.range !== undefined) return;
    await this.#picture.askRange(get);
    await this.#setPicture(this.#picture);
  }

  async #fillTexts(get) {
    await this.readout.fill(get, this.#picture);
    this.keys.say();
    await this.companion?.fill(this, get);
    const { cell } = this.readout;
    if (!this.#why || !this.#isInside(cell)) return;
    const isFirst = await this.#why.fill(get, this.#picture, cell);
    if (isFirst && isNarrow()) this.figure.stage.scrollIntoView({ block: 'start' });   /* above the sheet */
  }

  async #runAfter(get, stage) {
    if (!this.#isAfterDue()) return;
    const source = this.#source;
    const nodes = await this.after(get, stage, this.about);
    this.#after = { source, nodes: nodes ?? [] };
    this.#explained = '';
    await this.#nextFrame();
  }

  /* This is the picture from now on. */
  async #setPicture(picture) {
    this.#picture = picture;
    this.#reportRange();
    await this.#nextFrame();
    this.figure.drawn();
  }

  /* ---- the range of colours ---- */

  #reportRange() {
    const { source, range, likely } = this.#picture ?? {};
    if (source && !source.isDifference) this.scale.set(this, range ?? likely ?? null);
  }

  #range() {
    const { lo, hi } = this.page.store.state;
    if (!this.#picture.source.isDifference) return limited(this.scale.range, lo, hi) ?? [0, 1];
    return lo === null && hi === null ? this.#picture.range ?? [-1, 1] : symmetric([lo ?? 0, hi ?? 0]);
  }

  #cmap() {
    const { cmap } = this.page.store.state;
    const known = this.page.catalogue.catalogue().cmaps;
    return known[cmap] ? cmap : this.#picture.source.isDifference ? 'coolwarm' : 'viridis';
  }

  /* ---- drawing ---- */

  #draw() {
    if (!this.#picture || !this.figure.stage.clientWidth) return;
    const { about, kept } = this.#picture;
    const axes = this.#layout(about);
    const grid = kept && { row: overlap(axes.row, kept.row), col: overlap(axes.col, kept.col) };
    const isEmpty = !axes.row.count || !axes.col.count;
    /* At other steps what was drawn stays until those numbers are there. */
    if (isEmpty || (grid?.row && grid.col)) [this.#axes, this.#grid] = [axes, isEmpty ? null : grid];
    if (this.#axes) this.#paint();
    this.#point();
  }

  #paint() {
    const { kept } = this.#picture;
    const [axes, grid] = [this.#axes, this.#grid];
    const range = this.#range();
    const cmap = this.#cmap();
    const colors = this.page.catalogue.catalogue().cmaps[cmap];
    const painted = [kept?.values, JSON.stringify([axes, grid, range, cmap])];
    if (painted.some((part, i) => part !== this.#painted[i])) {
      this.#painted = painted;
      paintMeasure(() => this.stage.paint(
        { axes, grid, kept, range, colors, attributes: this.#attributes(range, cmap) }
      ));
      this.bar.show(range, cmap, colors, this.slot === 'b-a' ? 'b − a' : this.#named(this.about).name);
    }
    this.#explain(range);
  }

  #attributes([min, max], cmap) {
    const { name, lead } = this.about;
    const { row, col } = this.#axes;
    const nothing = ({ first }) => ({ first, count: 0, start: 0 });
    const grid = this.#grid ?? { row: nothing(row), col: nothing(col) };
    return {
      output: name, at: lead.join(','), row0: grid.row.first, col0: grid.col.first, rows: grid.row.count,
      cols: grid.col.count, 'row-step': row.step, 'col-step': col.step, 'row-px': row.px, 'col-px': col.px,
      x0: grid.col.start, y0: grid.row.start, reduce: this.#drawnReduce, cmap, min, max,
    };
  }

  get #drawnReduce() { return this.#picture.kept?.reduce ?? this.#reduceOf(this.#picture.about); }

  /* Toolbar, edges and caption say what stands on the canvas. */
  #explain(range) {
    const { source } = this.#picture;
    const about = this.#named(this.about);
    const axes = this.#axes;
    const reduce = this.#drawnReduce;
    const difference = source.isDifference ? this.#largest() : null;
    const key = JSON.stringify([
      source.key, about.shape, about.rows, about.cols, axes, range, reduce, difference, this.spec.labels,
    ]);
    if (key === this.#explained) return;
    this.#explained = key;
    this.stage.edge(axes, this.stage.margins(about, this.spec.labels),
      { labels: this.spec.labels, places: about.places, names: axesOf(about) });
    this.#write(about, {
      axes, range, difference, reduce, hasGaps: this.#grid !== null && this.stage.hasGaps, isEmpty: !this.#grid,
    });
    bind(this.canvas, 'aria-label', labelOf(about, this.slot));
  }

  /* Toolbar, caption and title. */
  #write(about, { axes, reduce = this.#reduceOf(about), ...seen }) {
    const source = this.#source;
    const outputs = this.outputs && !source.isDifference ? this.page.catalogue.outputsOf(source.body, source.path) : [];
    this.toolbar.show({ axes, about, reduce, isFixed: Boolean(source.reduce), ownLead: !this.spec.at, outputs });
    const scheme = this.page.catalogue.scheme(about.scheme);
    const sentences = captionOf({ about, axes, reduce, scheme, key: this.spec.caption, ...seen });
    const answer = this.#after.source === source ? this.#after.nodes : this.awaited?.(this.spec) ?? [];
    this.figure.caption.replaceChildren(...answer.flatMap((one) => [one, gap()]), ...sentences);
    if (this.label) return;
    this.figure.rename(labelOf(about, this.slot));
    this.figure.title.replaceChildren(...titleOf(about, this.slot, this.page.calledBy(this.slot) ?? scheme));
  }

  /* The output as its view calls it. */
  #named(about) { return this.spec.called ? { ...about, name: this.spec.called } : about; }

  #largest() {
    const { kept } = this.#picture;
    return Math.max(...(kept && extremes(kept.values) || [0]).map(Math.abs));
  }

  /* ---- the cursor and its cell ---- */

  #point() {
    const cell = hovered() ?? this.page.store.state.cur;
    this.stage.point(this.#axes, cell);
    this.readout.aim(this.#picture, cell);
    this.ask.hidden = !this.#isDerived();
  }

  #isInside = ([row, col]) => row < this.about.rows && col < this.about.cols;

  /* ---- why the cell has its number ---- */

  /* Tensors of /encode have their steps at /derive. */
  #isDerived() {
    const { source, about } = this.#picture;
    return source.path === '/encode' && !source.isDifference && !source.given && about.shape.length > 0;
  }

  /* Opens it here, or closes it: what its button and its key do. */
  explain() {
    if (this.ask.hidden) return;
    const opens = explained !== this;
    const before = explained;
    explained = opens ? this : null;
    if (before && before.page.store !== this.page.store) before.page.store.set({ why: null }, { undo: false });
    this.page.store.set({ why: opens ? this.slot : null }, { undo: false });
    before?.refresh();
    this.refresh();
    if (!opens) this.ask.focus();
    this.wantsFocus = opens;
  }

  /* The address names the slot: of its maps the first. */
  #followWhy() {
    const isNamed = this.page.store.state.why === this.slot && this.#picture && this.#isDerived();
    if (isNamed) explained ??= this;
    else if (explained === this) explained = null;
    const isOpen = explained === this;
    this.ask.setAttribute('aria-expanded', isOpen);
    if (isOpen === Boolean(this.whyAsked)) return;
    this.whyAsked = isOpen;
    this.#why?.close();
    this.#why = null;
    if (isOpen) this.#openWhy();
  }

  async #openWhy() {
    busy.begin();
    try {
      const { Why } = await import('./why.js');
      if (!this.whyAsked || this.#why) return;
      this.#why = new Why(this.slot, { close: () => this.explain(), again: () => this.refresh() });
      this.figure.element.querySelector('.figure-stage').append(this.#why.element);
      if (this.wantsFocus) this.#why.element.focus({ preventScroll: true });
      this.refresh();
    } catch {
      this.whyAsked = false;   /* the next press asks again */
      explained = null;
    } finally {
      busy.end();
    }
  }

  async #fillTable(get) {
    await fillTable(this.figure, get, this.#picture, this.page.store.state.cur, labelOf(this.about, this.slot));
  }

  /* ---- files ---- */

  /* The same picture of the server: the cells of the window, with the same range and colours. */
  #png() {
    const { source, about, kept } = this.#picture ?? {};
    if (!kept || !this.#grid || !source.request) return null;
    const { row, col } = this.#axes;
    const [vmin, vmax] = this.#range();
    return source.request(about, row, col,
      { reduce: kept.reduce, cmap: this.#cmap(), vmin, vmax, zoom: Math.min(row.px, col.px) });
  }
}
