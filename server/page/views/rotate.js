/* The view `rotate`: q at position m and k at position n as the hands of small clocks, one clock per pair of channels.
 * This file owns the two positions, their controls and the player; views/rotate_clocks.js the clocks of a configuration. */
import { action, make, math } from '../dom.js';
import { choicesOf } from '../draw/hands.js';
import { bind, word } from '../words.js';
import { Clocks } from './rotate_clocks.js';
import { rotation } from './rotate_asking.js';

const START = { m: 9, n: 6 };
const SPAN = 64;              /* positions of a slider, until a position lies beyond */
const STEP_MS = 110;          /* of the player */
const POSITION_MAX = 2 ** 40; /* of the API */

const example = () => ({ a: { scheme: 'rope', head_dim: 32 } });

/* A position of the address, or where the hands start. */
const positionOf = (state, key) => state.own[key] === undefined ? START[key] : Number(state.own[key]);
const clamped = (position) => Math.max(-POSITION_MAX, Math.min(POSITION_MAX, position));

export function positionsOf(state) {
  return { m: positionOf(state, 'm'), n: positionOf(state, 'n') };
}

/* The end of a slider that reaches these positions: doubled until it does. */
export function spanOf(...positions) {
  let span = SPAN;
  while (span < Math.max(...positions)) span *= 2;
  return span;
}

class Rotate {
  constructor(page, root) {
    Object.assign(this, { page, clocks: new Map() });
    this.still = matchMedia('(prefers-reduced-motion: reduce)');
    this.controls = new Controls(this);
    this.figures = make('div', { class: 'figures' });
    root.append(this.controls.element, this.figures);
    this.still.addEventListener('change', this.#calm);
    this.#calm();
  }

  /* Moves q's position, k's or both; `undo` names the control. */
  move(change, undo) {
    const { own } = this.page.store.state;
    const texts = Object.entries(change).map(([key, value]) => [key, String(clamped(value))]);
    this.page.store.set({ own: { ...own, ...Object.fromEntries(texts) } }, { undo });
  }

  step(dm, dn, undo) {
    const { m, n } = positionsOf(this.page.store.state);
    this.move({ m: m + dm, n: n + dn }, undo);
  }

  update(state) {
    const configs = new Map(this.page.configs());
    for (const [slot, clocks] of this.clocks) if (!configs.has(slot)) this.#remove(slot, clocks);
    for (const [slot, config] of configs) this.#clocksOf(slot).update(config, positionsOf(state), state.at[0] ?? 0);
    this.figures.append(...[...configs.keys()].map((slot) => this.clocks.get(slot).element));
    this.controls.update(positionsOf(state), state.at[0] ?? 0);
  }

  #clocksOf(slot) {
    if (!this.clocks.has(slot)) this.clocks.set(slot, new Clocks(this, slot));
    return this.clocks.get(slot);
  }

  #remove(slot, clocks) {
    clocks.close();
    this.clocks.delete(slot);
  }

  /* How many pairs a figure has is known with its answer. */
  counted() {
    this.controls.offer(Math.max(...[...this.clocks.values()].map((clocks) => clocks.count)));
  }

  request(slot) {
    const config = new Map(this.page.configs()).get(slot);
    const width = this.clocks.get(slot)?.width;
    if (!config || !width) return null;
    const { body, path } = rotation(this.page.catalogue, config, width, positionsOf(this.page.store.state));
    return { path, body: { ...body, outputs: [this.page.store.state.out === 'k' ? 'k' : 'q'] } };
  }

  /* ---- the player shifts both positions, one step per picture ---- */

  toggle() {
    if (this.timer || this.still.matches) this.stop();
    else this.#tick();
    this.controls.playing(Boolean(this.timer));
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = null;
    this.controls.playing(false);
  }

  #tick() {
    this.timer = setTimeout(async () => {
      this.step(1, 1, 'rotate.play');
      await Promise.all([...this.clocks.values()].map((clocks) => clocks.settled));
      if (this.timer) this.#tick();
    }, STEP_MS);
  }

  #calm = () => {
    this.controls.allowPlay(!this.still.matches);
    if (this.still.matches) this.stop();
  };

  close() {
    this.stop();
    this.still.removeEventListener('change', this.#calm);
    for (const clocks of this.clocks.values()) clocks.close();
  }
}

