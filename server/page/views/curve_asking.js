/* The numbers of `curves`: columns at real positions where a scheme has them, else its rows. */
import { Refusal } from '../ask.js';
import { rowsOf, samplesOf, slicesOf } from './curve_windows.js';

const COLUMN_AXES = ['dim', 'pair'];

/* Outputs that are a row of numbers a position. */
export const curveOutputs = (page, config) => page.catalogue.outputsOf(config, '/encode').filter(isCurve);
const isCurve = (row) => row.axes?.length === 2 && COLUMN_AXES.includes(row.axes[1]);

export const schemesWithCurves = (page) => page.catalogue.catalogue().schemes.filter((row) => row.outputs.some((one) => one.default && isCurve(one))).map((row) => row.name);

/* Configurations that turned out to have whole positions only, whatever their numbers: a drag asks no real ones again. */
const wholeOnly = new Map();
const kindOf = (config) => JSON.stringify(config, (key, value) => typeof value === 'number' ? 0 : value);

/* Asks for the picture of a figure and draws it, first with one request; what only completes it comes afterwards. */
export async function askCurve(page, get, stage, { slot, configs, draw, ...view }) {
  const config = configs[0];
  if (!page.catalogue.schemeOf(config)) await publish(page, get, slot, config);
  if (configs.length === 2) return draw(await askDifference(page, get, configs, view));
  const picture = await askPicture(page, get, config, view, {});
  draw(picture);
  if (stage.over()) return;
  const [rows, width] = await publish(page, get, slot, config, picture.output);
  const checked = picture.real && !stage.over() ? await checkWhole(page, get, config, view, picture) : picture;
  if (!stage.over()) draw({ ...checked, rows, width });
}

/* Learns what the configuration resolves to, and the shape of its output. */
async function publish(page, get, slot, config, output) {
  const body = { ...page.catalogue.requestFor('/encode', config), data: false, ...output && { outputs: [output] } };
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
    const { tensors: [tensor] } = await get({ path: '/encode', body: { ...body, outputs: [output], slice: [rows, slice] } }, { as: 'raw' });
    const width = tensor.shape[1];
    return cols.slice(0, width).map((col, i) => ({ col, values: Float64Array.from({ length: tensor.shape[0] }, (_, j) => tensor.values[j * width + i]) }));
  }));
  return view.columns.map((col) => answers.flat().find((one) => one.col === col)).filter(Boolean);
}

/* At samples between positions too. The run's last position goes along unseen, because some schemes read how long their
 * sequence is. */
async function askReal(page, get, config, view, more) {
  const about = common(page, config, view);
  const { offset, len } = about.run;
  const last = offset + len - 1;
  const samples = samplesOf(view.window, view.width).map((x) => Math.min(Math.max(x, offset), last)).filter((x, i, all) => !i || x !== all[i - 1]);
  const { len: _, offset: __, tokens: ___, ...rest } = page.catalogue.requestFor('/encode', config);
  const columns = await askColumns(get, { ...rest, ...more, positions: [...samples, last] }, view, about.output, [0, samples.length]);
  return { ...about, real: true, offset, ...withDots(columns, samples, Number.isInteger) };
}

/* At the rows of the sequence. */
async function askRows(page, get, config, view, more, refusal) {
  const about = common(page, config, view);
  const run = about.run ?? { offset: 0, len: Number.MAX_SAFE_INTEGER };
  const [start, stop] = rowsOf(run, view.window);
  const columns = await askColumns(get, { ...page.catalogue.requestFor('/encode', config), ...more }, view, about.output, [start, Math.max(stop, start + 1)]);
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
async function checkWhole(page, get, config, view, picture) {
  const rows = await askRows(page, get, config, view, {});
  const same = rows.columns.every(({ col, x, y }) => {
    const curve = picture.columns.find((one) => one.col === col);
    const value = new Map(curve?.dots);
    return x.every((at, i) => !value.has(at) || Object.is(value.get(at), y[i]));
  });
  if (!same) wholeOnly.set(kindOf(config), null);
  return same ? picture : { ...rows, refusal: null };
}

/* b - a of doubles at the positions that both have. */
async function askDifference(page, get, configs, view) {
  const [b, a] = await Promise.all(configs.map((config) => askPicture(page, get, config, view, { dtype: 'f64' })));
  const columns = b.columns.map((of) => subtract(of, a.columns.find((one) => one.col === of.col))).filter(Boolean);
  return { ...b, range: null, columns, largest: largestOf(columns), scheme: a.scheme === b.scheme ? b.scheme : `${b.scheme} − ${a.scheme}` };
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
