/* Multimodal: a sequence of text, images and video as blocks, the position ids of its tokens as lines, an image's ids
 * as a grid. */
import { action, cell, columns, make, mark, name, row, scrolling, table } from '../dom.js';
import { extent, roomy } from '../draw/axes.js';
import { short } from '../draw/numbers.js';
import { colorOf, dashOf } from '../draw/series.js';
import { datum } from '../figure.js';
import { withSequence } from '../forms/edits.js';
import { phrase, word } from '../words.js';
import { Charts } from './charts.js';
import { sliderField } from './controls.js';
import { bodyFor, cannot } from './parts.js';
import { wantedOf } from './slots.js';

const TOKENS_MAX = 4096;
const DOTS_MAX = 128;
const FRAMES_MAX = 4;      /* of a segment that are drawn as grids */
const WIDTHS = [1.5, 2.5, 4];  /* of lines that lie on each other, the first one in front: all are seen */
const IDS = 'positions';
const DELTA = 'rope_delta';
const AXES = { 1: ['one'], 2: ['height', 'width'], 3: ['temporal', 'height', 'width'] };

/* Schemes that give their ids and have several axes. */
const isAble = (scheme) =>
  scheme.outputs.some((output) => output.name === DELTA)
    && scheme.parameters.some((parameter) => parameter.name === 'channels');

class Multimodal extends Charts {
  constructor(page, root) {
    super(page, 'multimodal');
    root.append(this.place);
  }

  build(slot) {
    const one = super.build(slot, {
      onCursor: (x) => this.page.store.set({ cur: [this.state.cur[0], x] }, { undo: false }),
      onResize: () => this.#align(slot),
    });
    const strip = new Strip(slot,
      (segments, undo) => this.page.setConfig(slot, { ...this.page.config(slot), segments }, undo));
    const none = action('start', word('multimodal.start'),
      () => this.page.setConfig(slot, withSequence(this.page.config(slot), 'segments')));
    const grids = make('div', { class: 'segment-grids' });
    one.chart.figure.stage.prepend(none, strip.blocks);
    one.chart.figure.extra.append(strip.editor);
    one.chart.figure.caption.after(grids);
    return Object.assign(one, { strip, none, grids });
  }

  /* ---- figures ---- */

  update() {
    const wanted = wantedOf(this.page).filter(([slot]) => slot !== 'b-a');
    this.slots.sync(wanted.map(([slot]) => slot));
    for (const [slot, [config]] of wanted) {
      const { strip, none } = this.slots.get(slot);
      strip.show(segmentsOf(config));
      none.hidden = Boolean(segmentsOf(config));
    }
    if (this.isNew(wanted)) for (const [slot, [config]] of wanted) this.#ask(slot, config);
    this.#showCursor();
  }

  #ask(slot, config) {
    const one = this.slots.get(slot);
    const { figure } = one.chart;
    const scheme = this.page.catalogue.schemeOf(config);
    if (scheme && !isAble(scheme)) {
      one.picture = null;
      return figure.refuse(cannot(this.page.catalogue, 'multimodal.cannot', scheme.name, isAble));
    }
    figure.ask(async (get) => {
      const segments = segmentsOf(config);
      const body = bodyFor(this.page.catalogue, '/encode', config);
      const whole = get(
        { path: '/encode', body: { ...body, outputs: [IDS, DELTA], slice: { [IDS]: [null, [0, TOKENS_MAX]] } } },
        { as: 'json' }
      );
      const starts = await Promise.all([whole, ...this.#lengths(get, body, segments)]);
      if (this.slots.has(slot)) this.#take(slot, segments, starts);
    });
  }

  /* How many tokens there are up to the end of each segment: as many as a sequence has that ends there. Without
   * segments: in all. */
  #lengths(get, body, segments) {
    const parts = segments?.map((_, i) => ({ segments: segments.slice(0, i + 1) })) ?? [{}];
    return parts.map(async (part) => {
      const { tensors } = await get({ path: '/encode', body: { ...body, ...part, outputs: [IDS], data: false } },
        { as: 'json' });
      return tensors[IDS].shape[1];
    });
  }

