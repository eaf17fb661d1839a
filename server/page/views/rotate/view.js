/* The view `rotate`: q at position m and k at position n as the hands of small clocks, one clock per pair of channels.
 * This file owns the two positions, their controls and the player; draw.js the clocks of a configuration. */
import { make } from '../../dom.js';
import { word } from '../../words.js';
import { Player, sliderField } from '../controls.js';
import { rotation, widthOf } from './ask.js';
import { Clocks } from './draw.js';
import { Slots } from '../slots.js';

const START = { m: 9, n: 6 };
const SPAN = 64;              /* positions of a slider, until a position lies beyond */
const STEP_MS = 110;          /* of the player */
const POSITION_MAX = 2 ** 40; /* of the API */

const example = () => ({ a: { scheme: 'rope', head_dim: 32 } });

/* The positions of the address, or where the hands start. */
function positionsOf({ own }) {
  const of = (key) => own[key] === undefined ? START[key] : Number(own[key]);
  return { m: of('m'), n: of('n') };
}

/* The end of a slider that reaches a position: doubled until it does. */
function spanOf(position) {
  let span = SPAN;
  while (span < position) span *= 2;
  return span;
}

class Rotate {
  constructor(page, root) {
    this.page = page;
    this.#makeControls();
    this.figures = make('div', { class: 'figures' });
    this.clocks = new Slots(this.figures, (slot) => new Clocks(this, slot));
    root.append(this.controls, this.figures);
  }

  #makeControls() {
    const slider = (name, move) => sliderField({ name, text: word(`rotate.${name}`), whole: false, move });
    this.sliders = {
      m: slider('m', (m) => this.move({ m }, 'own.m')),
      n: slider('n', (n) => this.move({ n }, 'own.n')),
      both: slider('both', (least) => this.#shiftTo(least)),
    };
    this.player = new Player({ step: () => this.#play(), ms: STEP_MS });
    this.controls = make('div', { class: 'controls' }, Object.values(this.sliders).map(({ element }) => element),
      this.player.element);
  }

  /* ---- positions ---- */

  /* Moves q's position, k's or both; `undo` names the control. */
  move(change, undo) {
    const texts = Object.entries(change)
      .map(([key, value]) => [key, String(Math.max(-POSITION_MAX, Math.min(POSITION_MAX, value)))]);
    this.page.setOwn(Object.fromEntries(texts), undo);
  }

  step(dm, dn, undo) {
    const { m, n } = positionsOf(this.page.store.state);
    this.move({ m: m + dm, n: n + dn }, undo);
  }

  /* Both move; the lesser one stands where the slider is. */
  #shiftTo(least) {
    const { m, n } = positionsOf(this.page.store.state);
    this.step(least - Math.min(m, n), least - Math.min(m, n), 'rotate.both');
  }

  update(state) {
    const configs = this.page.configs();
    const positions = positionsOf(state);
    this.clocks.sync(configs.map(([slot]) => slot));
    for (const [slot, config] of configs) this.clocks.get(slot).update(config, positions);
    for (const [key, value] of Object.entries({ ...positions, both: Math.min(positions.m, positions.n) })) {
      this.sliders[key].show({ value, min: Math.min(0, value), max: spanOf(value) });
    }
  }

  request(slot) {
    const config = this.page.config(slot);
    const width = config && (widthOf(this.page.catalogue, config) ?? this.clocks.get(slot)?.width);
    if (!width) return null;
    const { body, path } = rotation(this.page.catalogue, config, width, positionsOf(this.page.store.state));
    return { path, body: { ...body, outputs: [this.page.store.state.out === 'k' ? 'k' : 'q'] } };
  }

  /* The player shifts both positions, one step a picture; one that waits for its server is not overtaken. */
  toggle() { this.player.toggle(); }

  async #play() {
    if (this.clocks.values().every((clocks) => clocks.isShown())) this.step(1, 1, 'rotate.play');
    await Promise.all(this.clocks.values().map((clocks) => clocks.settled));
  }

  close() {
    this.player.close();
    this.clocks.close();
  }
}

export default {
  name: 'rotate', path: '/rotate', setsSequence: true, example, open: (page, root) => new Rotate(page, root),
};
