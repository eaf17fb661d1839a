/* The formula of a configuration's scheme, with the lines of its scaling in their place, as GET /schemes/NAME states
 * them: asked for when it is opened. */
import { get } from '../ask.js';
import { code, make, math, served } from '../dom.js';
import { language, live, word } from '../words.js';

const asked = new Map();   /* name of a scheme: its answer */

const formulaOf = (name) => {
  if (!asked.has(name)) {
    const answer = get(`/schemes/${encodeURIComponent(name)}?notation=mathml`);
    asked.set(name, answer);
    answer.catch(() => asked.delete(name));   /* the next who opens it asks again */
  }
  return asked.get(name);
};

const told = (row) => live(() => (language() === 'zh' && row.says_zh) || row.says);

/* ---- MathML: the page's policy lets no text become markup by itself ---- */

const PART = /<(\/?)([a-z]+)((?: [a-z]+="[^"]*")*)>|([^<]+)/g;
const KEPT = ['display', 'stretchy', 'columnalign'];
const ENTITIES = { '&lt;': '<', '&gt;': '>', '&amp;': '&', '&#160;': '\u00a0' };

export function elementOf(markup) {
  const open = [make('div')];
  for (const [, closing, tag, attributes, text] of markup.matchAll(PART)) {
    if (closing) open.pop();
    else if (tag) {
      const kept = [...attributes.matchAll(/([a-z]+)="([^"]*)"/g)].filter(([, name]) => KEPT.includes(name));
      const element = math(tag, Object.fromEntries(kept.map(([, name, value]) => [name, value])));
      open.at(-1).append(element);
      open.push(element);
    } else open.at(-1).append(text.replace(/&[^;]+;/g, (entity) => ENTITIES[entity] ?? entity));
  }
  return open[0].firstChild;
}

/* The lines of the scheme; those that the scaling states stand where the first of them replaces one. */
export function linesOf({ formula, scalings = [] }, kind) {
  const own = scalings.find(({ name }) => name === kind)?.formula ?? [];
  const replaced = new Set(own.map(({ symbol }) => symbol));
  const at = formula.findIndex(({ symbol }) => replaced.has(symbol));
  return formula.flatMap((line, i) => i === at ? own : replaced.has(line.symbol) ? [] : [line]);
}

export class Formula {
  #shown = '';

  /* go(field): to the control of a parameter. */
  constructor(go) {
    this.go = go;
    this.lines = make('div', { class: 'formula' });
    this.element = make('details', { class: 'more', 'data-formula': '', ontoggle: () => this.#fill() },
      make('summary', null, word('form.formula')), this.lines);
  }

  /* Of a scheme's name and the kind of its scaling. */
  show(scheme, kind) {
    Object.assign(this, { scheme, kind });
    this.element.hidden = !scheme;
    this.#fill();
  }

  async #fill() {
    const wanted = `${this.scheme} ${this.kind}`;
    if (!this.element.open || !this.scheme || wanted === this.#shown) return;
    this.#shown = wanted;
    try {
      const answer = await formulaOf(this.scheme);
      if (wanted === this.#shown) this.#write(answer);
    } catch (error) {
      this.#shown = '';
      this.lines.replaceChildren(served(error.message));
    }
  }

  #write(answer) {
    const lines = linesOf(answer, this.kind).map((line) => make('div', { 'data-line': line.symbol },
      make('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': line.symbol, translate: 'no' },
        elementOf(line.mathml)),
      make('p', { class: 'hint' }, told(line), this.#uses(line.uses ?? []))));
    const symbols = (answer.symbols ?? []).flatMap((row) => [
      make('dt', { translate: 'no' }, make('i', null, row.symbol)), make('dd', { class: 'hint' }, told(row)),
    ]);
    this.lines.replaceChildren(...lines, make('dl', { class: 'formula-symbols' }, ...symbols));
  }

  #uses = (fields) => fields.flatMap((field) => [' ', make('button',
    { type: 'button', class: 'link', 'data-uses': field, translate: 'no', onclick: () => this.go(field) },
    code(field))]);
}
