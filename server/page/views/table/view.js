/* The view `table`: any output as a heat map, one figure a configuration, with the row and the column through the
 * cursor as lines below. With on=b-a the difference of the first two stands beside them. */
import { make } from '../../dom.js';
import { HeatMap, Scale } from '../../heat/heatmap.js';
import { frontChooser } from '../../heat/toolbar.js';
import { bodyFor } from '../parts.js';
import { Slots, wantedOf } from '../slots.js';
import { Strips } from './draw.js';

const PATH = '/encode';
const SHIFT = 'shift_matrix';   /* an output of /analyze: what turns each row into the one `k` further on */

const example = () => ({ a: { scheme: 'sinusoidal', len: 128, dim: 64 } });

class Table {
  constructor(page, root) {
    this.page = page;
    this.scale = new Scale();
    this.chooser = frontChooser(page);
    this.strips = new Strips(page);
    const figures = make('div', { class: 'figures aligned' });
    this.maps = new Slots(figures, (slot) => this.#build(slot));
    root.append(this.chooser.element, figures, this.strips.element);
  }

  #build(slot) {
    const scale = slot === 'b-a' ? new Scale() : this.scale;
    return new HeatMap(this.page,
      { view: 'table', slot, scale, quiet: this.#isQuiet(slot), outputs: true, companion: this.strips });
  }

  /* The first configuration has the controls that all share, and the difference, which stands above them. */
  #isQuiet(slot) { return slot !== 'b-a' && slot !== this.page.store.slots()[0]; }

  update() {
    const wanted = wantedOf(this.page);
    if (wanted.at(-1)?.[0] === 'b-a') wanted.unshift(wanted.pop());
    const slots = wanted.map(([slot]) => slot);
    this.maps.sync(slots.filter((slot) => this.maps.get(slot)?.quiet === this.#isQuiet(slot)));
    this.maps.sync(slots);
    for (const [slot, configs] of wanted) {
      const specs = configs.map((config) => this.#spec(config));
      this.maps.get(slot).show(specs.length > 1 ? { of: specs } : specs[0]);
    }
    this.chooser.update();
    this.strips.update(slots.map((slot) => [slot, this.maps.get(slot)]));
  }

  #spec(config) {
    const { catalogue, store } = this.page;
    if (store.state.out !== SHIFT) return { path: PATH, body: catalogue.requestFor(PATH, config) };
    const body = {
      ...bodyFor(catalogue, '/analyze', config), metrics: ['shift'], k: [config.k ?? 1], outputs: [SHIFT],
    };
    return { path: '/analyze', body, output: SHIFT, axes: ['dim', 'dim'], square: true };
  }

  request(slot) {
    const config = this.page.config(slot);
    if (!config) return null;
    const { path, body, output } = this.#spec(config);
    const name = output ?? this.maps.get(slot)?.about?.name;
    return { path, body: name ? { ...body, outputs: [name] } : body };
  }

  close() {
    this.maps.close();
    this.strips.close();
  }
}

export default { name: 'table', path: PATH, example, open: (page, root) => new Table(page, root) };
