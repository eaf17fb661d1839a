/* The base of views of lines over an axis: a chart for each configuration and one for the difference b - a. */
import { Chart } from '../chart.js';
import { make } from '../dom.js';
import { word } from '../words.js';
import { Slots, appliesTo, wantedOf } from './slots.js';

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
    const chart = new Chart(this.page,
      { view: this.view, slot, label: word(`view.${this.view}`), onHover: (x) => this.slots.hover(x), ...options });
    return { chart, picture: null, element: chart.figure.element, close: () => chart.close() };
  }

  /* Is this other than what was asked last? Then it counts as asked. */
  isNew(...about) {
    const before = this.#asked;
    this.#asked = JSON.stringify(about);
    return this.#asked !== before;
  }

  /* A figure for each configuration, none for the difference; where something is new, job(get, slot, config) asks and
   * draws. Where the metric does not apply the figure says to what it does. */
  askEach(metric, job, about) {
    const wanted = wantedOf(this.page).filter(([slot]) => slot !== 'b-a');
    this.slots.sync(wanted.map(([slot]) => slot));
    if (!this.isNew(wanted, about)) return;
    for (const [slot, [config]] of wanted) {
      const { chart, picture } = this.slots.get(slot);
      if (!picture) chart.rename(word(`view.${this.view}`), this.page.calledBy(slot), metric);
      chart.figure.ask((get) => job(get, slot, config).catch(
        (error) => this.#inapplicable(slot, metric, error)
      ));
    }
  }

  #inapplicable(slot, metric, error) {
    if (error.problem?.pointer !== '/metrics/0') throw error;
    const one = this.slots.get(slot);
    if (!one) return;
    one.picture = null;
    one.chart.figure.refuse(appliesTo(this.page.catalogue.metric(metric)));
  }

  /* [[slot, { chart, picture }]] of the figures that have a picture. */
  drawn() { return this.slots.entries().filter(([, { picture }]) => picture); }

  close() { this.slots.close(); }
}
