/* The segments of a sequence as blocks in a row, and controls of the one that is selected: all change the configuration. */
import { make, mark } from '../dom.js';
import { live, word } from '../words.js';
import { sliderField } from './controls.js';

const MOVED = 5;          /* pixels of the page: a press that moves less only selects */
const LEN_MAX = 64;       /* of a slider, until a value lies beyond */
const SIDE_MAX = 16;      /* merged patches along a side, likewise */
const NEW = {
  text: () => ({ type: 'text', len: 4 }),
  image: (merge) => ({ type: 'image', grid: [1, 4 * merge, 4 * merge] }),
  video: (merge) => ({ type: 'video', grid: [2, 2 * merge, 2 * merge], second_per_grid: 1 }),
};

const isGrid = (segment) => Array.isArray(segment?.grid);
export const typeName = (type) => live(() => type in NEW ? String(word(`multimodal.${type}`)) : type);

/* What of a segment can be stretched: [{ key, value, min, max, step, whole, with(value) → the new segment }], the first by its edge. */
function knobsOf(segment, merge) {
  const knob = (key, value, more, put) => ({ key, value, min: 1, step: 1, whole: true, max: Math.max(LEN_MAX, value), ...more, with: put ?? ((next) => ({ ...segment, [key]: next })) });
  const side = (key, at) => {
    const step = at ? merge : 1;
    return knob(key, segment.grid[at], { min: step, step, max: Math.max(SIDE_MAX * step, segment.grid[at]) }, (next) => ({ ...segment, grid: segment.grid.map((one, i) => i === at ? next : one) }));
  };
  const grid = isGrid(segment) ? [side('w', 2), side('h', 1), ...segment.type === 'image' ? [] : [side('t', 0)]] : [];
  const lengths = ['len', 'mel_frames', 'audio_len'].filter((key) => Number.isFinite(segment[key])).map((key) => knob(key, segment[key]));
  const pace = Number.isFinite(segment.second_per_grid) ? [knob('second_per_grid', segment.second_per_grid, { min: 0.1, step: 0.1, max: Math.max(4, segment.second_per_grid), whole: false })] : [];
  return [...grid, ...lengths, ...pace];
}

export class Strip {
  #counts = new Map();    /* a segment as text: the tokens that the server gave it */
  #shown = '';
  #knobs = [];
  #drag = null;
  merge = 2;

  /* change(segments, undo) */
  constructor(slot, change) {
    Object.assign(this, { slot, change, segments: [], selected: 0 });
    this.blocks = make('div', { class: 'segments', role: 'group', 'aria-label': word('multimodal.segments'), 'data-segments': '' });
    this.fields = make('div', { class: 'controls' });
    const button = (edit, text, act) => make('button', { type: 'button', 'data-edit': edit, onclick: act }, text);
    this.buttons = {
      earlier: button('earlier', word('multimodal.earlier'), () => this.#move(this.selected - 1)),
      later: button('later', word('multimodal.later'), () => this.#move(this.selected + 1)),
      drop: button('drop', word('multimodal.drop'), () => this.#drop()),
    };
    const adding = Object.keys(NEW).map((type) => button(type, typeName(type), () => this.#add(NEW[type](this.merge))));
    this.editor = make('div', { class: 'segment-editor' }, this.fields, make('div', { class: 'toolbar' }, Object.values(this.buttons), make('span', { class: 'hint' }, word('multimodal.add')), adding));
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
    const shown = JSON.stringify([this.segments, this.selected, this.segments.map((one) => this.#counts.get(JSON.stringify(one)))]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const had = this.blocks.contains(document.activeElement);
    this.blocks.replaceChildren(...this.segments.map((segment, i) => this.#block(segment, i)));
    if (had) this.blocks.children[this.selected]?.focus({ preventScroll: true });
  }

  #block(segment, i) {
    const count = this.#counts.get(JSON.stringify(segment)) ?? '';
    const type = typeName(segment.type);
    const said = word('multimodal.block', { i: i + 1, type, size: isGrid(segment) ? segment.grid.join(' × ') : '', count });
    const block = make('button', { type: 'button', class: 'segment', 'aria-pressed': String(i === this.selected), 'aria-label': said, title: said, onclick: () => this.#select(i) },
      make('span', null, type), ' ', make('span', null, String(count)), make('i', { class: 'segment-edge', 'aria-hidden': 'true' }));
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

  #drop() { this.change(this.segments.toSpliced(this.selected, 1)); }

  /* ---- controls ---- */

  #showFields() {
    const segment = this.segments[this.selected];
    const knobs = segment ? knobsOf(segment, this.merge) : [];
    const keys = (list) => list.map(({ key }) => key).join();
    const key = `${this.selected} ${keys(knobs)}`;
    if (this.fields.dataset.key !== key) {
      this.fields.dataset.key = key;
      this.sliders = knobs.map(({ key: name, whole }, at) => sliderField({ name, config: this.slot, whole, text: word(`multimodal.${name}`), move: (value) => this.#replace(this.selected, this.#knobs[at].with(value)) }));
      this.fields.replaceChildren(...this.sliders.map(({ element }) => element));
    }
    this.#knobs = knobs;
    knobs.forEach((knob, at) => this.sliders[at].show(knob));
    this.buttons.earlier.disabled = this.selected === 0;
    this.buttons.later.disabled = this.selected >= this.segments.length - 1;
    this.buttons.drop.disabled = this.segments.length < 2;
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
      this.#drag = { from: event.clientX, knob: event.target.matches('.segment-edge') ? knob : null, width: block.getBoundingClientRect().width };
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
