/* Keys of a heat map, while its canvas has the focus (PAGE §8), and what is said about the cell once they rest. */
import { hover } from './hovering.js';
import { word } from '../words.js';

const REST_MS = 250;
const ZOOM = 1.6;
const REDUCTIONS = ['mean', 'min', 'max', 'absmax', 'sample'];

const after = (list, one) => list[(list.indexOf(one) + 1) % list.length];

/* key: what it does to the moves of a map, the map, and the state's store. */
const KEYS = {
  ArrowLeft: (moves) => moves.step(0, -1),
  ArrowRight: (moves) => moves.step(0, 1),
  ArrowUp: (moves) => moves.step(-1, 0),
  ArrowDown: (moves) => moves.step(1, 0),
  PageUp: (moves) => moves.page(-1),
  PageDown: (moves) => moves.page(1),
  Home: (moves) => moves.to(null, 0),
  End: (moves) => moves.to(null, Infinity),
  'Ctrl+Home': (moves) => moves.to(0, 0),
  'Ctrl+End': (moves) => moves.to(Infinity, Infinity),
  '[': (moves) => moves.step(-1, 0),
  ']': (moves) => moves.step(1, 0),
  '+': (moves) => moves.zoom(ZOOM),
  '=': (moves) => moves.zoom(ZOOM),
  '-': (moves) => moves.zoom(1 / ZOOM),
  0: (moves) => moves.fit(),
  1: (moves) => moves.one(),
  r: (moves, map, store) => store.set({ red: after(REDUCTIONS, store.state.red) }, { undo: 'red' }),
  m: (moves, map, store) => store.set({ cmap: after(Object.keys(map.page.catalogue.catalogue().cmaps), map.canvas.dataset.cmap) }, { undo: 'cmap' }),
  t: (moves, map) => { map.figure.table.open = !map.figure.table.open; },
  c: (moves, map) => map.keys.copy(),
  '?': (moves, map) => map.page.help?.(),
};

export class Keys {
  #timer = null;
  #rested = false;   /* keys rest, and the cell has not been spoken of */

  constructor(map) { this.map = map; }

  /* True if the key meant something here. */
  press(event) {
    const name = event.ctrlKey ? `Ctrl+${event.key}` : event.key;
    if (!Object.hasOwn(KEYS, name)) return false;
    hover(null);
    KEYS[name](this.map.moves, this.map, this.map.page.store);
    clearTimeout(this.#timer);
    if (!'rmtc?'.includes(name)) this.#timer = setTimeout(() => this.#rest(), REST_MS);
    return true;
  }

  #rest() {
    this.#rested = true;
    this.say();
  }

  /* Called again when the value has come. */
  say() {
    const { readout, page } = this.map;
    if (!this.#rested || readout.text === null) return;
    this.#rested = false;
    page.announce(word('heat.says', { where: readout.where.textContent, value: readout.output.textContent }));
  }

  async copy() {
    const { readout, page } = this.map;
    if (!readout.text) return;
    await navigator.clipboard?.writeText(readout.text);
    page.announce(word('panel.copied'));
  }

  close() { clearTimeout(this.#timer); }
}
