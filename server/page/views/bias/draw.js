/* The heads of one configuration: a small map each, bias against distance, and what else is one number a head. */
import { make, math, name } from '../../dom.js';
import { Chart } from '../../chart.js';
import { extremes, limited, widest } from '../../draw/colors.js';
import { printed, short } from '../../draw/numbers.js';
import { colorOf, dashOf } from '../../draw/series.js';
import { fitBoth, lay } from '../../draw/windows.js';
import { Figure, datum, paintMeasure, shortDatum } from '../../figure.js';
import { Stage } from '../../heat/stage.js';
import { gap, label, live, phrase, word } from '../../words.js';
import { ascending, distancesOf, extremesOf, headsWith, queryOf, rowOf, windowOf } from './ask.js';
import { fillTable, versionOf } from '../parts.js';

const FEW = 8;             /* heads that have room for larger maps */
/* CSS pixels of a small map; in a story by how many heads there are, at most. */
const ROOM = { few: 132, many: 92, story: [[4, 150], [8, 110], [12, 88], [Infinity, 72]] };
const BESIDE = 16;         /* and beside it, at least */

export class Heads {
  /* { key, body, shape, heads, values, plan, reduce, row, query, numbers } of the last picture */
  #seen = null;
  #stages = [];
  #own = null;             /* [min, max] of each head */

  /* view: { page, scale, isShared(), choose(head) } */
  constructor(view, slot) {
    Object.assign(this, { view, page: view.page, slot });
    const title = live(() => versionOf(view.page, slot) ?? String(word('bias.heads')));
    this.figure = new Figure(this.page, { view: 'bias', slot, label: title });
    this.figure.onTable = async () => this.#fillTable();
    this.grid = make('div', { class: 'heads', role: 'group', 'aria-label': word('bias.heads') });
    this.figure.stage.append(this.grid);
    this.chart = new Chart(this.page, { view: 'bias', slot, label: word('bias.chart') });
  }

  get element() { return this.figure.element; }

  /* ---- asking ---- */

  /* body: as it is asked; shape: of the whole bias. */
  show(body, shape) {
    const state = this.page.store.state;
    const query = queryOf(state.cur, shape);
    const heads = headsWith(state.at[0] ?? 0, shape[0]);
    const plan = this.#plan(shape);
    const key = JSON.stringify([body, shape, heads, query, plan, state.red]);
    if (key === this.asked) return this.#again();
    this.asked = key;
    return this.figure.ask(async (get, stage) => {
      const { tensors: [{ values }] } = await get(windowOf(body, heads, shape, plan, state.red), { as: 'raw' });
      this.#seen = { key, body, shape, heads, values, plan, reduce: state.red };
      if (!stage.over()) await this.#takeExtremes(get);
      this.#paint();
      this.figure.drawn();
      if (!stage.over()) await this.#askRow(get, body, heads, query);
      if (!stage.over()) await this.#askNumbers(get, body);
    });
  }

  /* Of each head: asked for, unless all of it is drawn or it is too much to ask for. */
  async #takeExtremes(get) {
    const { body, shape, heads: [first, end], plan: { row, col }, values } = this.#seen;
    const isWhole = end - first === shape[0] && row.step * col.step === 1;
    const asked = isWhole ? [null] : ['min', 'max'].map((reduce) => extremesOf(body, shape, reduce));
    if (!asked[0]) {
      this.#own = Object.assign([],
        Object.fromEntries(this.#headsOf(values).map((part, i) => [first + i, extremes(part)])));
      return;
    }
    const [least, most] = await Promise.all(asked.map((request) => get(request, { as: 'raw' })));
    this.#own = Array.from(least.tensors[0].values, (value, head) => extremes([value, most.tensors[0].values[head]]));
  }

