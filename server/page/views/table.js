/* The view `table`: any output as a heat map, one figure a configuration, with the row and the column through the cursor
 * as lines below. With on=b-a the difference of the first two stands beside them. */
import { make } from '../dom.js';
import { HeatMap, Scale } from '../heatmap.js';
import { frontChooser } from '../heat/toolbar.js';
import { Strips } from './table_strips.js';

const PATH = '/encode';

const example = () => ({ a: { scheme: 'sinusoidal', len: 128, dim: 64 } });

class Table {
  constructor(page, root) {
    this.page = page;
    this.maps = new Map();   /* slot or 'b-a': HeatMap */
    this.scale = new Scale();
    this.chooser = frontChooser(page);
    this.figures = make('div', { class: 'figures aligned' });
    this.strips = new Strips(page);
    root.append(this.chooser.element, this.figures, this.strips.element);
  }

  update(state) {
    const specs = this.#specs(state);
    for (const slot of this.maps.keys()) if (!specs.has(slot)) this.#remove(slot);
    for (const slot of specs.keys()) this.#mapOf(slot, specs);
    for (const [slot, spec] of specs) this.maps.get(slot).show(spec);
    this.chooser.update();
    this.strips.update([...specs.keys()].map((slot) => [slot, this.maps.get(slot)]));
  }

  /* What each figure shows, in their order on the page. */
  #specs(state) {
    const specs = new Map(this.page.configs().map(([slot, config]) => [slot, this.#spec(config)]));
    const [a, b] = [specs.get('a'), specs.get('b')];
    return state.on === 'b-a' && a && b ? new Map([['b-a', { of: [b, a] }], ...specs]) : specs;
  }

  #spec(config) { return { path: PATH, body: this.page.catalogue.requestFor(PATH, config), output: this.page.store.state.out }; }

  /* The first of the figures has the controls; the others share them. */
  #mapOf(slot, specs) {
    const order = [...specs.keys()];
    const known = this.maps.get(slot);
    const quiet = order[0] !== slot;
    if (known?.quiet === quiet) return;
    known?.close();
    const map = new HeatMap(this.page, { view: 'table', slot, quiet, outputs: true, companion: this.strips, scale: slot === 'b-a' ? new Scale() : this.scale });
    this.maps.set(slot, map);
    const next = order.slice(order.indexOf(slot) + 1).map((one) => this.maps.get(one)?.element).find(Boolean);
    this.figures.insertBefore(map.element, next ?? null);
  }

  #remove(slot) {
    this.maps.get(slot).close();
    this.maps.delete(slot);
  }

  request(slot) {
    const config = new Map(this.page.configs()).get(slot);
    if (!config) return null;
    const { body } = this.#spec(config);
    const name = this.maps.get(slot)?.about?.name;
    return { path: PATH, body: name ? { ...body, outputs: [name] } : body };
  }

  close() {
    for (const map of this.maps.values()) map.close();
    this.strips.close();
  }
}

export default { name: 'table', own: [], path: PATH, most: 4, difference: true, forms: true, example, open: (page, root) => new Table(page, root) };
