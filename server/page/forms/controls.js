/* Controls of a form: for each row of the catalogue one that shows a value in place and says what was chosen. */
import { complete } from '../catalogue.js';
import { printed, printedIn } from '../draw/numbers.js';
import { playable } from '../frame/play.js';
import { freshId, make, mark, name, served } from '../dom.js';
import { EXAMPLES, given, inside, isChooser, isInUse, shown } from './edits.js';
import { isGiven, print, read, same, slider } from './fields.js';
import { tool } from '../icons.js';
import { bind, label, language, rewrite, summary, word } from '../words.js';

/* The row's label and, where that is another word, its name in a request. */
function titled(row) {
  const isSame = () => row.isOurs || String(label(row)) === row.name;
  const wire = rewrite(make('code', null, row.name), (node) => { node.hidden = isSame(); });
  return [label(row), ' ', wire];
}

/* A labelled field: what all controls share. Of a subclass: makeInput() → element(s) of which this.input is labelled,
 * write(value, isOwn). change(value, isReset) tells the owner; undefined takes the field out of the request. */
export class Control {
  constructor(row, { field, slot, change }) {
    Object.assign(this, { row, field, slot, change, id: freshId('field'), last: undefined, state: null });
    this.input = null;
    const body = this.makeInput();
    this.hint = make('p', { id: `${this.id}-hint`, class: 'hint', hidden: true });
    rewrite(this.hint, () => this.writeHint());
    this.wrong = make('p', { id: `${this.id}-wrong`, class: 'wrong', hidden: true });
    this.element = make('div', { class: 'field' }, this.makeHead(), body, this.hint, this.wrong);
    this.input.setAttribute('aria-describedby', this.hint.id);
    this.promise(this.input);
  }

  promise(input) {
    input.id = this.id;
    mark(input, { field: this.field, config: this.slot });
  }

  makeHead() {
    this.reset = tool('reset', word('form.reset', { field: label(this.row) }),
      { 'data-action': 'reset', onclick: () => this.change(undefined, true), hidden: true });
    return make('div', { class: 'field-head' },
      make('label', { for: this.id }, ...titled(this.row)), this.reset, this.makeInfo());
  }

  makeInfo() {
    const toggle = () => {
      complete();
      this.hint.hidden = !this.hint.hidden;
      info.setAttribute('aria-expanded', String(!this.hint.hidden));
    };
    const info = tool('help', word('form.about', { field: label(this.row) }),
      { class: 'icon quiet info', 'aria-expanded': 'false', 'aria-controls': `${this.id}-hint`, onclick: toggle });
    return info;
  }

  /* What the row says of the field, and the values that it allows. */
  about() {
    const { min, max } = this.row;
    const range = isGiven(min) && isGiven(max) ? `[${brief(min)}, ${brief(max)}]` : '';
    return [printedIn(String(summary(this.row))), range].filter(Boolean).join(' · ');
  }

  writeHint() { this.hint.replaceChildren(...prose(this.about())); }

  /* Most of a card stays as it is while one of its values changes. */
  show({ value, isOwn }) {
    const state = JSON.stringify([isOwn, value]);
    if (state === this.state) return;
    this.state = state;
    this.element.classList.toggle('own', isOwn);
    this.reset.hidden = !isOwn;
    this.write(value, isOwn);
    this.last = value;
  }

  /* Its user has given this value; what is shown may have to be written again. */
  choose(value) {
    this.last = value;
    this.state = null;
    this.change(value);
  }

  /* What is wrong with the value; null: nothing. The server's own words are English in every language. */
  complain(text, isServers = false) {
    quote(this.wrong, text, isServers);
    if (text) this.input.setAttribute('aria-invalid', 'true');
    else this.input.removeAttribute('aria-invalid');
    this.input.setAttribute('aria-describedby', text ? `${this.wrong.id} ${this.hint.id}` : this.hint.id);
  }

  focus() {
    for (let node = this.element.parentElement; node; node = node.parentElement) {
      if (node.matches('details')) node.open = true;
      if (node.matches('.side') && !this.input.checkVisibility()) node.querySelector('.sheet').click();
    }
    this.input.focus();
  }
}