  async #askRow(get, body, heads, query) {
    const { tensors: [{ values }] } = await get(rowOf(body, heads, query), { as: 'raw' });
    this.#seen.row = values;
    this.#seen.query = query;
    this.#drawLines();
    this.chart.figure.drawn();
  }

  /* Outputs with one number a head, as slopes: below each map. */
  async #askNumbers(get, body) {
    const rows = this.page.catalogue.outputsOf(body, '/encode').filter((row) => String(row.axes) === 'head');
    this.#seen.numbers = [];
    for (const row of rows) {
      const answer = await get({ path: '/encode', body: { ...body, outputs: [row.name] } }, { as: 'numbers' });
      this.#seen.numbers.push({ row, texts: answer[row.name].texts });
    }
    this.#nameHeads();
    this.#say();
  }

  #headsOf(values) {
    const { heads: [first, end] } = this.#seen;
    const size = values.length / (end - first);
    return Array.from({ length: end - first }, (_, i) => values.subarray(i * size, (i + 1) * size));
  }

  /* ---- geometry ---- */

  /* Cells of the small maps; all of a map is always seen. */
  #plan([heads, rows, cols]) {
    const room = this.page.story ? ROOM.story.find(([most]) => heads <= most)[1] : heads > FEW ? ROOM.many : ROOM.few;
    const { row, col } = fitBoth({ cells: rows, room }, { cells: cols, room }, { square: true });
    return { room, row: lay(rows, room, row, 0), col: lay(cols, room, col, 0) };
  }

  /* ---- drawing ---- */

  /* The scale has changed. */
  refresh() { this.#paint(); }

  /* The same numbers: another head is in front, or other colours. */
  #again() {
    if (this.#seen?.key !== this.asked) return;   /* they are still to come, or were refused */
    this.#paint();
    if (this.#seen.row) this.#drawLines();
    this.figure.drawn();
  }

  #paint() {
    if (!this.#seen) return;
    const { heads: [first, end], plan, values } = this.#seen;
    this.view.scale.set(this, this.#own && widest(this.#own));   /* may repaint the others */
    this.#fillGrid(end - first, plan);
    const parts = this.#headsOf(values);
    paintMeasure(() => parts.forEach((part, i) => this.#paintHead(this.#stages[i], part, first + i)));
    this.#nameHeads();
    this.#press();
    this.#say();
  }

  #fillGrid(count, { room }) {
    this.grid.style.setProperty('--room', `${room + BESIDE}px`);
    while (this.#stages.length > count) this.#stages.pop().button.remove();
    while (this.#stages.length < count) {
      const button = make('button', { type: 'button', class: 'head', 'data-action': 'open' });
      const stage = new Stage(button, { ticks: false });
      stage.canvas.removeAttribute('tabindex');
      stage.canvas.setAttribute('role', 'presentation');
      const title = make('span', { class: 'head-name' });
      button.append(title);
      button.addEventListener('click', () => this.view.choose(Number(button.dataset.head)));
      this.grid.append(button);
      this.#stages.push({ stage, button, title });
    }
  }

  #paintHead({ stage, button }, values, head) {
    const { plan: { row, col }, reduce } = this.#seen;
    const grid = { row: { ...row, start: 0, from: 0 }, col: { ...col, start: 0, from: 0 } };
    const range = this.rangeOf(head);
    const cmap = this.#cmap();
    const attributes = {
      output: 'bias', at: head, row0: 0, col0: 0, rows: row.count, cols: col.count, 'row-step': row.step,
      'col-step': col.step, 'row-px': row.px, 'col-px': col.px, x0: 0, y0: 0, reduce, cmap, min: range[0],
      max: range[1],
    };
    stage.paint({
      axes: { row, col }, grid, kept: { values, stride: col.count }, range, colors: this.#colours(cmap), attributes,
    });
    stage.point(null);
    button.dataset.head = head;
  }

  #cmap() {
    return this.page.catalogue.catalogue().cmaps[this.page.store.state.cmap] ? this.page.store.state.cmap : 'viridis';
  }
  #colours(cmap) { return this.page.catalogue.catalogue().cmaps[cmap]; }

  /* Of a head: its own, or that of all maps. */
  rangeOf(head) {
    const { lo, hi } = this.page.store.state;
    const own = this.#own?.[head];
    return limited((this.view.isShared() ? this.view.scale.range : own) ?? null, lo, hi) ?? [0, 1];
  }

  /* ---- words ---- */

  #nameHeads() {
    const { heads: [first], numbers = [] } = this.#seen;
    this.#stages.forEach(({ title }, i) => {
      const more = numbers.map(({ row, texts }) => datum(
        texts[first + i], row.name, short(Number(texts[first + i]), 3)
      ));
      title.replaceChildren(make('span', null, word('bias.head', { head: first + i })),
        ...more.flatMap((one) => [' ', one]));
    });
  }

  #press() {
    for (const { button } of this.#stages) {
      button.setAttribute('aria-pressed', Number(button.dataset.head) === this.#head());
    }
  }

  #head() { return Math.min(this.page.store.state.at[0] ?? 0, this.#seen.shape[0] - 1); }

  #say() {
    this.figure.fillTable();
    const { shape, numbers = [] } = this.#seen;
    const range = widest(this.#own ?? []) ?? [0, 0];
    const parts = {
      heads: String(shape[0]),
      min: shortDatum(range[0], 'min'),
      max: shortDatum(range[1], 'max'),
      minus: math('math', null, math('mo', null, '−'), math('mi', null, '∞')),
    };
    const said = [phrase('bias.caption', parts)];
    if (this.#seen.values.includes(-Infinity)) said.push(gap(), phrase('bias.masked', parts));
    for (const { row } of numbers) said.push(gap(), phrase('bias.numbers', { output: label(row) }));
    this.figure.caption.replaceChildren(...said);
  }

  /* ---- bias against distance ---- */

  #drawLines() {
    const { row, query, shape, body, heads: [first, end] } = this.#seen;
    const { x, isDistance } = distancesOf(body, shape, query);
    const series = Array.from({ length: end - first }, (_, i) => ({
      id: `${this.slot}:${first + i}`, name: live(() => String(word('bias.head', { head: first + i }))),
      translate: 'yes', color: (theme) => colorOf(i, theme), dash: dashOf(i),
      width: first + i === this.#head() ? 3.5 : 1.5,
      ...ascending(x, row.subarray(i * x.length, (i + 1) * x.length)),
    }));
    this.chart.draw(series, {
      xLabel: word(isDistance ? 'bias.distance' : 'bias.key', { query: printed(query) }), yLabel: word('bias.value'),
      whole: { x: true },
    });
    this.chart.figure.caption.replaceChildren(phrase('bias.chartCaption', { query: printed(query) }));
  }

  /* A row a head: its numbers, its least and its largest bias. */
  #fillTable() {
    const { heads: [first], numbers = [] } = this.#seen;
    const columns = [...numbers.map(({ row }) => row.name), 'min', 'max'].map((text) => name(text));
    const cells = (head) => [...numbers.map(({ texts }) => texts[head]), ...this.#own?.[head] ?? []].map(printed);
    fillTable(this.figure, word('bias.heads'), columns,
      this.#stages.map((_, i) => [first + i, word('bias.head', { head: first + i }), cells(first + i)]));
  }

  close() {
    this.view.scale.leave(this);
    this.chart.close();
    this.figure.close();
  }
}
