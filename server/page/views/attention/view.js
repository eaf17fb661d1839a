/* The view `attention`: who looks at whom in a sentence, as a heat map for each configuration and beside them one
 * without positions, in which equal words cannot be told apart. With out=terms, what the scores are the sum of, a map a
 * term. */
import { code, freshId, make, name } from '../../dom.js';
import { shortDatum } from '../../figure.js';
import { sentence, words } from '../../forms/fields.js';
import { HeatMap, Scale } from '../../heat/heatmap.js';
import { frontChooser } from '../../heat/toolbar.js';
import { language, live, phrase, word } from '../../words.js';
import { sliderField } from '../controls.js';
import { Slots, wantedOf } from '../slots.js';
import { attentionBody, equalTokens, hasContent, largestDifference, withoutPositions } from './ask.js';

const TWIN = 'none';
const TOKENS_MAX = 256;

/* In the language in which the view was opened: another language redraws nothing. */
const DEFAULTS = { en: 'The dog chased another dog', zh: '狗追另一只狗' };
let first = null;
const firstTokens = () => words(first ??= DEFAULTS[language()]);

/* Embeddings of 96 channels leave the weights soft enough to see. */
const example = () => ({ a: { scheme: 'rope', dim: 96, tokens: firstTokens() } });

const tokensOf = (config) => Array.isArray(config?.tokens) ? config.tokens.map(String) : firstTokens();

class Attention {
  #twinShown = '';
  #terms = new Map();   /* slot: the names of its terms, and its heads */

  constructor(page, root) {
    first = null;
    Object.assign(this, { page, scale: new Scale() });
    this.sentence = new Sentence(page, (tokens) => this.#write(tokens));
    this.front = frontChooser(page);
    this.head = sliderField({
      name: 'head', text: word('axis.head'), move: (head) => page.store.set({ at: [0, head] }, { undo: 'at' }),
    });
    this.figures = make('div', { class: 'figures aligned' });
    this.maps = new Slots(this.figures, (slot) => this.#newMap(slot));
    this.leads = make('div', { class: 'heat-leads' });   /* of the first map: beside the sentence there is room */
    root.append(
      make('div', { class: 'attention-head' }, this.sentence.element,
        make('div', { class: 'view-controls' }, this.leads, this.head.element)),
      this.front.element, this.figures
    );
  }

  get isTerms() { return this.page.store.state.out === 'terms'; }

  /* The maps of a configuration; how many terms it has its first map learns. */
  #keys(slot) {
    if (!this.isTerms) return [slot];
    return Array.from(this.#terms.get(slot === 'b-a' ? 'a' : slot)?.names ?? [''], (_, term) => `${slot}.${term}`);
  }

  /* A story that says what each map is has no twin beside them, and a sentence for each. */
  get isPaired() { return this.page.story?.versions?.length > 1; }

  /* One without positions is its own twin. */
  get isTwin() { return this.page.config(this.page.front())?.scheme === TWIN; }

  /* The configurations, the difference of two, and the twin without positions beside them. */
  update(state) {
    const wanted = wantedOf(this.page);
    const slots = [...wanted.flatMap(([slot]) => this.#keys(slot)),
      ...wanted.length && !this.isTerms && !this.isPaired && !this.isTwin ? [TWIN] : []];
    if (this.leader !== slots[0]) {   /* another map has the controls */
      this.maps.sync([]);
      this.leads.replaceChildren();
    }
    this.leader = slots[0];
    if (!this.maps.has(TWIN)) this.#twinShown = '';
    this.maps.sync(slots);
    for (const [slot, [config, other]] of wanted) {
      this.#keys(slot).forEach((key, term) => this.maps.get(key).show(
        other ? { of: [config, other].map((one) => this.#spec(one, term)) } : this.#spec(config, term)
      ));
    }
    const config = this.page.config(this.page.front());
    if (config) this.sentence.show(this.isPaired || hasContent(config) ? null : tokensOf(config), state.cur[0]);
    this.front.update();
    this.#showHeads(state);
    this.#showTwin();
  }

  #showHeads({ at }) {
    const heads = Math.max(1, ...[...this.#terms.values()].map((one) => one.heads));
    this.head.element.hidden = !this.isTerms || heads < 2;
    this.head.show({ value: at[1] ?? 0, min: 0, max: heads - 1 });
  }

  #newMap(key) {
    const [slot, term] = key.split('.');
    return term ? this.#newTerm(key, slot, Number(term)) : this.#newPlain(slot);
  }

  #newTerm(key, slot, term) {
    const label = live(
      () => `${slot.replace('-', ' − ')} ${this.#terms.get(slot === 'b-a' ? 'a' : slot)?.names[term] ?? ''}`
    );
    return new HeatMap(this.page, {
      view: 'attention', slot, scale: this.scale, quiet: key !== this.leader, outputs: true, label,
      after: term || slot === 'b-a' ? null : (get, stage, about) => this.#learn(slot, about),
    });
  }

  /* The names of the terms stand in the answer, in their order. */
  #learn(slot, { meta, name, shape }) {
    const names = name === 'terms' ? meta?.terms ?? this.#terms.get(slot)?.names : null;
    this.#terms.set(slot, { names: names ?? [name], heads: names ? shape.at(-3) : 1 });
    this.update(this.page.store.state);
    for (const map of this.#keys(slot).map((key) => this.maps.get(key))) map?.figure.rename(map.label);
  }

  #newPlain(slot) {
    const isDifference = slot === 'b-a';
    const map = new HeatMap(this.page, {
      view: 'attention', slot, scale: isDifference ? new Scale() : this.scale, quiet: slot !== this.leader,
      outputs: true, label: slot === TWIN ? word('attention.none') : null,
      after: isDifference ? null : (get) => this.#compare(get, map.spec),
      awaited: isDifference ? null : ({ tokens }) => this.#awaited(tokens),
    });
    if (slot === this.leader && !this.page.story) this.leads.replaceChildren(map.toolbar.leads);
    return map;
  }

  /* ---- what is shown ---- */

  #spec(config, term) {
    const tokens = hasContent(config) ? null : tokensOf(config);
    return {
      ...this.#specOf(attentionBody(this.page.catalogue, config, tokens), tokens),
      ...this.isTerms ? { at: [term ?? 0, ...this.page.store.state.at.slice(1)] } : {},
    };
  }

