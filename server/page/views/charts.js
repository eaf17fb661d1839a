/* The base of views of lines over an axis: a chart for each configuration and one for the difference b - a. */
import { Chart } from '../chart.js';
import { make } from '../dom.js';
import { word } from '../words.js';
import { Slots } from './slots.js';

export class Charts {
  #asked = '';   /* what was asked last, as text */

  constructor(page, view) {
    Object.assign(this, { page, view, place: make('div', { class: 'figures' }) });
    this.slots = new Slots(this.place, (slot) => this.build(slot));
  }

  get state() { return this.page.store.state; }

  /* The configuration that controls show and change. */
  front() { return this.page.config(this.page.front()); }

  /* What a figure has; the view adds its own. options: of its chart. */
  build(slot, options) {
    const chart = new Chart(this.page, { view: this.view, slot, label: word(`view.${this.view}`), onHover: (x) => this.slots.hover(x), ...options });
    return { chart, picture: null, element: chart.figure.element, close: () => chart.close() };
  }

  /* Is this other than what was asked last? Then it counts as asked. */
  isNew(...about) {
    const before = this.#asked;
    this.#asked = JSON.stringify(about);
    return this.#asked !== before;
  }

  /* [[slot, { chart, picture }]] of the figures that have a picture. */
  drawn() { return this.slots.entries().filter(([, { picture }]) => picture); }

  close() { this.slots.close(); }
}
