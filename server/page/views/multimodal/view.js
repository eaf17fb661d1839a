/* Multimodal: a sequence of text, images and video as blocks, the position ids of its tokens as lines, an image's ids
 * as a grid; so is a sequence that is a grid itself, whose ids are the model's coordinates. */
import { action, cell, columns, make, mark, name, row, scrolling, table } from '../../dom.js';
import { extent, roomy } from '../../draw/axes.js';
import { short } from '../../draw/numbers.js';
import { colorOf, dashOf } from '../../draw/series.js';
import { shortDatum } from '../../figure.js';
import { withSequence } from '../../forms/edits.js';
import { gap, phrase, word } from '../../words.js';
import { Charts } from '../charts.js';
import { bodyFor, cannot } from '../parts.js';
import { wantedOf } from '../slots.js';
import { Strip } from './segments.js';

const TOKENS_MAX = 4096;
const DOTS_MAX = 128;
const FRAMES_MAX = 4;      /* of a segment that are drawn as grids */
const WIDTHS = [1.5, 2.5, 4, 5.5];  /* of lines that lie on each other, the first one in front: all are seen */
const IDS = 'positions';
const DELTA = 'rope_delta';
const AXES = {
  1: ['one'], 2: ['height', 'width'], 3: ['temporal', 'height', 'width'], 4: ['temporal', 'height', 'width', 'l'],
};
const NO_DELTA = ['axis_scale', 'axis_divisor', 'axis_shift'];   /* coordinates are no positions then */

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
        { path: '/encode', body: { ...body, outputs: [IDS], slice: { [IDS]: [null, [0, TOKENS_MAX]] } } },
        { as: 'json' }
      );
      const starts = await Promise.all([this.#withDelta(get, body, whole), ...this.#lengths(get, body, segments)]);
      if (this.slots.has(slot)) this.#setPicture(slot, segments, starts);
    });
  }

  /* The delta of what decodes: an image generator has none, nor has a grid alone. */
  async #withDelta(get, body, whole) {
    const answer = await whole;
    if (isOnGrid(body) || !hasDelta(answer.config)) return answer;
    const { tensors } = await get({ path: '/encode', body: { ...body, outputs: [DELTA] } }, { as: 'json' });
    return { ...answer, tensors: { ...answer.tensors, ...tensors } };
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

  #setPicture(slot, segments, [answer, ...ends]) {
    const one = this.slots.get(slot);
    const { tensors, config, hf_config } = answer;
    const axes = tensors[IDS].data.map((ids) => ids.map(Number));
    if (!one.picture) one.strip.selectGrid();
    one.picture = {
      scheme: config.scheme, axes, delta: tensors[DELTA]?.data, segments: segments ?? [], ends, n: ends.at(-1),
      shown: axes[0].length, isGrid: !segments && isOnGrid(this.page.config(slot)),
    };
    if (segments) one.strip.learn(segments, ends, isGenerator(config) ? 1 : config.spatial_merge_size);
    one.strip.offer(isGenerator(config) ? ['text', 'image'] : null);
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
    chart.rename(word('multimodal.label', { scheme, slot, n: shown }), this.page.calledBy(slot), IDS);
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
const isOnGrid = ({ grid, grid_coords: lists }) => Array.isArray(grid ?? lists);
/* A style that merges no patches is an image generator's. */
const isGenerator = (config) => config.position_style !== undefined && config.spatial_merge_size === undefined;
const hasDelta = (config) => !isGenerator(config) && !NO_DELTA.some((name) => config[name]);
const axisOf = (axes, i) => AXES[axes.length]?.[i] ?? `axis ${i}`;

function captionOf({ axes, delta, n, shown }, token) {
  const ids = make('span', { translate: 'no' }, axes.flatMap(
    (list, i) => [i ? ', ' : '', axes.length > 1 ? `${axisOf(axes, i)[0]} ` : '',
      shortDatum(list[token], axisOf(axes, i), 8)]
  ));
  const parts = [phrase('multimodal.at', { n: String(n), token: String(token), ids })];
  if (delta !== undefined) {
    parts.push(gap(),
      phrase('multimodal.delta', { name: name(DELTA), delta: shortDatum(delta, DELTA) }));
  }
  if (n > shown) parts.push(gap(), phrase('multimodal.first', { shown: String(shown) }));
  return parts;
}

/* ---- grids: a row for each height id, a column for each width id, in the cells the temporal ids; of two axes the
 * number of the token ---- */

function gridsOf({ axes, segments, ends, shown, isGrid }) {
  if (axes.length < 2) return [];
  const draw = (text, from, to, more) => {
    const frames = framesOf(axes, from, to);
    return frames.slice(0, FRAMES_MAX).map((rows, frame) =>
      gridOf(rows, word(axes.length === 2 ? 'multimodal.plane' : text, { ...more, frame: frame + 1, n: frames.length })));
  };
  if (isGrid) return draw('multimodal.frame', 0, shown);
  return segments.flatMap((segment, i) => segment.grid && !segment.audio_len && ends[i] <= shown
    ? draw('multimodal.grid', ends[i - 1] ?? 0, ends[i], { i: i + 1 })
    : []);
}

/* Rows of tokens: one ends where the height id changes or the width id falls, a frame where the time changes or the
 * height falls. */
function framesOf(axes, from, to) {
  const [t, h, w] = axes.length === 2 ? [axes[0].map(() => 0), ...axes] : axes;
  const frames = [];
  for (let i = from; i < to; i += 1) {
    const isFirst = i === from;
    if (isFirst || t[i] !== t[i - 1] || h[i] < h[i - 1]) frames.push([]);
    const rows = frames.at(-1);
    if (!rows.length || h[i] !== h[i - 1] || w[i] <= w[i - 1]) rows.push([]);
    rows.at(-1).push({ i, t: axes.length === 2 ? i : t[i], h: h[i], w: w[i] });
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
