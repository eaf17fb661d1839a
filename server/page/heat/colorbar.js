/* The colours of a heat map and what they stand for: [data-colorbar], with fields for the ends of the range and the choice
 * of the map where `fields` are wanted. */
import { lookup } from '../draw/colors.js';
import { short, ticks } from '../draw/numbers.js';
import { make, mark } from '../dom.js';
import { bind, word } from '../words.js';

const TICK_PX = 56;   /* room for the text of one */

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
    const key = JSON.stringify([min, max, cmap, lo, hi, Math.round(this.canvas.clientWidth / TICK_PX)]);
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

  /* The ends are ticks of their own, unless their fields say them. */
  #writeTicks(min, max) {
    const span = max - min || 1;
    const most = Math.max(1, Math.floor(this.canvas.clientWidth / TICK_PX));
    const inner = ticks(min, max, most).filter((value) => Math.min(value - min, max - value) > span * 0.08);
    const values = this.ends.lo ? inner : max > min ? [min, ...inner, max] : [min];
    this.ticks.replaceChildren(...values.map((value) => {
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
