/* What the view `bias` asks, and where a row of a bias stands on the axis of distances. */
import { WHOLE_MAX } from '../../heat/sources.js';
import { bodyFor } from '../parts.js';

export const HEADS_SHOWN = 16;
const LENGTH = 64;                  /* positions, where the configuration says nothing */

const rowNames = (rows) => rows.map((row) => row.name);
const given = (config, name) => config[name] !== undefined && config[name] !== null;
const pick = (from, names) =>
  Object.fromEntries(names.filter((name) => given(from, name)).map((name) => [name, from[name]]));

/* The configuration with what a picture needs: a sequence, and random weights where its scheme has to have some. */
export function biasBody(catalogue, config) {
  const row = catalogue.schemeOf(config);
  return {
    ...bodyFor(catalogue, '/encode', config), ...sequenceFor(catalogue, row, config), ...weightsFor(row, config),
  };
}

function sequenceFor(catalogue, { example }, config) {
  const names = rowNames(catalogue.sequenceRows());
  if (names.some((name) => name !== 'offset' && name !== 'q_offset' && given(config, name))) return {};
  const own = pick(example, names);
  return own.len ? { ...own, len: LENGTH } : own;
}

/* Random ones, those of the catalogue's example. */
function weightsFor({ example, inputs }, config) {
  const sources = ['weights', 'seed', ...rowNames(inputs)];
  return sources.some((name) => given(config, name))
    ? {}
    : { ...pick(example, ['seed', 'std']), ...pick(config, ['std']) };
}

export const hasBias = (row) => row.outputs.some((output) => output.name === 'bias');

/* The heads that are shown together with one: [first, end]. */
export function headsWith(head, heads) {
  const first = Math.floor(Math.min(head, heads - 1) / HEADS_SHOWN) * HEADS_SHOWN;
  return [first, Math.min(heads, first + HEADS_SHOWN)];
}

/* ---- requests ---- */

const ofBias = (body, slice, more) => ({ path: '/encode', body: { ...body, outputs: ['bias'], slice, ...more } });

/* What a picture of these heads needs; row, col: { step, count } of draw/windows.js. */
export function windowOf(body, [first, end], [, rows, cols], { row, col }, reduce) {
  const isReduced = row.step > 1 || col.step > 1;
  return ofBias(body, [[first, end], [0, rows, row.step], [0, cols, col.step]],
    { dtype: 'f32', ...isReduced ? { reduce } : {} });
}

/* The least or the largest of each head, as [heads, 1, 1]; null where that would be too much work. */
export function extremesOf(body, [heads, rows, cols], reduce) {
  if (heads * rows * cols > WHOLE_MAX) return null;
  return ofBias(body, [null, [null, null, rows], [null, null, cols]], { dtype: 'f32', reduce });
}

/* The row of one query in some heads. */
export const rowOf = (body, [first, end], query) => ofBias(body, [[first, end], query, null], { dtype: 'f32' });

/* ---- distances ---- */

/* Key position minus query position for each key of a row; where positions have several axes, the key's number. */
export function distancesOf(config, [, queries, keys], query) {
  if (config.grid || Array.isArray(config.positions?.[0])) return { x: count(keys), isDistance: false };
  const of = (list, i, other) => list ? Number(list[i]) : other;
  const q_offset = config.q_offset ?? keys - queries;
  const here = of(config.q_positions ?? config.positions, query, query + (config.k_positions ? 0 : q_offset));
  return { x: count(keys).map((key) => of(config.k_positions ?? config.positions, key, key) - here), isDistance: true };
}

const count = (n) => Array.from({ length: n }, (_, i) => i);

/* Lines are drawn from left to right. */
export function ascending(x, y) {
  const order = count(x.length).sort((i, j) => x[i] - x[j]);
  return { x: order.map((i) => x[i]), y: order.map((i) => y[i]) };
}

/* The query whose row is drawn: the cursor's, and before it has been moved one that sees both sides. */
export function queryOf([row, col], [, queries]) {
  return row || col ? Math.min(row, queries - 1) : Math.floor(queries / 2);
}
