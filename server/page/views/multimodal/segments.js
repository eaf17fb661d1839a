/* The segments as blocks in a row, and controls of the one that is selected: all change the configuration. */
import { make, mark, name } from '../../dom.js';
import { word } from '../../words.js';
import { sliderField } from '../controls.js';

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
    if (!('len' in segment)) return [];
    const max = Math.max(LEN_MAX, segment.len);
    return [{ key: 'len', value: segment.len, min: 1, max, step: 1, with: (len) => ({ ...segment, len }) }];
  }
  return ['w', 'h', 't'].map((key, i) => {
    const [at, step] = [2 - i, key === 't' ? 1 : merge];
    return {
      key, value: segment.grid[at], min: step, max: Math.max(SIDE_MAX * step, segment.grid[at]), step,
      with: (value) => ({ ...segment, grid: segment.grid.with(at, value) }),
    };
  }).slice(0, segment.type === 'image' ? 2 : 3);
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
    this.blocks = make('div',
      { class: 'segments', role: 'group', 'aria-label': word('multimodal.segments'), 'data-segments': '' });
    this.fields = make('div', { class: 'controls' });
    const button = (edit, text, act) =>
      make('button', { type: 'button', 'data-edit': edit, onclick: act }, text ?? word(`multimodal.${edit}`));
    this.buttons = [button('earlier', null, () => this.#move(this.selected - 1)),
      button('later', null, () => this.#move(this.selected + 1)),
      button('drop', null, () => this.change(this.segments.toSpliced(this.selected, 1)))];
    this.adding = Object.keys(NEW).map((type) => button(type, name(type), () => this.#add(NEW[type](this.merge))));
    this.editor = make('div', { class: 'segment-editor' }, this.fields,
      make('div', { class: 'toolbar' }, this.buttons, make('span', { class: 'hint' }, word('multimodal.add')), this.adding));
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

  /* types: those that the model has; null: all. */
  offer(types) {
    for (const button of this.adding) button.hidden = Boolean(types) && !types.includes(button.dataset.edit);
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
      { i: i + 1, type: segment.type, size: isGrid(segment) ? `(${segment.grid.join(' × ')})` : '', count });
    const block = make('button', {
      type: 'button', class: 'segment', 'aria-pressed': String(i === this.selected), 'aria-label': said, title: said,
      onclick: () => this.#select(i),
    }, name(`${segment.type} ${count}`), make('i', { class: 'segment-edge', 'aria-hidden': 'true' }));
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
      this.sliders = knobs.map((knob, at) => sliderField({
        name: knob.key, config: this.slot, text: word(`multimodal.${knob.key}`),
        move: (value) => this.#replace(this.selected, this.#knobs[at].with(value)),
      }));
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
