/* What the view `rotate` asks: /rotate for the two rotated vectors, then /attention without positions for the products
 * of what it answered, so that every number shown is the server's, also where a scheme changes lengths. And what these
 * products have been so far. */
import { bodyFor } from './parts.js';

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
export const resolution = (catalogue, config) => ({ path: '/encode', body: { ...bodyOf(catalogue, config), len: 1, data: false } });

/* q at m and k at n. Vectors of the configuration itself stay. */
export function rotation(catalogue, config, width, { m, n }) {
  const random = { shape: [1, width], seed: SEED, std: 1 };
  return { path: '/rotate', body: { q: random, k: random, ...bodyOf(catalogue, config), q_positions: [m], k_positions: [n] } };
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

/* Remembers the products of one configuration, to measure what a rotation promises: lengths stay, and at one distance
 * n - m so does q·k. Values are only compared. */
export class Seen {
  #about = null;

  /* numbers: { qq, qk, kk }. Gives how many pictures there were, how many at this distance, and the largest changes. */
  take(about, { m, n }, { qq, qk, kk }) {
    if (about !== this.#about) Object.assign(this, { spans: new Map(), places: new Map() });
    this.#about = about;
    this.places.set(`${m} ${n}`, n - m);
    const [a, b, change] = [this.#span('qq', qq), this.#span('kk', kk), this.#span(n - m, qk)];
    const shifts = [...this.places.values()].filter((distance) => distance === n - m).length;
    return { places: this.places.size, shifts, stretch: Math.max(a, b), change };
  }

  #span(key, value) {
    const [least, most] = this.spans.get(key) ?? [value, value];
    const span = [Math.min(least, value), Math.max(most, value)];
    this.spans.set(key, span);
    return span[1] - span[0];
  }
}
