/* Where the numbers of a heat map come from. A source tells about its tensor, gives windows of it for pictures, its
 * extremes, and the exact texts of its cells. All numbers are the server's; here two of them are only subtracted.
 *
 *   about(get)                        { name, dtype, shape, lead, rows, cols, axes: [names], range, scheme, meta }
 *   window(get, about, row, col, red) numbers of a window, row-major; row, col: { first, step, count }
 *   extremes(get, about)              [min, max] of the whole tensor; null: none is finite, or too many to ask for
 *   texts(get, about, rows, cols)     [[text, …], …] of the cells in [first, stop), as the API's JSON writes them */
import { extremes } from '../draw/colors.js';
import { jsonText } from '../draw/numbers.js';

export const WHOLE_MAX = 2 ** 26;             /* extremes of larger tensors are those of the window */
const SHAPELESS = ['frequencies', 'scaling', 'numbers', 'weights', 'mask', 'attention'];   /* groups of parameters */
const SLICED = ['/encode', '/attention', '/rotate'];

/* spec: { path, body, output, at, axes } or, for a difference, { of: [spec of b, spec of a] }. */
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

/* Ids of 64 bits become doubles for colours; their texts stay exact. */
const plain = (values) => values instanceof BigInt64Array ? Float64Array.from(values, Number) : values;

class Source {
  constructor({ path, body, output = null, at = [], axes = null }, catalogue) {
    Object.assign(this, { path, body, output, at, names: axes, catalogue });
    this.wholeKey = JSON.stringify([path, body, output]);
    this.key = JSON.stringify([path, body, output, at]);
  }

  /* The catalogue's row of an output with that many axes; undefined where the catalogue does not know. */
  row(name, rank) {
    const rows = this.catalogue.outputsOf(this.body, this.path).filter((row) => row.name === name);
    return rows.find((row) => row.axes?.length === rank) ?? rows[0];
  }

  /* Does it differ from another one only in parameters that leave the shapes alone? A guess, to be verified. */
  resembles(other) {
    if (other.constructor !== this.constructor || String([other.path, other.output, other.at]) !== String([this.path, this.output, this.at])) return false;
    const rows = this.catalogue.parametersOf(this.body, this.path);
    const names = Object.keys({ ...this.body, ...other.body });
    const changed = names.filter((name) => JSON.stringify(this.body[name]) !== JSON.stringify(other.body[name]));
    return changed.every((name) => SHAPELESS.includes(rows.find((row) => row.name === name)?.group));
  }

  describe(name, { dtype, shape }, config) {
    const row = this.row(name, shape.length);
    const axes = this.names ?? row?.axes ?? [];
    return { name, dtype, shape, ...flat(shape, this.at), axes, range: row?.range ?? null, scheme: config?.scheme ?? this.body.scheme };
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

  #request({ name, shape, lead }, rows, cols, more) {
    const slice = [...lead, ...shape.length > 1 ? [rows] : [], ...shape.length ? [cols] : []];
    return { path: this.path, body: { ...this.body, outputs: [name], ...slice.length ? { slice } : {}, ...more } };
  }

  async window(get, about, row, col, reduce, dtype = 'f32') {
    const part = ({ first, step, count }, cells) => [first, Math.min(cells, first + count * step), step];
    const more = { dtype, ...row.step > 1 || col.step > 1 ? { reduce } : {} };
    const { tensors: [tensor] } = await get(this.#request(about, part(row, about.rows), part(col, about.cols), more), { as: 'raw' });
    return plain(tensor.values);
  }

  async extremes(get, { name, shape, count }) {
    if (count > WHOLE_MAX) return null;
    const found = [];
    for (const reduce of ['min', 'max']) {
      const slice = shape.map((side) => [null, null, side]);
      const body = { ...this.body, outputs: [name], dtype: 'f32', ...slice.length ? { slice, reduce } : {} };
      const { tensors: [tensor] } = await get({ path: this.path, body }, { as: 'raw' });
      found.push(Number(tensor.values[0]));
    }
    return extremes(found);
  }

  async texts(get, about, rows, cols) {
    const answer = await get(this.#request(about, rows, cols, {}), { as: 'numbers' });
    return inRows(answer[about.name].texts, cols);
  }
}

function inRows(texts, [first, stop]) {
  const cols = stop - first;
  return Array.from({ length: texts.length / cols }, (_, i) => texts.slice(i * cols, (i + 1) * cols));
}

/* An answer that comes whole, as those of /analyze: kept, and of a block the first cell is drawn. */
class Whole extends Source {
  constructor(...all) {
    super(...all);
    this.reduce = 'sample';
  }

  resembles() { return false; }

  async about(get) {
    const outputs = this.output ? { outputs: [this.output.replace(/\.\d+$/, '')] } : {};
    const { tensors } = await get({ path: this.path, body: { ...this.body, ...outputs } }, { as: 'raw' });
    const tensor = tensors.find(({ name }) => name === this.output || name.startsWith(`${this.output}.`)) ?? tensors[0];
    const about = this.describe(tensor.name, tensor, this.body);
    const base = about.lead.reduce((at, index, i) => at * tensor.shape[i] + index, 0) * about.rows * about.cols;
    return { ...about, base, values: plain(tensor.values) };
  }

  async window(get, { base, cols, values }, row, col) {
    const picked = new Float64Array(row.count * col.count);
    for (let i = 0, k = 0; i < row.count; i++) {
      const line = base + (row.first + i * row.step) * cols + col.first;
      for (let j = 0; j < col.count; j++, k++) picked[k] = values[line + j * col.step];
    }
    return picked;
  }

  async extremes(get, { values }) { return extremes(values); }

  async texts(get, about, rows, cols) {
    const [row, col] = [rows, cols].map(([first, stop]) => ({ first, step: 1, count: stop - first }));
    const text = /^i/.test(about.dtype) ? String : jsonText;
    return inRows(Array.from(await this.window(get, about, row, col), text), cols);
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
    const [rows, cols] = [Math.min(b.rows, a.rows), Math.min(b.cols, a.cols)];
    const isPart = [b.rows, a.rows].some((n) => n !== rows) || [b.cols, a.cols].some((n) => n !== cols);
    return { ...b, meta: null, range: null, rows, cols, b, a, isPart };
  }

  /* The first output that both can answer. */
  async #common(get) {
    const [inB, inA] = [this.b, this.a].map((one) => one.catalogue.outputsOf(one.body, one.path));
    const row = inB.find(({ name, axes }) => inA.some((other) => other.name === name && other.axes?.length === axes?.length));
    if (!row) throw new NoCommon();
    for (const one of [this.b, this.a]) one.output = row.name;
    return [await this.b.about(get), await this.a.about(get)];
  }

  resembles(other) { return Boolean(other.isDifference) && this.b.resembles(other.b) && this.a.resembles(other.a); }

  async window(get, { b, a }, row, col, reduce) {
    const minuend = await this.b.window(get, b, row, col, reduce, 'f64');
    const subtrahend = await this.a.window(get, a, row, col, reduce, 'f64');
    const difference = new Float64Array(minuend.length);
    for (let i = 0; i < difference.length; i++) difference[i] = minuend[i] - subtrahend[i];
    return difference;
  }

  async extremes() { return null; }

  async texts(get, about, rows, cols) {
    const [row, col] = [rows, cols].map(([first, stop]) => ({ first, step: 1, count: stop - first }));
    const text = /^i/.test(about.b.dtype) && /^i/.test(about.a.dtype) ? String : jsonText;
    return inRows(Array.from(await this.window(get, about, row, col), text), cols);
  }
}
