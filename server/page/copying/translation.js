/* A configuration in the words of another tool: a choice of tools, the text ready to paste, and below it what the tool
 * cannot say. */
import { Asker, Away } from '../ask.js';
import { code, freshId, make, served } from '../dom.js';
import { datum, grouped, shortDatum } from '../figure.js';
import { label, language, live, phrase, word } from '../words.js';

const PATH = '/translate';
let last = '';   /* the tool that was chosen last, wherever that was */

/* A sentence that the server gives in both languages. */
const told = (found) => live(() => (language() === 'zh' && found.detail_zh) || found.detail);

/* What a translation does not say, as sentences. */
function notesOf({ loses, consequence, needs, rows, certainty, value }) {
  const fields = Object.entries(needs).map(([field, one]) => `${field} ${JSON.stringify(one)}`);
  return [
    ...loses.map((one) => make('span', { 'data-loss': one.what }, told(one))),
    consequence && phrase('tools.apart', {
      most: shortDatum(consequence.max_abs_cos, 'max_abs_cos'), pair: datum(consequence.pair, 'pair'),
      position: datum(consequence.position, 'position', grouped(consequence.position)),
    }),
    !loses.length && make('span', { 'data-exact': '' }, word('tools.exact')),
    value && fields.length > 0 && phrase('tools.needs', { fields: code(fields.join(', ')) }),
    rows === 'permuted' && word('tools.permuted'),
    certainty !== 'code' && word('tools.unverified'),
  ].filter(Boolean);
}

export class Translation {
  #asked = '';
  #body = null;

  /* pre: where the text goes. */
  constructor(page, pre) {
    Object.assign(this, { page, pre, asker: new Asker() });
    const id = freshId('tool');
    this.choice = make('select', { id, 'data-field': 'tool', onchange: () => this.#choose() });
    this.notes = make('ul', { class: 'hint translation-notes', 'aria-live': 'polite' });
    this.element = make('div', { class: 'translation' },
      make('div', { class: 'field' }, make('label', { for: id }, word('tools.choose')), this.choice), pre, this.notes);
    this.#clear();
  }

  /* body: a configuration as /translate takes it. */
  async show(body) {
    this.#body = body;
    await this.page.catalogue.complete();
    const { targets = [] } = this.page.catalogue.catalogue();
    if (this.choice.options.length <= 1 && targets.length) {
      this.choice.replaceChildren(make('option', { value: '' }, word('tools.none')),
        ...targets.map((row) => make('option', { value: row.name, translate: 'no' }, label(row))));
    }
    this.choice.value = last;
    this.#ask();
  }

  #choose() {
    last = this.choice.value;
    this.#ask();
  }

  #clear() {
    this.#asked = '';
    this.pre.hidden = true;
    this.pre.textContent = '';
    this.notes.replaceChildren();
  }

  async #ask() {
    if (!last) return this.#clear();
    const body = { ...this.#body, to: last, lang: 'en' };
    const key = JSON.stringify(body);
    if (key === this.#asked) return;
    this.#asked = key;
    try {
      await this.asker.ask(async (get, { over }) => {
        const { targets } = await get({ path: PATH, body });
        if (!over()) this.#fill(targets);
      });
    } catch (error) {
      this.#clear();
      const text = error instanceof Away ? word('figure.away') : error.message;
      this.notes.replaceChildren(make('li', null, served(text, 'span')));
    }
  }

  /* One text, or one for each kind of layers. */
  #fill(entries) {
    const texts = entries.filter(({ text }) => text)
      .map(({ text, layer_type: kind }) => kind ? `# ${kind}\n${text}` : text);
    this.pre.textContent = texts.join('\n\n');
    this.pre.hidden = !texts.length;
    this.notes.replaceChildren(...entries.flatMap((entry) => notesOf(entry).map((one) => make('li', null,
      entry.layer_type && entries.length > 1 && [code(entry.layer_type), ': '], one))));
  }

  close() { this.asker.close(); }
}
