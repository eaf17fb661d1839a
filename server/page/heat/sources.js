/* Where the numbers of a heat map come from. A source tells about its tensor, gives windows of it for pictures, its
 * extremes, and the exact texts of its cells.
 *
 *   about(get)                        { name, dtype, shape, lead, rows, cols, axes: [names], places, range, least,
 *                                     scheme, meta, sure }; range: what the numbers may be; least: where colours begin
 *   guess(other, about)               the same without asking, from another source's; `sure` only if it cannot be wrong
 *   window(get, about, row, col, red) { values, rows, cols }, row-major; row, col: { first, step, count }
 *   extremes(get, about)              [min, max] of the whole tensor, with `least` of what is shown of it; null: none
 *                                     is finite, or too many to ask for
 *   texts(get, about, rows, cols)     [[text, …], …] of the cells in [first, stop), as the API's JSON writes them */
import { extremes } from '../draw/colors.js';
import { jsonText, singleText } from '../draw/numbers.js';
import { common, places } from '../draw/places.js';

export const WHOLE_MAX = 2 ** 26;             /* extremes of larger tensors are those of the window */
const SLICED = ['/encode', '/attention', '/rotate'];

/* spec: { path, body, output, at, axes } or, for a difference, { of: [spec of b, spec of a] }. given: the tensors,
 * which are not asked for; asked: windows come in the dtype of the body; reduce: what stands for several cells, instead
 * of the state's; served: of given tensors, the request of their blocks from { base, rows, cols, slice, reduce }. */
export function sourceOf(spec, catalogue) {
  if (spec.of) return new Difference(...spec.of.map((one) => sourceOf(one, catalogue)));
  return SLICED.includes(spec.path) ? new Sliced(spec, catalogue) : new Whole(spec, catalogue);
}

/* Nothing to subtract: the two have no output in common. */
export class NoCommon extends Error {}

const product = (shape) => shape.reduce((all, side) => all * side, 1);

/* A tensor as rows and columns; leading axes stand at `at`. */
function flat(shape, at) {
  const lead = shape.slice(0, -2).map((side, i) => Math.min(at[i] ?? 0, side - 1));
  const [rows, cols] = [1, 1, ...shape].slice(-2);
  return { lead, rows: shape.length < 2 ? 1 : rows, cols, count: product(shape) };
}

/* How many rows a request seems to ask for; undefined where it does not say. */
const rowsOf = ({ q_len: queries, len, tokens, positions, lens }) =>
  queries ?? len ?? (tokens ?? positions)?.length ?? lens?.reduce?.((sum, one) => sum + one, 0);

/* Ids of 64 bits become doubles for colours; their texts stay exact. */
const plain = (values) => values instanceof BigInt64Array ? Float64Array.from(values, Number) : values;

/* JSON without its numbers. */
const form = (value) => JSON.stringify(value)?.replace(/-?\d+(\.\d+)?(e[-+]?\d+)?/gi, '0');

class Source {
  constructor({ path, body, output = null, at = [], axes = null, given = null, asked = false, reduce, served },
    catalogue) {
    Object.assign(this, { path, body, output, at, names: axes, given, asked, catalogue, reduce, served });
    this.wholeKey = JSON.stringify([path, body, output]);
    this.key = JSON.stringify([path, body, output, at]);
  }

  /* The catalogue's row of an output with that many axes; undefined where the catalogue does not know. */
  row(name, rank) {
    const rows = this.catalogue.outputsOf(this.body, this.path).filter((row) => row.name === name);
    return rows.find((row) => row.axes?.length === rank) ?? rows[0];
  }

  /* Of about() what the request itself shows, for the place of a picture that is not there yet; null where it states
   * nothing of rows. */
  expected() {
    const rows = rowsOf(this.body ?? {});
    if (!(rows > 0)) return null;
    const row = this.row(this.output)
      ?? this.catalogue.outputsOf(this.body, this.path).find((one) => one.default && one.axes?.length > 1);
    const axes = (this.names ?? row?.axes ?? []).slice(-2);
    const cols = axes[1] === 'key' ? rows : 1;
    const scheme = this.catalogue.schemeOf(this.body)?.name;
    return axes.length > 1 ? { name: row?.name ?? this.output, scheme, shape: [rows, cols], rows, cols, axes } : null;
  }

  /* What is likely to be true of this source if `about` is of `other` and only numbers of its request have changed: a
   * side that was as long as such a number has changed with it. Null where nothing can be said. */
  guess(other, about) {
    if (other.constructor !== this.constructor || other.path !== this.path || other.output !== this.output) return null;
    const changes = this.#changes(other.body);
    if (!changes) return null;
    const follow = (side) => {
      const [from, to] = changes.find(([before]) => before === side || before === 2 * side) ?? [1, 1];
      return Math.max(1, Math.round(side / from * to));
    };
    return { ...this.describe(about.name, { ...about, shape: about.shape.map(follow) }, about), sure: !changes.length };
  }