  #take(slot, segments, [answer, ...ends]) {
    const one = this.slots.get(slot);
    const { tensors, config, hf_config } = answer;
    const axes = tensors[IDS].data.map((ids) => ids.map(Number));
    if (!one.picture) one.strip.selectGrid();
    one.picture = {
      scheme: config.scheme, axes, delta: tensors[DELTA]?.data, segments: segments ?? [], ends, n: ends.at(-1),
      shown: axes[0].length,
    };
    if (segments) one.strip.learn(segments, ends, config.spatial_merge_size);
    this.page.publish(slot, { config, hf_config, tensors: {} });
    for (const [other] of this.drawn()) this.#drawOne(other);
    one.grids.replaceChildren(...gridsOf(one.picture));
    one.chart.figure.drawn();
    this.#showCursor();
  }

  /* All figures have one range of ids. */
  #drawOne(slot) {
    const { chart, picture: { axes, scheme, segments, ends, shown } } = this.slots.get(slot);
    const tokens = axes[0].map((_, i) => i);
    const series = axes.map((ids, i) => ({
      id: `${slot}:${axisOf(axes, i)}`, name: word(`multimodal.${axisOf(axes, i)}`), translate: 'yes',
      color: (theme) => colorOf(i, theme), dash: dashOf(i), width: shown <= DOTS_MAX ? WIDTHS[i] : 1.5,
      x: tokens, y: ids, dots: shown <= DOTS_MAX ? ids.map((id, at) => [at, id]) : null,
    }));
    const bands = segments.flatMap(
      ({ grid }, i) => grid ? [{ axis: 'x', from: (ends[i - 1] ?? 0) - 0.5, to: Math.min(ends[i], shown) - 0.5 }] : []
    );
    chart.draw(series, {
      xLabel: word('multimodal.token'), yLabel: word('multimodal.id'), whole: true, xRange: [-0.5, shown - 0.5], bands,
      yRange: roomy(extent(this.drawn().flatMap(([, { picture }]) => picture.axes))),
      cell: (line, i) => ({ row: series.indexOf(line), col: i }),
    });
    chart.rename(word('multimodal.label', { scheme, slot, n: shown }), this.page.catalogue.scheme(scheme), IDS);
    this.#align(slot);
  }

  /* Each block stands over its tokens. */
  #align(slot) {
    const { chart, strip } = this.slots.get(slot) ?? {};
    const { x0, w } = chart?.canvas.dataset ?? {};
    const dense = devicePixelRatio || 1;
    if (w) strip.place(x0 / dense, w / dense);
  }

  #showCursor() {
    for (const [, { chart, picture }] of this.drawn()) {
      const token = Math.min(this.state.cur[1], picture.shown - 1);
      chart.setCursor(token);
      chart.figure.caption.replaceChildren(...captionOf(picture, token));
    }
  }

  /* ---- for the page ---- */

  request(slot) {
    const config = this.page.config(slot);
    return config
      ? { path: '/encode', body: { ...bodyFor(this.page.catalogue, '/encode', config), outputs: [IDS] } }
      : null;
  }
}

const segmentsOf = ({ segments }) => Array.isArray(segments) ? segments : null;
const axisOf = (axes, i) => AXES[axes.length]?.[i] ?? `axis ${i}`;

function captionOf({ axes, delta, n, shown }, token) {
  const ids = make('span', { translate: 'no' }, axes.flatMap(
    (list, i) => [i ? ', ' : '', axes.length > 1 ? `${axisOf(axes, i)[0]} ` : '',
      datum(list[token], axisOf(axes, i), short(list[token], 8))]
  ));
  const parts = [phrase('multimodal.at', { n: String(n), token: String(token), ids })];
  if (delta !== undefined) {
    parts.push(' ',
      phrase('multimodal.delta', { name: name(DELTA), delta: datum(delta, DELTA, short(Number(delta))) }));
  }
  if (n > shown) parts.push(' ', phrase('multimodal.first', { shown: String(shown) }));
  return parts;
}

/* ---- grids: a row for each height id, a column for each width id, in the cells the temporal ids ---- */

function gridsOf({ axes, segments, ends, shown }) {
  if (axes.length !== 3) return [];
  return segments.flatMap((segment, i) => {
    if (!segment.grid || segment.audio_len || ends[i] > shown) return [];
    const frames = framesOf(axes, ends[i - 1] ?? 0, ends[i]);
    return frames.slice(0, FRAMES_MAX)
      .map((rows, frame) => gridOf(rows, word('multimodal.grid', { i: i + 1, frame: frame + 1, n: frames.length })));
  });
}

/* Rows of tokens: one ends where the height id changes or the width id falls, a frame where the time changes or the
 * height falls. */
function framesOf([t, h, w], from, to) {
  const frames = [];
  for (let i = from; i < to; i += 1) {
    const isFirst = i === from;
    if (isFirst || t[i] !== t[i - 1] || h[i] < h[i - 1]) frames.push([]);
    const rows = frames.at(-1);
    if (!rows.length || h[i] !== h[i - 1] || w[i] <= w[i - 1]) rows.push([]);
    rows.at(-1).push({ i, t: t[i], h: h[i], w: w[i] });
  }
  return frames;
}

