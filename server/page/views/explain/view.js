/* The view `explain`: what a model's configuration means to every tool that reads it. Its kinds of layers as strips,
 * its fields with a column a tool, what contradicts itself, worst first, with a curve of how far cosines part. Of two
 * configurations, as a config.json and the .gguf file made from it, the verdict is above. */
import { Chart } from '../../chart.js';
import { Translation } from '../../copying/translation.js';
import {
  action, cell, code, columns, copyText, make, mark, name, row, scrolling, served, table,
} from '../../dom.js';
import { Figure, datum, grouped, shortDatum } from '../../figure.js';
import { Taker } from '../../forms/taking.js';
import { gap, label, language, live, phrase, rewrite, word } from '../../words.js';
import { choice } from '../controls.js';
import { colorOfSlot } from '../slots.js';
import {
  METRIC, PATH, bare, compared, cosines, explained, gaps, pairsOf, positionsOf, sidesOf, strips, taken,
  textOf,
  verdictOf, worstFirst,
} from './ask.js';

/* A file of transformers 5, in which transformers 4 does not find its numbers. */
const EXAMPLE = {
  model_type: 'gemma3_text', head_dim: 256, num_hidden_layers: 26, max_position_embeddings: 131072,
  sliding_window: 512, layer_types: Array.from({ length: 26 },
    (_, i) => i % 6 === 5 ? 'full_attention' : 'sliding_attention'),
  rope_parameters: {
    full_attention: { rope_type: 'linear', factor: 8, rope_theta: 1000000 },
    sliding_attention: { rope_type: 'default', rope_theta: 10000 },
  },
};
const SIDES = ['a', 'b'];
const CURVES_MAX = 8;

/* A text that the server gives in both languages. */
const told = (found) => live(() => (language() === 'zh' && found.detail_zh) || found.detail);

class Explain {
  #asked = '';
  #compared = '';
  #charts = [];

  constructor(page, root) {
    this.page = page;
    this.input = make('input', {
      type: 'file', 'data-drop': '', multiple: true, accept: '.json,.gguf', onchange: () => this.#takeChosen(),
    });
    this.side = choice({
      name: 'on', text: word('heat.front'), pick: (on) => page.store.set({ on }, { undo: 'on' }),
    });
    this.verdict = new Verdict(page);
    this.figure = new Figure(page, { view: 'explain', slot: 'a', label: word('view.explain') });
    this.figure.onTable = () => this.#fillTable();
    const title = word('explain.said');
    const text = make('pre', { 'data-said': '', translate: 'no', tabindex: 0, role: 'group', 'aria-label': title });
    this.said = new Translation(page, text);
    text.after(action('copy', word('panel.copy'), async () => {
      if (await copyText(text.textContent)) page.announce(word('panel.copied'));
    }));
    root.append(
      make('div', { class: 'explain-drop' },
        make('p', null, phrase('explain.drop', { config: code('config.json'), gguf: code('.gguf') })),
        make('label', { class: 'button file' }, word('paste.file'), this.input)),
      this.verdict.figure.element, this.side.element, this.figure.element);
    rewrite(this.figure.stage, () => this.figure.isOpen && this.update());
    this.figure.isOpen = true;
  }