  /* [[before, now], …] of plain numbers; null where more than numbers has changed. */
  #changes(before) {
    const names = Object.keys({ ...before, ...this.body })
      .filter((name) => JSON.stringify(before[name]) !== JSON.stringify(this.body[name]));
    const rows = names.length ? this.catalogue.parametersOf(this.body, this.path) : [];
    const pairs = names.map((name) => [before, this.body].map(
      (body) => body[name] ?? rows.find((row) => row.name === name)?.default
    ));
    const alike = (one, other) => typeof one !== 'string' && typeof one === typeof other && form(one) === form(other);
    return pairs.every(([one, other]) => alike(one, other)) ? pairs : null;
  }

  describe(name, { dtype, shape }, config) {
    const row = this.row(name, shape.length);
    const axes = (this.names ?? row?.axes ?? []).slice(-Math.max(1, shape.length));
    const cells = flat(shape, this.at);
    const sequence = this.catalogue.sequenceRows?.().map((one) => one.name) ?? [];
    return {
      name, dtype, shape, ...cells, axes, places: places(this.body, { axes, ...cells }, sequence),
      ...this.#bounds(row?.range), scheme: config?.scheme ?? this.body.scheme, sure: true,
    };
  }

  /* Weights of attention are mostly far below 1, their bound: colours go from 0 to the largest that is shown. */
  #bounds(range = null) {
    return this.path === '/attention' && range ? { range: null, least: range[0] } : { range, least: null };
  }
}

/* An answer that can be sliced: asked for in windows, so never too large. */
class Sliced extends Source {
  async about(get) {
    const meta = await this.#meta(get);
    this.catalogue.learn?.(this.body, meta.config);
    const [name, tensor] = this.#choose(meta.tensors);
    return { ...this.describe(name, tensor, meta.config), meta };
  }

  /* All outputs that are answered by default, and the one that is wanted if this configuration has it. */
  #meta(get) {
    const rows = this.catalogue.outputsOf(this.body, this.path);
    const has = !rows.length || rows.some((row) => row.name === this.output);
    const outputs = this.output && has ? { outputs: [this.output] } : {};
    return get({ path: this.path, body: { ...this.body, ...outputs, data: false } }, { as: 'json' });
  }

  #choose(tensors) {
    const all = Object.entries(tensors);
    return all.find(([name]) => name === this.output) ?? all.find(([, { shape }]) => shape.length > 1) ?? all[0];
  }

  /* What asks for the cells of two axes; `more` says in which form. */
  request(about, row, col, more) {
    const part = ({ first, step, count }, cells) => [first, Math.min(cells, first + count * step), step];
    const { name, shape, lead, rows, cols } = about;
    const slice = [...lead, ...shape.length > 1 ? [part(row, rows)] : [], ...shape.length ? [part(col, cols)] : []];
    return { path: this.path, body: { ...this.body, outputs: [name], ...slice.length ? { slice } : {}, ...more } };
  }

  async window(get, about, row, col, reduce, dtype = 'f32') {
    const isReduced = row.step > 1 || col.step > 1;
    const { tensors: [{ values, shape }] } = await get(
      this.request(about, row, col, { ...this.asked ? {} : { dtype }, ...isReduced ? { reduce } : {} }), { as: 'raw' }
    );
    const [rows, cols] = [1, 1, ...shape].slice(-2);
    return { values: plain(values), rows, cols };
  }

  async extremes(get, { name, shape, count, lead, least }) {
    if (count > WHOLE_MAX) return null;
    const found = [];
    for (const reduce of ['min', 'max']) {
      const all = (side) => [null, null, side];
      const slice = least === null ? shape.map(all) : [...lead, ...shape.slice(-2).map(all)];
      const body = { ...this.body, outputs: [name], dtype: 'f32', ...slice.length ? { slice, reduce } : {} };
      const { tensors: [tensor] } = await get({ path: this.path, body }, { as: 'raw' });
      found.push(Number(tensor.values[0]));
    }
    return extremes(found);
  }

  async texts(get, about, rows, cols) {
    const answer = await get(this.request(about, run(rows), run(cols), {}), { as: 'numbers' });
    return inRows(answer[about.name].texts, cols);
  }
}

const run = ([first, stop]) => ({ first, step: 1, count: stop - first });

function inRows(texts, [first, stop]) {
  const cols = stop - first;
  return Array.from({ length: texts.length / cols }, (_, i) => texts.slice(i * cols, (i + 1) * cols));
}

/* Of a source whose cells are doubles or integers, from a window. */
async function textsOf(source, get, about, rows, cols, dtypes) {
  const { values } = await source.window(get, about, run(rows), run(cols));
  const write = dtypes.every((dtype) => dtype[0] === 'i') ? String
    : dtypes.length > 1 || dtypes[0] === 'f64' ? jsonText
    : singleText;
  return inRows(Array.from(values, write), cols);
}

