/* Controls of a view: a slider with its number, a row of choices, a player. The first two show a value and tell of
 * another one. */
import { action, freshId, make } from '../dom.js';
import { playable } from '../frame/play.js';
import { bind, live, word } from '../words.js';

const STEPS = 1000;   /* of a logarithmic slider */

/* A labelled slider and number. move(value) is called as they change; show({ value, min, max, step, disabled }) sets
 * them without a call. spacing log: equal ways on the slider are equal factors. */
export function sliderField({ name, text, spacing = 'linear', whole = true, config, move }) {
  const id = freshId('control');
  const own = { 'data-config': config };
  const slider = make('input', { type: 'range', 'data-slider': name, 'aria-label': text, ...own });
  const number = make('input', { type: 'number', id, 'data-field': name, step: whole ? 1 : 'any', ...own });
  const range = { value: 0, min: 0, max: 1, step: 1 };
  const log = spacing === 'log';
  const toSlider = (value) => log ? Math.log(value / range.min) / Math.log(range.max / range.min) * STEPS : value;
  const fromSlider = (at) => log ? range.min * (range.max / range.min) ** (at / STEPS) : at;
  const rounded = (value) => whole ? Math.round(value) : Number(value.toPrecision(3));

  slider.addEventListener('input', () => {
    number.value = range.value = Math.min(range.max, Math.max(range.min, rounded(fromSlider(Number(slider.value)))));
    slider.setAttribute('aria-valuetext', number.value);
    move(range.value);
  });
  number.addEventListener('input', () => {
    const value = number.valueAsNumber;
    if (Number.isFinite(value) && value >= range.min && (!whole || Number.isInteger(value))) move(range.value = value);
  });

  function show({ disabled = false, ...values }) {
    Object.assign(range, values);
    Object.assign(slider, log ? { min: 0, max: STEPS, step: 1 } : { min: range.min, max: range.max, step: range.step });
    number.min = range.min;
    slider.value = toSlider(Math.min(Math.max(range.value, range.min), range.max));
    slider.setAttribute('aria-valuetext', range.value);
    if (document.activeElement !== number || Number(number.value) !== range.value) number.value = range.value;
    slider.disabled = number.disabled = disabled;
  }
  const element = make('div', { class: 'field' }, make('label', { for: id }, text),
    make('div', { class: 'pair' }, playable(slider, text), number));
  return { element, slider, number, show };
}

/* Joined buttons of which one is pressed. rows: [[value, text]]; texts that are names stay as they are. */
export function choice({ name, text, pick }) {
  const group = make('div', { class: 'segmented', role: 'group', 'aria-label': text, 'data-field': name });
  const element = make('div', { class: 'field' }, make('span', { class: 'field-label' }, text), group);
  let shown = '';
  function show(rows, value) {
    const key = JSON.stringify(rows.map(([one]) => one));
    if (key !== shown) {
      group.replaceChildren(...rows.map(([one, label]) => make('button',
        { type: 'button', 'data-value': String(one), onclick: () => pick(one) }, label)));
      shown = key;
    }
    for (const button of group.children) button.setAttribute('aria-pressed', button.dataset.value === value);
  }
  return { element, show };
}

/* Calls step() every `ms`, not before the last one's promise has ended; never where the system asks for less motion. */
export class Player {
  #timer = null;

  constructor({ step, ms }) {
    Object.assign(this, { step, ms, still: matchMedia('(prefers-reduced-motion: reduce)') });
    this.button = action('play', word('rotate.play'), () => this.toggle());
    this.note = make('span', { class: 'hint' }, word('rotate.calm'));
    this.element = make('div', { class: 'toolbar' }, this.button, this.note);
    this.still.addEventListener('change', this.#calm);
    this.#calm();
  }

  toggle() {
    if (this.#timer || this.still.matches) return this.stop();
    this.#tick();
    this.#show();
  }

  stop() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#show();
  }

  #tick() {
    this.#timer = setTimeout(async () => {
      await this.step();
      if (this.#timer) this.#tick();
    }, this.ms);
  }

  #show() {
    this.button.dataset.action = this.#timer ? 'stop' : 'play';
    bind(this.button.firstChild, null, live(() => String(word(this.#timer ? 'figure.stop' : 'rotate.play'))));
  }

  #calm = () => {
    this.button.disabled = this.still.matches;
    this.note.hidden = !this.still.matches;
    if (this.still.matches) this.stop();
  };

  close() {
    this.stop();
    this.still.removeEventListener('change', this.#calm);
  }
}
