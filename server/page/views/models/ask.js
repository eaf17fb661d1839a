/* What the view `models` asks of two configurations: a column of an output that both have, and the wavelengths. */
import { kindOf } from '../../forms/edits.js';
import { bodyFor } from '../parts.js';

const SPAN = 128;   /* positions in view, the one that is pointed at in their middle */
const LEN = 1024;          /* of a model's name alone */
const PATH = '/encode';
const LADDERS = ['sinusoidal', 'rope', 'xpos'];

/* A model has no sequence of its own. */
export const withSequence = (config) => kindOf(config) ? config : { ...config, len: LEN };

/* The positions in view of that one. */
export const runOf = (row) => Math.max(0, Math.min(row - SPAN / 2, 2 ** 40 - SPAN));

const requestOf = (catalogue, config) =>
  ({ path: PATH, body: bodyFor(catalogue, PATH, config, { sequence: false }) });

/* { output, axis, cols, x, lines: { a, b }, resolved } of the first output that both have; null: they have none. */
export async function askCurves(page, get, configs, { run, col, out }) {
  const { catalogue } = page;
  const metas = await Promise.all(configs.map(
    (config) => get({ path: PATH, body: { ...bodyFor(catalogue, PATH, config), data: false } }, { as: 'json' })
  ));
  metas.forEach((meta, i) => page.publish('ab'[i], meta));
  const [first, second] = metas.map(({ tensors }) => tensors);
  const common = Object.keys(first).filter((name) => second[name] && [first, second].every(
    (tensors) => tensors[name].shape.length === 2
  ));
  const output = common.includes(out) ? out : common[0];
  if (!output) return null;
  const cols = Math.min(...[first, second].map((tensors) => tensors[output].shape[1]));
  const at = Math.min(col, cols - 1);
  const x = Array.from({ length: SPAN + 1 }, (_, i) => run + i);
  const [a, b] = await Promise.all(configs.map((config) => get({
    path: PATH,
    body: {
      ...requestOf(catalogue, config).body, positions: x, outputs: [output], dtype: 'f64',
      slice: { [output]: [null, [at, at + 1]] },
    },
  }, { as: 'raw' })));
  const axes = catalogue.outputsOf(configs[0], PATH).find((row) => row.name === output)?.axes;
  return {
    output, axis: axes?.at(-1) ?? 'column', cols, x, lines: { a: a.tensors[0].values, b: b.tensors[0].values },
    resolved: metas.map(({ config }) => config), requestOf: (config) => requestOf(catalogue, config),
  };
}

/* Subtracted here, of doubles. */
export const differenceOf = ({ a, b }) => Float64Array.from(b, (value, i) => value - a[i]);

/* [wavelengths of a, of b]; null where one of them has no ladder of waves on one axis. */
export async function askWavelengths(page, get, configs, resolved) {
  if (!resolved.every(({ scheme, channels }) => LADDERS.includes(scheme) && !channels)) return null;
  const answers = await Promise.all(configs.map((config) => get({
    path: '/analyze',
    body: {
      ...bodyFor(page.catalogue, '/analyze', config, { sequence: false }), len: 1, metrics: ['wavelengths'],
      outputs: ['wavelength'],
    },
  }, { as: 'json' })));
  return answers.map(({ tensors }) => Float64Array.from(tensors['wavelength.0'].data, Number));
}
