/* The numbers of `curves`: which positions are in view and where they are sampled, which columns one request brings; at
 * real positions where a scheme has them, else its rows. */
import { Refusal } from '../../ask.js';
import { Charts } from '../charts.js';
import { bodyFor, cannot } from '../parts.js';

export const COLUMNS_MAX = 12;
const SAMPLES_A_STEP = 16;
const PIXELS_A_STEP = 2;          /* with fewer, waves would be sampled too thinly to be true */
const NARROW = 64;                /* so many columns are brought along rather than asked for twice */
const ZOOMS = [2, 4, 8, 16, 32, 64, 128, 256];

/* A configuration whose sequence is a run of positions: { offset, len }; else null. */
export function runOf(config, sequenceNames) {
  const given = sequenceNames.filter((name) => config[name] !== undefined && config[name] !== null);
  if (given.some((name) => !['len', 'offset', 'tokens'].includes(name))) return null;
  const len = config.len ?? config.tokens?.length;
  return Number.isInteger(len) && len > 0 ? { offset: config.offset ?? 0, len } : null;
}

/* All that can be in view: the runs of all configurations together, as [first, last]. */
export const whole = (runs) =>
  [Math.min(...runs.map((run) => run.offset)), Math.max(...runs.map((run) => run.offset + run.len - 1))];

/* The positions [from, to] in view. zoom: pixels of a step, or 'fit' for as many positions as are honestly drawn. */
export function windowOf([first, last], { start, zoom, width }) {
  const span = zoom === 'fit' ? width / PIXELS_A_STEP : width / zoom;
  if (last - first <= span) return zoom === 'fit' || last === first ? around(first, last) : [first, first + span];
  const from = Math.min(Math.max(start, first), last - span);
  return [from, from + span];
}

/* A single position gets room on both sides. */
const around = (first, last) => first === last ? [first - 0.5, first + 0.5] : [first, last];

/* The zoom after one step in or out from what is shown. */
export function zoomBy(shown, direction) {
  const next = direction > 0 ? ZOOMS.find((px) => px > shown * 1.01) : ZOOMS.findLast((px) => px < shown * 0.99);
  return next ?? (direction > 0 ? ZOOMS.at(-1) : ZOOMS[0]);
}