function gridOf(rows, title) {
  const heads = columns(rows[0].map(({ w }) => short(w, 6)));
  const body = rows.map((tokens) => row(
    short(tokens[0].h, 6), tokens.map(({ i, t, h, w }) => cell(short(t, 6), { token: i, t, h, w }))
  ));
  const axes = make('td', null, name('h \\ w'));
  return mark(scrolling(title, table({ class: 'cells' }, [axes, ...heads], body, make('caption', null, title))),
    { grid: rows[0][0].i });
}

/* ---- the segments as blocks in a row, and controls of the one that is selected: all change the configuration ---- */

const MOVED = 5;          /* pixels of the page: a press that moves less only selects */
const LEN_MAX = 64;       /* of a slider, until a value lies beyond */
const SIDE_MAX = 16;      /* merged patches along a side, likewise */
const NEW = {
  text: () => ({ type: 'text', len: 4 }),
  image: (merge) => ({ type: 'image', grid: [1, 4 * merge, 4 * merge] }),
  video: (merge) => ({ type: 'video', grid: [2, 2 * merge, 2 * merge], second_per_grid: 1 }),
};

const isGrid = (segment) => Array.isArray(segment?.grid);

/* What of a segment can be stretched: [{ key, value, min, max, step, with(value) → the new segment }], the first by its
 * edge. */
function knobsOf(segment, merge) {
  if (!isGrid(segment)) {
    return 'len' in segment
      ? [
        {
          key: 'len', value: segment.len, min: 1, max: Math.max(LEN_MAX, segment.len), step: 1,
          with: (len) => ({ ...segment, len }),
        },
      ]
      : [];
  }
  return ['w', 'h', 't'].map((key, i) => {
    const [at, step] = [2 - i, key === 't' ? 1 : merge];
    return {
      key, value: segment.grid[at], min: step, max: Math.max(SIDE_MAX * step, segment.grid[at]), step,
      with: (value) => ({ ...segment, grid: segment.grid.with(at, value) }),
    };
  }).slice(0, segment.type === 'image' ? 2 : 3);
}

class Strip {
  #counts = new Map();    /* a segment as text: the tokens that the server gave it */
  #shown = '';
  #knobs = [];
  #drag = null;
  merge = 2;

