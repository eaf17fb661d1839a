/* The JSON of a configuration, to read and to edit. A text that does not parse stays as it is, with the reason beside it. */
import { code, make } from './dom.js';
import { same } from './fields.js';
import { bind, word } from './words.js';

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
    const { config, why } = readConfig(this.text.value);
    this.isBroken = !config;
    this.complain(config ? null : why);
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

  /* why: text or node; null: nothing is wrong */
  complain(why) {
    this.wrong.hidden = !why;
    this.wrong.replaceChildren();
    if (why instanceof Node) this.wrong.append(why);
    else bind(this.wrong, null, why ?? '');
    if (why) this.text.setAttribute('aria-invalid', 'true');
    else this.text.removeAttribute('aria-invalid');
    if (why) this.text.setAttribute('aria-describedby', this.wrong.id);
    else this.text.removeAttribute('aria-describedby');
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
    const isObject = config !== null && typeof config === 'object' && !Array.isArray(config);
    return isObject ? { config } : { why: word('form.notObject') };
  } catch (error) {
    return { why: code(error.message) };
  }
}