  async #takeChosen() {
    await new Taker(this.page, () => {}).takeFiles([...this.input.files]);
    this.input.value = '';
  }

  /* ---- asking ---- */

  update() {
    const { page } = this;
    const sides = SIDES.filter((slot) => page.config(slot));
    const slot = page.front();
    this.side.element.hidden = page.configs().length < 2;
    this.side.show(page.configs().map(([one]) => [one, name(one)]), slot);
    this.#updateVerdict(sides);
    if (!slot) return;
    const request = this.#request(slot);
    const key = JSON.stringify([slot, request]);
    if (key === this.#asked) return;
    this.#asked = key;
    page.refused(this.figure.slot, null);
    this.figure.slot = slot;
    mark(this.figure.element, { config: slot });
    this.figure.ask((get, stage) => this.#ask(get, stage, slot, request));
  }

  #request(slot) { return explained(this.page.catalogue, this.page.config(slot), language()); }

  async #ask(get, { over }, slot, request) {
    const answer = await get(request);
    if (over()) return;
    const [first] = answer.layers;
    if (first.config) this.page.publish(slot, { config: first.config, tensors: {} });
    this.answer = answer;
    this.#show(answer);
    this.figure.drawn();
    await this.#draw(get, answer, over);
  }

  #updateVerdict(sides) {
    const { page, verdict } = this;
    verdict.figure.element.hidden = sides.length < 2;
    if (sides.length < 2) return;
    const key = JSON.stringify(sides.map((slot) => this.#request(slot)));
    if (key === this.#compared) return;
    this.#compared = key;
    verdict.ask(sides.map((slot) => page.config(slot)));
  }

  /* ---- the card ---- */

  #show(answer) {
    this.figure.rename(label(this.page.calledBy(this.figure.slot)));
    this.figure.stage.replaceChildren(
      make('div', { class: 'explained-card' },
        served(answer.detail, 'p', { class: 'explain-sum' }),
        section('kinds', ...strips(answer).map((strip) => this.#strip(answer, strip))),
        this.#findings(answer), this.#fields(answer), section('said', this.said.element)));
    this.said.show(bare(this.page.catalogue, this.page.config(this.figure.slot)));
    this.figure.caption.replaceChildren(...this.#notes(answer));
  }

  #notes({ model, rows, notes }) {
    const length = datum(model.length, 'length', grouped(model.length));
    const parts = [phrase(model.length_assumed ? 'explain.assumed' : 'explain.length', { length })];
    if (rows) parts.push(gap(), make('span', { 'data-rows': rows }, word(`explain.rows.${rows}`)));
    return [...parts, ...notes.flatMap((one) => [gap(), served(one, 'span')])];
  }

  /* One cell a layer, the colour its kind; the line below says which one is under pointer or cursor. */
  #strip({ layers: entries }, { part, layers, kinds }) {
    const line = make('p', { class: 'hint layers-line', 'aria-live': 'polite' });
    const cells = layers.map((kind, i) => make('span', {
      class: `layer kind-${kind % 4}`, 'data-layer': i, 'data-kind': entries[kind].layer_type,
      title: `${i}: ${entries[kind].summary ?? entries[kind].layer_type}`,
    }));
    let now = 0;
    const show = (i) => {
      cells[now].classList.remove('at');
      now = Math.min(Math.max(i, 0), cells.length - 1);
      cells[now].classList.add('at');
      const { layer_type: kind, config } = entries[layers[now]];
      line.replaceChildren(phrase('explain.layer',
        { layer: datum(now, 'layer'), kind: code(kind), base: datum(config?.base ?? '–', 'base') }));
    };
    const strip = make('div', {
      class: 'layers', tabindex: 0, role: 'group', 'aria-label': word('explain.strip', { n: layers.length }),
      onpointerover: ({ target: { dataset: { layer } } }) => layer && show(Number(layer)),
      onfocus: () => show(now),
      onkeydown: (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1, Home: -now, End: cells.length }[event.key];
        if (step === undefined) return;
        event.preventDefault();
        show(now + step);
      },
    }, cells);
    return make('div', { 'data-part': part },
      part === 'text' ? null : make('h4', null, code(part)),
      ...layers.length ? [strip, line] : [make('p', { class: 'hint' }, word('explain.uncounted'))],
      make('ul', { class: 'kinds' }, kinds.map(([i, one]) => kindOf(i, one))));
  }

  /* ---- findings ---- */

  #findings(answer) {
    const { findings } = answer;
    const list = make('ol', { class: 'findings' }, findings.map((one) => make('li', {
      'data-finding': one.code, 'data-level': one.level,
    },
    make('p', null, make('strong', null, word(`explain.level.${one.level}`)), ' ', told(one), ' ',
      code(one.code)),
    one.consequence ? make('p', { class: 'hint' }, consequence(one.consequence)) : null,
    make('div', { class: 'finding-curve' }))));
    return section('findings', findings.length ? list : null, make('p', { class: 'hint' }, told(answer)));
  }

  /* The curves come after the words; findings about the same numbers share one. */
  async #draw(get, answer, over) {
    for (const chart of this.#charts) chart.close();
    this.#charts = [];
    const seen = new Set();
    const places = this.figure.stage.querySelectorAll('.finding-curve');
    for (const [i, finding] of answer.findings.entries()) {
      const sides = sidesOf(answer, finding);
      const key = JSON.stringify(sides);
      if (!sides || seen.has(key) || seen.size === CURVES_MAX) continue;
      seen.add(key);
      const { first, position, length } = finding.consequence;
      const at = positionsOf(length, first, position);
      const found = await Promise.all(sides.map((config) => get(cosines(config, at), { as: 'raw' }))).catch(() => null);
      if (over()) return;
      const gap = found && gaps(...found.map(({ tensors }) => tensors));
      if (gap) this.#charts.push(curve(this.page, places[i], at, gap, first));
    }
  }

  /* ---- fields ---- */

  #fields(answer) {
    const tools = Object.keys(answer.readers);
    const heads = [word('explain.field'), word('explain.value'), ...tools.map((one) => name(one))];
    const rows = answer.fields.map((field) => row(breakable(field.pointer.replace(/^\/(hf_config|gguf)\//, '')), [
      cell(name(textOf(field.value))), ...tools.map((tool) => fieldCell(field, tool)),
    ], { 'data-pointer': field.pointer }));
    const title = word('explain.fields');
    if (!rows.length) return null;
    return section('fields', scrolling(title, table({ class: 'rows who-takes' }, columns(heads), rows)),
      make('p', { class: 'hint' }, phrase('explain.marks', { mark: make('b', { class: 'differs' }, '≠') })));
  }

  /* The resolved configurations, a column a kind. */
  #fillTable() {
    const { layers } = this.answer ?? {};
    if (!layers) return;
    const names = [...new Set(layers.flatMap((one) => Object.keys(one.config ?? {})))];
    this.figure.showTable(scrolling(word('figure.table'), table(null,
      columns(['', ...layers.map((one) => name(one.layer_type))]),
      names.map((field, i) => row(code(field), layers.map((one, col) =>
        cell(name(textOf(one.config?.[field] ?? '')), { row: i, col })))))));
  }

  /* ---- for the page ---- */

  request(slot) {
    if (!this.page.config(slot)) return null;
    return { path: PATH, body: bare(this.page.catalogue, this.page.config(slot)), plain: 'detail' };
  }

  close() {
    for (const chart of this.#charts) chart.close();
    this.figure.isOpen = false;
    this.figure.close();
    this.said.close();
    this.verdict.close();
  }
}

/* ---- parts of the card ---- */

const section = (what, ...children) => make('section', { class: `explain-${what}`, 'data-section': what },
  make('h2', null, word(`explain.${what}`)), ...children);

/* A pointer or key, which may break behind each of its words. */
const breakable = (text) => make('code', null, text.split(/(?<=[/.])/).flatMap((part) => [part, make('wbr')]));

function fieldCell(field, tool) {
  const { text, from, differs } = taken(field, tool);
  return mark(make('td', { class: differs && 'differs' }, differs && '≠ ', name(text),
    from !== 'field' && make('small', null, word(`explain.from.${from}`))), { tool, differs, from });
}

function kindOf(i, one) {
  const count = one.count === null ? null : datum(one.count, 'count');
  return make('li', { 'data-layer-type': one.layer_type },
    make('span', { class: `swatch kind-${i % 4}`, 'aria-hidden': 'true' }),
    make('strong', null, code(one.layer_type)), count ? [' × ', count] : null,
    served(one.refused ?? one.summary, 'p', { class: 'hint' }));
}

/* The sentence of the finding says how much it is, and where it begins if it does. */
const consequence = ({ max_abs_cos: most, position, pair }) => phrase('explain.most', {
  most: shortDatum(most, 'max_abs_cos'), position: datum(position, 'position', grouped(position)),
  pair: datum(pair, 'pair'),
});

/* |Δ| over positions, on a log axis, with a mark where it begins to be seen. */
function drawCurve(chart, x, y, first) {
  const marks = first > 0 ? [{ axis: 'x', at: first, label: word('explain.mark') }] : [];
  chart.draw([{ id: 'b-a:0', name: word('explain.difference'), color: () => colorOfSlot('b-a'), width: 2, x, y }],
    { xLabel: word('explain.position'), yLabel: '|Δ|', marks });
}

function curve(page, place, ...drawn) {
  const chart = new Chart(page, { label: word('explain.difference'), bare: true, scales: { x: 'log' } });
  place.append(chart.element);
  drawCurve(chart, ...drawn);
  return chart;
}

/* ---- two configurations ---- */

class Verdict {
  constructor(page) {
    this.page = page;
    this.chart = new Chart(page, { view: 'explain', slot: 'b-a', label: word('explain.both'), scales: { x: 'log' } });
    this.words = make('div', { class: 'verdict' });
    this.figure.stage.prepend(this.words);
  }

  get figure() { return this.chart.figure; }

  ask(configs) {
    this.figure.ask(async (get, { over }) => {
      const { catalogue } = this.page;
      const answers = await Promise.all(configs.map((config) => get(explained(catalogue, config, language()))));
      SIDES.forEach((slot, i) => this.page.publish(slot, { config: answers[i].layers[0].config, tensors: {} }));
      const at = positionsOf(Math.max(...answers.map(({ model }) => model.length)));
      const bodies = configs.map((config) => bare(catalogue, config));
      const found = await Promise.all(pairsOf(answers).map(async (pair) => {
        if (pair.alone) return { pair, result: null };
        const { results, tensors } = await get(compared(bodies, pair, at));
        return { pair, result: results[1][METRIC], gap: tensors[`${METRIC}.1`]?.data };
      }));
      if (!over()) this.#show(worstFirst(found), at);
    });
  }

  #show(found, at) {
    const [worst] = found;
    const verdict = verdictOf(worst);
    const list = found.map(({ pair, ...one }) => make('li', {
      'data-verdict': verdictOf(one), 'data-layer-type': pair.name,
    }, pair.name ? [code(pair.name), ': '] : null, one.result ? told(one.result)
      : word('explain.only', { slot: pair.alone })));
    mark(this.words, { verdict }).replaceChildren(
      make('p', { class: 'verdict-sentence' }, phrase(`explain.verdict.${verdict}`, {
        fields: make('span', null, (worst.result?.reasons ?? ['layer_type'])
          .flatMap((one, i) => [i ? ', ' : '', code(one)])),
      })), make('ul', { class: 'verdict-kinds' }, list));
    const { chart } = this;
    chart.element.hidden = verdict !== 'differs' || !worst.gap;
    if (!chart.element.hidden) drawCurve(chart, at, worst.gap.map(Number), at[worst.result.first?.row]);
    this.figure.drawn();
  }

  close() { this.chart.close(); }
}

export default {
  name: 'explain', path: PATH, setsSequence: true,
  example: () => ({ a: { hf_config: EXAMPLE, len: 128 } }),
  open: (page, root) => new Explain(page, root),
};