  /* change(segments, undo) */
  constructor(slot, change) {
    Object.assign(this, { slot, change, segments: [], selected: 0 });
    this.blocks = make('div',
      { class: 'segments', role: 'group', 'aria-label': word('multimodal.segments'), 'data-segments': '' });
    this.fields = make('div', { class: 'controls' });
    const button = (edit, text, act) =>
      make('button', { type: 'button', 'data-edit': edit, onclick: act }, text ?? word(`multimodal.${edit}`));
    this.buttons = [button('earlier', null, () => this.#move(this.selected - 1)),
      button('later', null, () => this.#move(this.selected + 1)),
      button('drop', null, () => this.change(this.segments.toSpliced(this.selected, 1)))];
    const adding = Object.keys(NEW).map((type) => button(type, name(type), () => this.#add(NEW[type](this.merge))));
    this.editor = make('div', { class: 'segment-editor' }, this.fields,
      make('div', { class: 'toolbar' }, this.buttons, make('span', { class: 'hint' }, word('multimodal.add')), adding));
    this.#listen();
  }

  /* segments of the configuration; null: it has none. */
  show(segments) {
    this.segments = segments ?? [];
    this.selected = Math.max(0, Math.min(this.selected, this.segments.length - 1));
    for (const element of [this.blocks, this.editor]) element.hidden = !segments;
    this.#drawBlocks();
    this.#showFields();
  }

  /* The first picture selects what is most worth stretching. */
  selectGrid() { this.selected = Math.max(0, this.segments.findIndex(isGrid)); }

  /* ends: of each segment, the tokens before its end. */
  learn(segments, ends, merge) {
    segments.forEach((segment, i) => this.#counts.set(JSON.stringify(segment), ends[i] - (ends[i - 1] ?? 0)));
    this.merge = merge ?? this.merge;
    this.show(this.segments.length ? this.segments : null);
  }

  /* Over the plot of the chart: from pixel `left`, `width` long. */
  place(left, width) {
    this.blocks.style.setProperty('margin-inline-start', `${left}px`);
    this.blocks.style.setProperty('width', `${width}px`);
  }

  /* ---- blocks ---- */

  #drawBlocks() {
    const shown = JSON.stringify([
      this.segments, this.selected, this.segments.map((one) => this.#counts.get(JSON.stringify(one))),
    ]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const had = this.blocks.contains(document.activeElement);
    this.blocks.replaceChildren(...this.segments.map((segment, i) => this.#block(segment, i)));
    if (had) this.blocks.children[this.selected]?.focus({ preventScroll: true });
  }

  #block(segment, i) {
    const count = this.#counts.get(JSON.stringify(segment)) ?? '';
    const said = word('multimodal.block',
      { i: i + 1, type: segment.type, size: isGrid(segment) ? segment.grid.join(' × ') : '', count });
    const block = make('button',
      {
        type: 'button', class: 'segment', 'aria-pressed': String(i === this.selected), 'aria-label': said, title: said,
        onclick: () => this.#select(i),
      },
      name(`${segment.type} ${count}`), make('i', { class: 'segment-edge', 'aria-hidden': 'true' }));
    block.style.setProperty('flex-grow', count || 1);
    return mark(block, { segment: i, type: segment.type, count });
  }

  #select(i) {
    if (i === this.selected) return;
    this.selected = i;
    this.show(this.segments);
  }

  /* ---- changes ---- */

  #replace(i, segment) { this.change(this.segments.map((one, j) => j === i ? segment : one), `segment${i}`); }

  #move(to) {
    const segments = [...this.segments];
    const [moved] = segments.splice(this.selected, 1);
    segments.splice(to, 0, moved);
    this.selected = to;
    this.change(segments, 'segments');
  }

  #add(segment) {
    const at = this.segments.length ? this.selected + 1 : 0;
    this.selected = at;
    this.change(this.segments.toSpliced(at, 0, segment));
  }

  /* ---- controls ---- */

  #showFields() {
    const segment = this.segments[this.selected];
    const knobs = segment ? knobsOf(segment, this.merge) : [];
    const key = knobs.map((knob) => knob.key).join();
    if (this.fields.dataset.key !== key) {
      this.fields.dataset.key = key;
      this.sliders = knobs.map((knob, at) => sliderField(
        {
          name: knob.key, config: this.slot, text: word(`multimodal.${knob.key}`),
          move: (value) => this.#replace(this.selected, this.#knobs[at].with(value)),
        }
      ));
      this.fields.replaceChildren(...this.sliders.map(({ element }) => element));
    }
    this.#knobs = knobs;
    knobs.forEach((knob, at) => this.sliders[at].show(knob));
    const { selected, segments: { length } } = this;
    [!selected, selected >= length - 1, length < 2].forEach((disabled, i) => { this.buttons[i].disabled = disabled; });
  }

  /* ---- dragging: an edge stretches, a block changes places with its neighbours ---- */

  #listen() {
    const { blocks } = this;
    blocks.addEventListener('pointerdown', (event) => {
      const block = event.target.closest('.segment');
      if (!block || event.button) return;
      event.preventDefault();
      const i = Number(block.dataset.segment);
      this.#select(i);
      blocks.children[i].focus({ preventScroll: true });
      blocks.setPointerCapture(event.pointerId);
      const [knob] = knobsOf(this.segments[i], this.merge);
      this.#drag = {
        from: event.clientX, knob: event.target.matches('.segment-edge') ? knob : null,
        width: block.getBoundingClientRect().width,
      };
    });
    blocks.addEventListener('pointermove', (event) => {
      if (!this.#drag || Math.abs(event.clientX - this.#drag.from) < MOVED) return;
      if (this.#drag.knob) this.#stretch(this.#drag, event.clientX);
      else this.#carry(event.clientX);
    });
    for (const end of ['pointerup', 'pointercancel']) blocks.addEventListener(end, () => { this.#drag = null; });
  }

  /* The knob's value that is as much longer as the block would be. */
  #stretch({ from, knob, width }, x) {
    const wanted = Math.round(knob.value * (width + x - from) / width / knob.step) * knob.step;
    const value = Math.max(knob.min, wanted);
    if (value !== this.#knobs[0].value) this.#replace(this.selected, this.#knobs[0].with(value));
  }

  #carry(x) {
    const middle = (i) => {
      const { left, right } = this.blocks.children[i].getBoundingClientRect();
      return (left + right) / 2;
    };
    if (this.selected > 0 && x < middle(this.selected - 1)) this.#move(this.selected - 1);
    else if (this.selected < this.segments.length - 1 && x > middle(this.selected + 1)) this.#move(this.selected + 1);
  }
}

export default {
  name: 'multimodal', path: '/encode',
  example: () => ({
    a: {
      preset: 'qwen2.5-vl',
      segments: [{ type: 'text', len: 6 }, { type: 'image', grid: [1, 8, 12] }, { type: 'text', len: 6 }],
    },
  }),
  open: (page, root) => new Multimodal(page, root),
};
