/* The colours of a heat map and what they stand for: [data-colorbar], with fields for the ends of the range and the choice
 * of the map where `fields` are wanted. */
import { lookup } from '../draw/colors.js';
import { short, ticks } from '../draw/numbers.js';
import { make, mark } from '../dom.js';
import { bind, word } from '../words.js';

const TICKS = 5;

export class ColorBar {
  #shown = '';

  constructor(page, { fields }) {
    this.page = page;
    this.canvas = make('canvas', { width: 255, height: 1, 'aria-hidden': 'true' });
    this.ticks = make('div', { class: 'colorbar-ticks', translate: 'no' });
    this.bar = make('div', { class: 'colorbar-bar', 'data-colorbar': '', role: 'img' }, this.canvas, this.ticks);
    this.ends = fields ? { lo: this.#end('lo'), hi: this.#end('hi') } : {};
    this.choice = fields ? this.#choice() : null;
    this.element = make('div', { class: 'colorbar' }, this.ends.lo, this.bar, this.ends.hi, this.choice);
  }

  /* Empty: the range follows the numbers. */
  #end(which) {
    const change = () => {
      const { value } = input;
      const number = value === '' ? null : Number(value);
      const { lo, hi } = { ...this.page.store.state, [which]: number };
      const good = lo === null || hi === null || lo < hi;
      input.setAttribute('aria-invalid', !good);
      if (good) this.page.store.set({ [which]: number }, { undo: which });
    };
    const input = make('input', { type: 'number', step: 'any', class: 'colorbar-end', 'data-field': which, 'aria-label': word(`heat.${which}`),
      title: word(`heat.${which}`), onchange: change });
    return input;
  }

  #choice() {
    const names = Object.keys(this.page.catalogue.catalogue().cmaps);
    return make('select', { 'data-field': 'cmap', 'aria-label': word('heat.cmap'), title: word('heat.cmap'), translate: 'no',
      onchange: (event) => this.page.store.set({ cmap: event.target.value }, { undo: 'cmap' }) },
    names.map((one) => make('option', { value: one }, one)));
  }

  show([min, max], cmap, colors) {
    const { lo, hi } = this.page.store.state;
    const key = JSON.stringify([min, max, cmap, lo, hi]);
    if (key === this.#shown) return;
    this.#shown = key;
    mark(this.bar, { min, max, cmap });
    bind(this.bar, 'aria-label', word('heat.colorbar', { min: short(min), max: short(max), cmap }));
    const image = new ImageData(255, 1);
    new Uint32Array(image.data.buffer).set(lookup(colors).subarray(1));
    this.canvas.getContext('2d').putImageData(image, 0, 0);
    this.#writeTicks(min, max);
    this.#writeFields({ lo, hi }, { lo: min, hi: max }, cmap);
  }

  #writeTicks(min, max) {
    const inner = this.ends.lo ? (value) => value > min && value < max : () => true;
    const values = max > min ? [...new Set([min, ...ticks(min, max, TICKS), max])].filter(inner) : [min];
    const span = max - min || 1;
    const near = (value, i) => values.some((other, j) => j !== i && (other === min || other === max) && value !== min && value !== max && Math.abs(other - value) < span * 0.12);
    this.ticks.replaceChildren(...values.filter((value, i) => !near(value, i)).map((value) => {
      const tick = make('span', null, short(value, 3));
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