/* Text of the page, or of the server as it stands; null hides the place. */
export function quote(place, text, isServers) {
  place.hidden = !text;
  place.replaceChildren(isServers ? served(text, 'span') : make('span', null, text));
}

const LATIN = /([A-Za-z][!-~]*(?:[ ,]+[!-~]+)*)/;

/* A text of the catalogue. Latin words in a Chinese one are names. */
function prose(text) {
  return language() === 'zh' ? text.split(LATIN).map((part, i) => i % 2 ? name(part) : part) : [text];
}

/* 1099511627776 is 2^40: long bounds are read by their power. */
function brief(value) {
  const power = Math.log2(Math.abs(value));
  return printed(power > 30 && Number.isInteger(power) ? `${value < 0 ? '-' : ''}2^${power}` : value);
}

/* ---- Typed values ---- */

const isLong = ({ name, type }) => name !== 'tokens' && ['array', 'any', 'object'].includes(type);

export class Typed extends Control {
  makeInput() {
    const { tag, ...kind } = this.kind();
    this.input = make(tag, { ...kind, autocomplete: 'off', spellcheck: 'false', translate: 'no',
      oninput: () => this.take(), onchange: () => this.leave() });
    return this.input;
  }

  take() {
    this.seen = this.input.value;
    this.typed();
  }

  /* Some ways to change a field, e.g. to clear it, only say so at the end. */
  leave() {
    if (this.seen !== this.input.value) this.take();
    this.settle();
    this.seen = this.input.value;
  }

  /* JSON may be long: it wraps, and its field grows with it. */
  kind() { return isLong(this.row) ? { tag: 'textarea', rows: 1 } : { tag: 'input', type: 'text' }; }

  typed() {
    const { value, isWrong } = this.input.validity.badInput ? { isWrong: true } : read(this.row, this.input.value);
    this.complain(isWrong ? word('form.unreadable') : null);
    if (isWrong) return;
    this.emptied = !isGiven(value);
    this.choose(value);
  }

  /* A field that its user has emptied stays empty and shows what holds instead as a placeholder: the next key begins a
   * new value. What is being typed is not rewritten unless the value has changed elsewhere. */
  write(value, isOwn) {
    const text = this.textOf(value);
    bind(this.input, 'placeholder', text || this.example());
    if (isOwn) this.emptied = false;
    if (this.emptied || this.isBeingTyped(value)) return;
    if (this.input.value !== text) this.input.value = text;
    this.seen = this.input.value;
  }

  textOf(value) { return print(this.row, value); }

  example() { return print(this.row, EXAMPLES[this.field]); }

  isBeingTyped(value) {
    const isBroken = this.input.getAttribute('aria-invalid') === 'true';
    return document.activeElement === this.input && (isBroken || same(value, this.last));
  }

  /* The text as it is printed, once it is no longer typed. */
  settle() {
    const { value, isWrong } = read(this.row, this.input.value);
    if (!isWrong && isGiven(value)) this.input.value = print(this.row, value);
  }
}

class Numeric extends Typed {
  kind() {
    return { tag: 'input', type: 'number', inputmode: 'decimal', step: this.row.type === 'integer' ? 1 : 'any' };
  }

  makeInput() {
    const input = super.makeInput();
    if (!this.row.usual) return input;
    this.stops = slider(this.row);
    this.slider = make('input', { type: 'range', min: 0, max: this.stops.values.length - 1, step: 1,
      'aria-label': label(this.row), oninput: () => this.slide() });
    mark(this.slider, { slider: this.field, config: this.slot });
    return make('div', { class: 'pair' }, playable(this.slider, label(this.row)), input);
  }

  example() { return super.example() || word('form.auto'); }

  /* A field for numbers takes no other text; the server says what is wrong with it. */
  textOf(value) { return typeof value === 'string' && !Number.isFinite(Number(value)) ? '' : super.textOf(value); }

