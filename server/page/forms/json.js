/* The JSON of a configuration, to read and to edit. A text that does not parse stays as it is, with the reason beside
 * it. */
import { quote } from './controls.js';
import { code, make } from '../dom.js';
import { isObject, same } from './fields.js';
import { word } from '../words.js';

export class Json {
  /* change(config) */
  constructor(slot, change) {
    this.change = change;
    this.wrong = make('p', { id: `json-${slot}-wrong`, class: 'wrong', hidden: true });
    this.text = make('textarea', { 'data-field': 'json', 'data-config': slot, spellcheck: 'false', rows: 6,
      'aria-label': word('form.jsonOf', { slot }), oninput: () => this.typed(), onchange: () => this.settle() });
    this.element = make('details', { class: 'more' }, make('summary', null, code('JSON')), this.text, this.wrong);
  }

  typed() {
    const { config, why, isQuoted } = readConfig(this.text.value);
    this.isBroken = !config;
    this.complain(config ? null : why, isQuoted);
    if (!config) return;
    this.config = config;
    this.change(config);
  }

  /* What is being typed, or does not parse, is not rewritten. */
  show(config) {
    if (same(config, this.config) && (document.activeElement === this.text || this.isBroken)) return;
    if (this.isBroken) this.complain(null);
    this.isBroken = false;
    this.config = config;
    this.write();
  }

  settle() { if (!this.isBroken) this.write(); }

  write() {
    const text = printConfig(this.config);
    if (this.text.value !== text) this.text.value = text;
  }

  /* why: a text, of the page or as someone else wrote it; null: nothing is wrong */
  complain(why, isQuoted) {
    quote(this.wrong, why, isQuoted);
    for (const [key, value] of [['aria-invalid', 'true'], ['aria-describedby', this.wrong.id]]) {
      if (why) this.text.setAttribute(key, value);
      else this.text.removeAttribute(key);
    }
  }

  focus() {
    this.element.open = true;
    this.text.focus();
  }
}

/* One field a line; lists and objects within a field stay on it. */
function printConfig(config) {
  const lines = Object.entries(config).map(([field, value]) => `  ${JSON.stringify(field)}: ${JSON.stringify(value)}`);
  return lines.length ? `{\n${lines.join(',\n')}\n}` : '{}';
}

function readConfig(text) {
  try {
    const config = JSON.parse(text);
    return isObject(config) ? { config } : { why: word('form.notObject') };
  } catch (error) {
    return { why: error.message, isQuoted: true };
  }
}