  #specOf(body, tokens) {
    const { out } = this.page.store.state;
    const isWide = out === 'output' || out === 'row_entropy';
    return {
      path: '/attention', body, output: out, tokens,
      labels: tokens && !isWide ? { rows: tokens, cols: tokens } : undefined,
    };
  }

  /* The configuration in front without positions, once the server has said what its defaults are: when there is time to
   * compare, it has. */
  #showTwin() {
    const slot = this.page.front();
    const config = this.page.config(slot);
    const resolved = this.page.resolved.get(slot)?.config;
    if (!config || !resolved || !this.maps.has(TWIN)) return;
    const spec = this.#spec(config);
    const twin = this.#specOf(withoutPositions(this.page.catalogue, spec.body, resolved), spec.tokens);
    const key = JSON.stringify(twin);
    if (key === this.#twinShown) return;
    this.#twinShown = key;
    this.maps.get(TWIN).show(twin);
  }

  /* As long as that sentence, until it is known. */
  #awaited(tokens) {
    if (!tokens || !equalTokens(tokens).length) return [];
    const parts = { output: code('output'), token: name(equalTokens(tokens)[0].token), difference: '0.1234' };
    return [make('span', { class: 'awaited', 'aria-hidden': 'true' }, phrase('attention.differ', parts))];
  }

  /* A sentence of the caption: how much the rows of equal tokens differ in what the attention gives out. */
  async #compare(get, { path, body, tokens }) {
    this.#showTwin();
    if (!tokens) return [];
    const groups = equalTokens(tokens);
    if (!groups.length) return this.isPaired ? [] : [phrase('attention.noneEqual', {})];
    const { tensors: [output] } = await get({ path, body: { ...body, outputs: ['output'], dtype: 'f64' } },
      { as: 'raw' });
    const { difference, token } = largestDifference(output.values, output.shape, groups);
    const parts = {
      output: code('output'), token: name(token), difference: shortDatum(difference, 'difference'),
    };
    return [make('span', { class: 'compared' }, phrase(difference ? 'attention.differ' : 'attention.same', parts))];
  }

  /* ---- the sentence ---- */

  /* One sentence for all: the maps are there to be compared. */
  #write(tokens) {
    this.page.changeAll((config) => ({ ...config, tokens }), 'tokens', { win: [0, 0], zoom: 'fit' });
  }

  request(slot) {
    const config = this.page.config(slot);
    if (!config) return null;
    const { path, body, output } = this.#spec(config);
    return { path, body: { ...body, outputs: [this.maps.get(this.#keys(slot)[0])?.about?.name ?? output ?? 'probs'] } };
  }

  close() { this.maps.close(); }
}

/* The sentence as text, and its tokens as buttons: the one pressed is the row that is read. */
class Sentence {
  #shown = '';

  constructor(page, onWrite) {
    const how = freshId('hint');
    this.page = page;
    this.field = make('input',
      { type: 'text', 'data-field': 'sentence', autocomplete: 'off', spellcheck: 'false', 'aria-describedby': how });
    this.field.addEventListener('input', () => {
      const tokens = words(this.field.value.trim()).slice(0, TOKENS_MAX).map(String);
      if (tokens.length) onWrite(tokens);
    });
    this.tokens = make('div',
      { class: 'tokens', role: 'group', 'aria-label': word('attention.tokens'), translate: 'no' });
    this.element = make('div', { class: 'sentence' },
      make('label', { class: 'field' }, make('span', { class: 'control-name' }, word('attention.sentence')),
        this.field),
      make('p', { class: 'hint', id: how }, word('attention.how')), this.tokens);
  }

  /* tokens: null where the configuration has its own queries and keys. */
  show(tokens, row) {
    this.element.hidden = !tokens;
    if (!tokens) return;
    const key = JSON.stringify(tokens);
    if (key !== this.#shown) this.#write(tokens);
    this.#shown = key;
    [...this.tokens.children].forEach((button, i) => button.setAttribute('aria-pressed', i === row));
  }

  /* What is being typed stays as it is typed. */
  #write(tokens) {
    if (JSON.stringify(words(this.field.value.trim()).map(String)) !== JSON.stringify(tokens)) {
      this.field.value = sentence(tokens);
    }
    const twice = new Set(equalTokens(tokens).flatMap(({ at }) => at));
    this.tokens.replaceChildren(...tokens.map(
      (token, i) => make('button', {
        type: 'button', 'data-token': i, class: twice.has(i) ? 'twice' : null,
        onclick: () => this.page.store.set({ cur: [i, this.page.store.state.cur[1]] }, { undo: false }),
      }, token)
    ));
  }
}

export default { name: 'attention', path: '/attention', example, open: (page, root) => new Attention(page, root) };