/* An answer that comes whole, as those of /analyze: kept, and of a block the first cell is drawn, unless the server is
 * asked for blocks. */
class Whole extends Source {
  constructor(...all) {
    super(...all);
    if (!this.served) this.reduce = 'sample';
  }

  guess() { return null; }

  expected() {
    const [tensor] = this.given ?? [];
    return tensor ? { ...tensor, ...flat(tensor.shape, this.at), axes: this.names } : super.expected();
  }

  async about(get) {
    const outputs = this.output ? { outputs: [this.output.replace(/\.\d+$/, '')] } : {};
    const tensors = this.given
      ?? (await get({ path: this.path, body: { ...this.body, ...outputs } }, { as: 'raw' })).tensors;
    const tensor = tensors.find(({ name }) => name === this.output || name.startsWith(`${this.output}.`)) ?? tensors[0];
    const about = this.describe(tensor.name, tensor, this.body);
    const base = about.lead.reduce((at, index, i) => at * tensor.shape[i] + index, 0) * about.rows * about.cols;
    return { ...about, base, values: plain(tensor.values) };
  }

  async window(get, { base, rows, cols, values }, row, col, reduce) {
    if (this.served && (row.step > 1 || col.step > 1)) return this.#reduced(get, base, rows, cols, row, col, reduce);
    const picked = new Float64Array(row.count * col.count);
    for (let i = 0, k = 0; i < row.count; i++) {
      const line = base + (row.first + i * row.step) * cols + col.first;
      for (let j = 0; j < col.count; j++, k++) picked[k] = values[line + j * col.step];
    }
    return { values: picked, rows: row.count, cols: col.count };
  }

  async #reduced(get, base, rows, cols, row, col, reduce) {
    const slice = [row, col]
      .map(({ first, step, count }, axis) => [first, Math.min([rows, cols][axis], first + count * step), step]);
    const { tensors: [{ values, shape }] } = await get(this.served({ base, rows, cols, slice, reduce }), { as: 'raw' });
    return { values, rows: shape[0], cols: shape[1] };
  }

  async extremes(get, { values }) { return extremes(values); }

  async texts(get, about, rows, cols) {
    return textsOf(this, get, about, rows, cols, [about.dtype]);
  }
}

/* b - a of doubles, where both have cells. */
class Difference {
  constructor(b, a) {
    Object.assign(this, { b, a, isDifference: true, reduce: b.reduce });
    this.wholeKey = JSON.stringify([b.wholeKey, a.wholeKey]);
    this.key = JSON.stringify([b.key, a.key]);
  }

  async about(get) {
    let [b, a] = [await this.b.about(get), await this.a.about(get)];
    if (b.name !== a.name) [b, a] = await this.#common(get);
    if (b.shape.length !== a.shape.length) throw new NoCommon();
    return this.#both(b, a);
  }

  #both(b, a) {
    const [rows, cols] = [Math.min(b.rows, a.rows), Math.min(b.cols, a.cols)];
    const isPart = [b, a].some((one) => one.rows !== rows || one.cols !== cols);
    return {
      ...b, places: common(b.places, a.places), meta: null, range: null, rows, cols, b, a, isPart,
      sure: b.sure && a.sure,
    };
  }

  expected() { return this.b.expected(); }

  guess(other, about) {
    if (!other.isDifference) return null;
    const [b, a] = [this.b.guess(other.b, about.b), this.a.guess(other.a, about.a)];
    return b && a && this.#both(b, a);
  }

  /* The first output that both can answer. */
  async #common(get) {
    const [inB, inA] = [this.b, this.a].map((one) => one.catalogue.outputsOf(one.body, one.path));
    const row = inB.find(({ name, axes }) => inA.some(
      (other) => other.name === name && other.axes?.length === axes?.length
    ));
    if (!row) throw new NoCommon();
    for (const one of [this.b, this.a]) one.output = row.name;
    return [await this.b.about(get), await this.a.about(get)];
  }

  /* The last block of each stands for the cells that both have. An answer that came whole keeps its own length of a
   * row. */
  async window(get, { b, a, ...both }, row, col, reduce) {
    const common = (one) => one.values ? one : { ...one, rows: both.rows, cols: both.cols };
    const one = await this.b.window(get, common(b), row, col, reduce, 'f64');
    const other = await this.a.window(get, common(a), row, col, reduce, 'f64');
    const [rows, cols] = [Math.min(one.rows, other.rows), Math.min(one.cols, other.cols)];
    const values = new Float64Array(rows * cols);
    for (let i = 0, k = 0; i < rows; i++) {
      for (let j = 0; j < cols; j++, k++) values[k] = one.values[i * one.cols + j] - other.values[i * other.cols + j];
    }
    return { values, rows, cols };
  }

  async extremes() { return null; }

  async texts(get, about, rows, cols) {
    return textsOf(this, get, about, rows, cols, [about.b.dtype, about.a.dtype]);
  }
}
