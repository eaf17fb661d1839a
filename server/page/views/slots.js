/* The figures of a view, one a configuration and one for the difference b - a, side by side in their order. */
import { styleOf } from '../dom.js';
import { dashOf } from '../draw/series.js';
import { SLOTS } from '../state.js';
import { language, live, word } from '../words.js';

/* How the line of a configuration looks; a is solid. */
export const dashOfSlot = (slot) => dashOf(Math.max(0, SLOTS.indexOf(slot)));
export const colorOfSlot = (slot) => styleOf(`--${slot === 'b-a' ? 'link' : slot}`);

/* Slots of the configurations in front, with what each figure shows: [[slot, [config]], ..., ['b-a', [b, a]]]. */
export function wantedOf(page) {
  const configs = page.configs();
  const both = ['b', 'a'].map((slot) => configs.find(([one]) => one === slot)?.[1]);
  const list = configs.map(([slot, config]) => [slot, [config]]);
  return page.store.state.on === 'b-a' && both.every(Boolean) ? [...list, ['b-a', both]] : list;
}

/* What a metric is for, where it does not fit the configuration. row: of the metric. */
export const appliesTo = (row) =>
  word('curves.applies', { what: live(() => (language() === 'zh' && row.applies_to_zh) || row.applies_to) });

export class Slots {
  #all = new Map();

  /* build(slot) → { element, close() } and whatever its view wants. */
  constructor(place, build) { Object.assign(this, { place, build }); }

  get(slot) { return this.#all.get(slot); }
  has(slot) { return this.#all.has(slot); }
  entries() { return [...this.#all]; }
  values() { return [...this.#all.values()]; }

  /* What is under the pointer in one chart is shown in all. */
  hover(x) { for (const { chart } of this.values()) chart.setHover(x); }

  sync(slots) {
    for (const [slot, one] of this.#all) if (!slots.includes(slot)) this.#drop(slot, one);
    for (const slot of slots) if (!this.#all.has(slot)) this.#all.set(slot, this.build(slot));
    const elements = slots.map((slot) => this.#all.get(slot).element);
    if (elements.some((element, i) => this.place.children[i] !== element)) this.place.append(...elements);
  }

  #drop(slot, one) {
    one.close();
    this.#all.delete(slot);
  }

  close() { this.sync([]); }
}
