/* What the view `rotate` asks: /rotate for the two rotated vectors, then /attention without positions for the products
 * of what it answered, so that every number shown is the server's, also where a scheme changes lengths. */
import { bodyFor } from '../parts.js';

/* Its hands are neither crowded at the centre nor longer than the others, whatever the width. */
const SEED = 186;

const bodyOf = (catalogue, config) => bodyFor(catalogue, '/rotate', config, { sequence: false });

/* Channels of the vectors where they are known without asking: given, of the preset, or the scheme's own default. */
export function widthOf(catalogue, config) {
  const given = config.head_dim ?? catalogue.inherited(config).head_dim;
  if (given || config.hf_config) return given ?? null;
  return catalogue.schemeOf(config)?.parameters.find((row) => row.name === 'head_dim')?.default ?? null;
}

/* The server reads a model's config.json; one position is enough to be told. */
export const resolution = (catalogue, config) =>
  ({ path: '/encode', body: { ...bodyOf(catalogue, config), len: 1, data: false } });

/* q at m and k at n. Vectors of the configuration itself stay. */
export function rotation(catalogue, config, width, { m, n }) {
  const random = { shape: [1, width], seed: SEED, std: 1 };
  return {
    path: '/rotate', body: { q: random, k: random, ...bodyOf(catalogue, config), q_positions: [m], k_positions: [n] },
  };
}

/* scores [2, 2]: q·q, q·k in the first row, k·q, k·k in the second. */
export function products(q, k) {
  const both = { dtype: 'f64', shape: [2, q.length], data: [...q, ...k] };
  return { path: '/attention', body: { scheme: 'none', q: both, k: both, softmax_scale: 1, outputs: ['scores'] } };
}

/* Radians per position of each pair: how far a hand has to be dragged for one step. */
export function frequencies(catalogue, { q, k, ...config }, { m, n }) {
  return { path: '/encode', body: { ...bodyOf(catalogue, config), positions: [m, n], outputs: ['inv_freq'] } };
}