/* Samples of [from, to]: multiples of a power of two, so that their decimals are short and integers are among them. */
export function samplesOf([from, to], width) {
  let step = 1 / SAMPLES_A_STEP;
  while ((to - from) / step > 2 * width && step < 1) step *= 2;
  const [first, last] = [Math.floor(from / step), Math.ceil(to / step)];
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

/* Whole positions of a run within [from, to], and one more on each side, as rows [start, stop]. */
export function rowsOf({ offset, len }, [from, to]) {
  const start = Math.max(0, Math.floor(from) - offset);
  return [start, Math.max(start, Math.min(len, Math.ceil(to) - offset + 1))];
}

const gcd = (a, b) => b ? gcd(b, a % b) : a;

/* Slices [start, stop, step] of the columns, each with the columns that it brings: [{ slice, cols }]. One slice where
 * it brings few others, else one a column. */
export function slicesOf(cols) {
  const sorted = [...new Set(cols)].sort((a, b) => a - b);
  if (!sorted.length) return [];
  const [first, last] = [sorted[0], sorted.at(-1)];
  const step = sorted.reduce((common, col) => gcd(common, col - first), 0) || 1;
  const count = (last - first) / step + 1;
  if (count <= NARROW) {
    return [{ slice: [first, last + 1, step], cols: Array.from({ length: count }, (_, i) => first + i * step) }];
  }
  return sorted.map((col) => ({ slice: [col, col + 1, 1], cols: [col] }));
}

/* Columns of the address, or a few that show slow and fast ones; those that the output has. */
export function columnsOf(text, width) {
  const wanted = text ? text.split(',').map(Number) : [0, 8, 16, 24];
  const there = [...new Set(wanted)].filter((col) => width === null || col < width);
  return (there.length ? there : [0]).slice(0, COLUMNS_MAX);
}

/* ---- asking ---- */

/* Outputs that are a row of numbers a position. */
export const isCurve = (row) => row.axes?.length === 2 && ['dim', 'pair'].includes(row.axes[1]);
export const curveOutputs = (page, config) => page.catalogue.outputsOf(config, '/encode').filter(isCurve);

/* The base of views that show columns of an output. */
export class ColumnCharts extends Charts {
  outputs() {
    const front = this.front();
    return front ? curveOutputs(this.page, front) : [];
  }

  output(config) {
    const rows = config ? curveOutputs(this.page, config) : [];
    return (rows.find((row) => row.name === this.state.out) ?? rows[0])?.name ?? null;
  }

  /* The run of positions that an output's rows stand at; null where its rows are something else. */
  run(config) {
    const row = curveOutputs(this.page, config).find((one) => one.name === this.output(config));
    return row && row.axes[0] !== 'position'
      ? null
      : runOf(config, this.page.catalogue.sequenceRows().map((one) => one.name));
  }

  /* Why one of the configurations cannot be shown; undefined: all can. */
  whyNot(configs) {
    const other = configs.map((config) => this.page.catalogue.schemeOf(config))
      .find((row, i) => row && !curveOutputs(this.page, configs[i]).length);
    return other && cannot(this.page.catalogue, 'curves.cannot', other.name,
      (row) => row.outputs.some((one) => one.default && isCurve(one)));
  }

  request(slot) {
    const config = this.page.config(slot);
    const out = config && this.output(config);
    return out
      ? { path: '/encode', body: { ...bodyFor(this.page.catalogue, '/encode', config), outputs: [out] } }
      : null;
  }
}

/* Configurations that turned out to have whole positions only, whatever their numbers: a drag asks no real ones
 * again. */
const wholeOnly = new Map();
const kindOf = (config) => JSON.stringify(config, (key, value) => typeof value === 'number' ? 0 : value);

/* Asks for the picture of a figure and draws it, first with one request; what only completes it comes afterwards. */
export async function askCurve(page, get, stage, { slot, configs, draw, ...view }) {
  const config = configs[0];
  if (!page.catalogue.schemeOf(config)) await publish(page, get, slot, config);
  if (configs.length === 2) return askDifference(page, get, stage, configs, { ...view, draw });
  const picture = await askPicture(page, get, config, view, {});
  draw(picture);
  if (stage.over()) return;
  const [rows, width] = await publish(page, get, slot, config, picture.output);
  const checked = picture.real && !stage.over() ? await checkWhole(page, get, config, view, picture) : picture;
  if (!stage.over()) draw({ ...checked, rows, width });
}

/* Learns what the configuration resolves to, and the shape of its output. */
async function publish(page, get, slot, config, output) {
  const body = { ...bodyFor(page.catalogue, '/encode', config), data: false, ...output && { outputs: [output] } };
  const meta = await get({ path: '/encode', body }, { as: 'json' });
  page.catalogue.learn?.(config, meta.config);
  page.publish?.(slot, meta);
  return meta.tensors[output]?.shape;
}

async function askPicture(page, get, config, view, more) {
  const run = view.run(config);
  const kind = kindOf(config);
  if (!run || wholeOnly.has(kind)) return askRows(page, get, config, view, more, wholeOnly.get(kind));
  try {
    return await askReal(page, get, config, view, more);
  } catch (error) {
    if (!(error instanceof Refusal) || error.problem.pointer !== '/positions') throw error;
    const picture = await askRows(page, get, config, view, more, error.problem.detail);
    wholeOnly.set(kind, error.problem.detail);
    return picture;
  }
}

function common(page, config, view) {
  const output = view.out(config);
  const row = curveOutputs(page, config).find((one) => one.name === output);
  return { scheme: page.catalogue.schemeOf(config).name, output, range: row.range, run: view.run(config) };
}

/* Each slice of columns with one request; gives [{ col, values }] in the order asked for. */
async function askColumns(get, body, view, output, rows) {
  const answers = await Promise.all(slicesOf(view.columns).map(async ({ slice, cols }) => {
    const { tensors: [tensor] } = await get(
      { path: '/encode', body: { ...body, outputs: [output], slice: [rows, slice] } }, { as: 'raw' }
    );
    const width = tensor.shape[1];
    return cols.slice(0, width).map((col, i) => (
      { col, values: Float64Array.from({ length: tensor.shape[0] }, (_, j) => tensor.values[j * width + i]) }
    ));
  }));
  return view.columns.map((col) => answers.flat().find((one) => one.col === col)).filter(Boolean);
}

/* At samples between positions too. The run's last position goes along unseen, because some schemes read how long their
 * sequence is. */
async function askReal(page, get, config, view, more) {
  const about = common(page, config, view);
  const { offset, len } = about.run;
  const last = offset + len - 1;
  const samples = samplesOf(view.window, view.width).map((x) => Math.min(Math.max(x, offset), last))
    .filter((x, i, all) => !i || x !== all[i - 1]);
  const body = bodyFor(page.catalogue, '/encode', config, { sequence: false });
  const columns = await askColumns(get, { ...body, ...more, positions: [...samples, last] }, view, about.output,
    [0, samples.length]);
  return { ...about, real: true, offset, ...withDots(columns, samples, Number.isInteger) };
}

/* At the rows of the sequence. */
async function askRows(page, get, config, view, more, refusal) {
  const about = common(page, config, view);
  const run = about.run ?? { offset: 0, len: Number.MAX_SAFE_INTEGER };
  const [start, stop] = rowsOf(run, view.window);
  const columns = await askColumns(get, { ...bodyFor(page.catalogue, '/encode', config), ...more }, view, about.output,
    [start, Math.max(stop, start + 1)]);
  const count = columns[0]?.values.length ?? 0;
  const x = Array.from({ length: count }, (_, i) => run.offset + start + i);
  return { ...about, real: false, refusal, offset: run.offset, ...withDots(columns, x, () => true) };
}

function withDots(columns, x, isWhole) {
  const at = x.map((value, i) => isWhole(value) ? i : -1).filter((i) => i >= 0);
  return {
    stops: at.map((i) => x[i]),
    columns: columns.map(({ col, values }) => ({ col, x, y: values, dots: at.map((i) => [x[i], values[i]]) })),
  };
}

/* A scheme that reads its whole sequence may have other values at a list of positions: then its rows are the truth. */
async function checkWhole(page, get, config, view, picture, more = {}) {
  const rows = await askRows(page, get, config, view, more);
  const same = rows.columns.every(({ col, x, y }) => {
    const curve = picture.columns.find((one) => one.col === col);
    const value = new Map(curve?.dots);
    return x.every((at, i) => !value.has(at) || Object.is(value.get(at), y[i]));
  });
  if (!same) wholeOnly.set(kindOf(config), null);
  return same ? picture : { ...rows, refusal: null };
}

/* b - a of doubles at the positions that both have. */
async function askDifference(page, get, stage, configs, { draw, ...view }) {
  const f64 = { dtype: 'f64' };
  const pictures = await Promise.all(configs.map((config) => askPicture(page, get, config, view, f64)));
  draw(differenceOf(pictures));
  if (stage.over()) return;
  const checked = await Promise.all(pictures.map(
    (one, i) => one.real ? checkWhole(page, get, configs[i], view, one, f64) : one
  ));
  if (!stage.over() && checked.some((one, i) => one !== pictures[i])) draw(differenceOf(checked));
}

function differenceOf([b, a]) {
  const columns = b.columns.map((of) => subtract(of, a.columns.find((one) => one.col === of.col))).filter(Boolean);
  return {
    ...b, range: null, columns, largest: largestOf(columns),
    scheme: a.scheme === b.scheme ? b.scheme : `${b.scheme} − ${a.scheme}`,
  };
}

function subtract(of, from) {
  if (!from) return null;
  const other = new Map(Array.from(from.x, (x, i) => [x, from.y[i]]));
  const both = Array.from(of.x, (x, i) => [x, of.y[i] - other.get(x)]).filter(([x]) => other.has(x));
  const difference = new Map(both);
  return {
    col: of.col, x: both.map(([x]) => x), y: both.map(([, y]) => y),
    dots: of.dots.filter(([x]) => difference.has(x)).map(([x]) => [x, difference.get(x)]),
  };
}

function largestOf(columns) {
  let found = null;
  for (const { col, x, y } of columns) y.forEach((value, i) => {
    if (!found || Math.abs(value) > found.value) found = { value: Math.abs(value), x: x[i], col };
  });
  return found;
}