/* A number and its slider for m, n and both; which pairs are drawn; the player. */
class Controls {
  constructor(view) {
    this.view = view;
    this.m = new Position('m', phraseOf('rotate.m', 'm'), (value) => view.move({ m: value }, 'own.m'));
    this.n = new Position('n', phraseOf('rotate.n', 'n'), (value) => view.move({ n: value }, 'own.n'));
    this.both = new Position('both', { text: word('rotate.both') }, (value) => this.#shift(value));
    this.play = action('play', word('rotate.play'), () => view.toggle(), { 'aria-keyshortcuts': 'p' });
    this.calm = make('span', { class: 'hint', hidden: true }, word('rotate.calm'));
    this.pairs = make('select', { 'data-field': 'at', onchange: () => view.page.store.set({ at: [Number(this.pairs.value)] }, { undo: 'at' }) });
    this.choice = make('label', { class: 'control-name', hidden: true }, word('rotate.pairs'), this.pairs);
    this.element = make('div', { class: 'controls', role: 'group', 'aria-label': word('rotate.controls') },
      this.m.element, this.n.element, this.both.element, make('div', { class: 'buttons' }, this.play, this.choice, this.calm));
  }

  /* Both positions move; the nearer one to 0 stands where the slider is. */
  #shift(value) {
    const { m, n } = positionsOf(this.view.page.store.state);
    const by = value - Math.min(m, n);
    this.view.step(by, by, 'rotate.both');
  }

  update({ m, n }, choice) {
    const span = spanOf(m, n);
    this.m.show(m, span);
    this.n.show(n, span);
    this.both.show(Math.min(m, n), spanOf(Math.min(m, n)));
    if (this.pairs.options.length > choice) this.pairs.value = String(choice);
    this.chosen = choice;
  }

  offer(count) {
    if (count === this.offered) return;
    this.offered = count;
    const choices = choicesOf(count);
    this.choice.hidden = choices.length < 2;
    this.pairs.replaceChildren(...choices.map(({ first, step, last }, i) => make('option', { value: i },
      step === 1 ? `${first}–${last}` : word('rotate.every', { first, next: first + step, last }))));
    this.pairs.value = String(Math.min(this.chosen ?? 0, choices.length - 1));
  }

  playing(on) {
    this.play.dataset.action = on ? 'stop' : 'play';
    bind(this.play.firstChild, null, word(on ? 'rotate.stop' : 'rotate.play'));
    this.play.setAttribute('aria-pressed', on);
  }

  allowPlay(may) {
    this.play.disabled = !may;
    this.calm.hidden = may;
  }
}

const phraseOf = (key, letter) => ({ text: word(key), letter });

/* One position: a label, a number field and a slider that follow each other. */
class Position {
  constructor(key, { text, letter }, onChange) {
    const changed = (input) => () => input.value !== '' && Number.isFinite(input.valueAsNumber) && onChange(input.valueAsNumber);
    const labelled = { 'aria-label': text };
    this.field = make('input', { type: 'number', step: 'any', 'data-field': key, ...labelled });
    this.slider = make('input', { type: 'range', min: 0, step: 1, 'data-slider': key, ...labelled });
    this.field.addEventListener('input', changed(this.field));
    this.slider.addEventListener('input', changed(this.slider));
    this.element = make('div', { class: 'control' },
      make('span', { class: 'control-name', 'aria-hidden': 'true' }, letter ? [math('math', null, math('mi', null, letter)), ' '] : null, text),
      make('div', { class: 'pair' }, this.slider, this.field));
  }

  /* A field that is being written in keeps what its user wrote, unless it says another number. */
  show(value, span) {
    this.slider.max = span;
    this.slider.value = value;
    if (this.field.valueAsNumber !== value) this.field.value = value;
  }
}

function open(page, root) {
  const view = new Rotate(page, root);
  return {
    update: (state) => view.update(state),
    request: (slot) => view.request(slot),
    close: () => view.close(),
  };
}

export default { name: 'rotate', own: ['m', 'n'], path: '/rotate', most: 4, difference: false, forms: true, example, open };