  slide() {
    const value = this.stops.values[this.slider.value];
    this.emptied = false;
    this.input.value = this.seen = String(value);
    this.slider.setAttribute('aria-valuetext', String(value));
    this.complain(null);
    this.choose(value);
  }

  write(value, isOwn) {
    super.write(value, isOwn);
    if (!this.slider || document.activeElement === this.slider && same(value, this.last)) return;
    this.slider.classList.toggle('unset', !isGiven(value));
    this.slider.value = this.stops.nearest(Number.isFinite(value) ? value : this.row.usual[0]);
    this.slider.setAttribute('aria-valuetext', isGiven(value) ? String(value) : String(word('form.auto')));
  }
}

/* ---- Chosen values ---- */

export class Choice extends Control {
  makeInput() {
    this.none = make('option', { value: '' }, word('form.auto'));
    this.input = make('select', { onchange: () => this.choose(this.input.value || undefined) }, this.none,
      ...this.options());
    return this.input;
  }

  /* Other values to choose from, the chosen one among them or not. */
  offer(values) {
    if (same(values, this.row.values)) return;
    this.row.values = values;
    this.input.replaceChildren(this.none, ...this.options());
  }

  options() { return this.row.values.map((value) => make('option', { value, translate: 'no' }, value)); }

  /* A value that is always known needs no choice of none. A pasted value may be one that the rows do not have. */
  write(value) {
    this.none.hidden = isGiven(value) && isGiven(this.row.default);
    this.input.value = isGiven(value) ? String(value) : '';
  }
}

class Check extends Control {
  makeInput() {
    this.input = make('input', { type: 'checkbox', onchange: () => this.choose(this.input.checked) });
    return this.input;
  }

  makeHead() {
    const head = super.makeHead();
    head.classList.add('check');
    return head;
  }

  write(value) { this.input.checked = value === true; }
}

/* ---- An object: a fieldset whose first control chooses the kind ---- */

export class Group {
  /* change(inner row or null, value) */
  constructor(row, { field, slot, change }) {
    Object.assign(this, { row, field });
    const inner = (one) => control(one, { field: `${field}.${one.name}`, slot, change: (value) => change(one, value) });
    this.controls = new Map(row.parameters.map((one) => [one, inner(one)]));
    const [first, ...others] = this.controls.values();
    this.first = first;
    this.inUse = make('div', null);
    this.rest = make('div', null);
    this.more = make('details', { class: 'more' }, make('summary', null, word('form.moreOf', { group: label(row) })),
      this.rest);
    this.rest.append(...others.map((one) => one.element));
    this.element = make('fieldset', { class: 'group' },
      make('legend', null, ...titled(row)), first.element, this.inUse, this.more);
  }

  /* Fields in use stand under the first, the others in `more`; a field moves only when that changes. Without a kind
   * there is nothing more to give. */
  show(context) {
    const own = inside(context, this.row);
    for (const [row, one] of this.controls) {
      one.show(shown(own, row));
      if (row === this.row.parameters[0]) continue;
      const place = isInUse(own, this.row, row) ? this.inUse : this.rest;
      if (one.element.parentNode !== place) insertInOrder(place, one.element, [...this.controls.values()]);
    }
    const [first] = this.row.parameters;
    const kind = given(own.config, first) ?? given(own.inherited, first);
    this.more.hidden = isChooser(this.row, first) && !isGiven(kind) && !Object.keys(own.config).length;
  }
}

function insertInOrder(place, element, controls) {
  const hasFocus = element.contains(document.activeElement) && document.activeElement;
  const order = controls.map((one) => one.element);
  const next = order.slice(order.indexOf(element) + 1).find((one) => one.parentNode === place) ?? null;
  place.insertBefore(element, next);
  if (hasFocus) hasFocus.focus();
}

/* ---- The control of a row ---- */

const TYPES = { integer: Numeric, number: Numeric, boolean: Check };

export function control(row, options) {
  if (row.values) return new Choice(row, options);
  return new (TYPES[row.type] ?? Typed)(row, options);
}
