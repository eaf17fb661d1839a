/* Why a cell has its number: the steps of its formula as /derive states them, beside the picture, for the cell that the
 * read-out is at. On a narrow page and in a story they are a sheet over it. Loaded when they are first asked for. */
import { Refusal, address } from '../ask.js';
import { code, columns, make, mark, name, scrolling, served, table } from '../dom.js';
import { printed, printedIn } from '../draw/numbers.js';
import { datum } from '../figure.js';
import { tool } from '../icons.js';
import { language, phrase, rewrite, word } from '../words.js';

const NOT_OF_NUMBER = ['outputs', 'format', 'data', 'slice', 'reduce'];

/* What asks for a cell of this picture. */
function requestOf({ source, about }, [row, col]) {
  const own = Object.entries(source.body).filter(([field]) => !NOT_OF_NUMBER.includes(field));
  const index = [...about.lead, ...about.shape.length > 1 ? [row] : [], col];
  return { path: '/derive', body: { ...Object.fromEntries(own), tensor: about.name, index, lang: language() } };
}

export class Why {
  #served = null;   /* the key of what stands in it */

  /* close(): what its button, and Escape, do. */
  constructor(slot, { close, again }) {
    const onkeydown = (event) => {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      close();
    };
    this.title = make('p', { class: 'why-title' });
    this.content = make('div', { class: 'why-content' });
    this.element = make('section',
      { class: 'why', 'data-why': '', 'data-config': slot, tabindex: -1, 'aria-label': word('why.ask'), onkeydown },
      make('div', { class: 'why-head' }, this.title, tool('close', word('notice.close'),
        { 'data-action': 'close-why', onclick: close })),
      this.content);
    rewrite(this.content, again);   /* its sentences are in the language in which they were asked for */
  }

  #key = ({ source }, cell) => `${source.key} ${cell} ${language()}`;

  isServed(picture, cell) { return this.#served === this.#key(picture, cell); }

  /* True: for the first time. */
  async fill(get, picture, cell) {
    if (this.isServed(picture, cell)) return false;
    const key = this.#key(picture, cell);
    const request = requestOf(picture, cell);
    this.element.classList.add('pending');
    try {
      this.#write(await get(request), request);
    } catch (error) {
      if (!(error instanceof Refusal) || ![404, 413, 422].includes(error.status)) throw error;
      this.title.replaceChildren(code(`${request.body.tensor}[${request.body.index}]`));
      this.content.replaceChildren(served(error.problem.detail, 'p', { 'data-notice': 'why' }));
    }
    const isFirst = this.#served === null;
    this.#served = key;
    this.element.classList.remove('pending');
    return isFirst;
  }

  #write({ number, steps, float32, recipe, lost, detail, detail_zh: chinese }, { path, body }) {
    const { tensor, index, value, bits, dtype, below, above } = number;
    mark(this.element, { output: tensor, index: index.join(','), value, bits });
    this.title.replaceChildren(code(`${tensor}[${index}]`), name(' = '), datum(value, 'number'));
    const neighbours = below === undefined ? [name(bits)]
      : [phrase('why.neighbours', { bits: code(bits), dtype: code(dtype), below: name(printed(below)),
        above: name(printed(above)) })];
    const roundedOf = (symbol) => float32?.find((one) => one.symbol === symbol);
    const heads = columns([word('why.step'), word('why.exact'), ...float32 ? [''] : []]);
    if (float32) heads.at(-1).append(name('float32'), make('br'), code(recipe));
    const rows = steps.map((step) => rowOf(step, float32 && (roundedOf(step.symbol) ?? {}), lost?.symbol));
    const links = [['text', word('why.text')], ['tex', name('TeX')], ['json', name('JSON')]]
      .map(([format, text]) => [address(path, { ...body, format }), text]).filter(([href]) => href)
      .map(([href, text]) => make('a', { href, target: '_blank', rel: 'noopener' }, text));
    this.content.replaceChildren(
      served(printedIn(language() === 'zh' && chinese ? chinese : detail), 'p', { class: 'why-detail' }),
      scrolling(word('why.ask'), table({ class: 'why-steps' }, heads, rows)),
      make('p', { class: 'hint' }, ...neighbours),
      make('p', { class: 'hint why-links' }, ...links)
    );
  }

  close() { this.element.remove(); }
}

/* A step: its formula above its value; rounded: what the recipe makes of it, {} nothing, null that there is none. */
function rowOf({ symbol, text, value, exact }, rounded, lost) {
  const formula = text && served(printedIn(text), 'span', { class: 'why-formula' });
  const number = value !== undefined && make('span', { class: 'why-value', 'data-value': value }, printed(value),
    exact ? ` = ${printed(exact)}` : null);
  const beside = rounded && make('td', { class: 'why-rounded', 'data-value': rounded.value, translate: 'no' },
    rounded.value && make('span', { class: 'why-value' }, printed(rounded.value)),
    rounded.error && make('span', { class: 'why-error' }, printed(signed(rounded.error))));
  return make('tr', { 'data-step': symbol, class: symbol === lost ? 'lost' : null },
    make('th', { scope: 'row', translate: 'no' }, symbol === 'case' ? word('why.case') : symbol),
    make('td', { class: 'text', colspan: number ? null : rounded ? 2 : null, translate: 'no' }, formula, number),
    number && beside);
}

const signed = (error) => /^[-0]$/.test(error[0]) ? error : `+${error}`;
