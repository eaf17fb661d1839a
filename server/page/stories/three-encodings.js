/* Story: sinusoids, learned rows, rotation and linear biases, each as its code says and as its paper does. */
import { figure, pick, slide } from './parts.js';

const words = ['cat', 'chases', 'mouse'];
const said = (tokens) => ({ scheme: 'none', dim: 96, causal: false, tokens });
const sinusoid = (more) => ({ scheme: 'sinusoidal', ...more });
const rope = (more) => ({ scheme: 'rope', ...more });
/* The first 64 of 512 columns: 10000^(-2i/512) is this base to the power -2i/64. */
const CUT = 1e4 ** (64 / 512);
const alibi = (more) => ({ scheme: 'alibi', ...more });

/* One vector for all, so that only positions count: a new query with the keys that a cache has kept. */
const alike = (rows) => Array.from({ length: rows }, () => Array(8).fill(1));
const cached = (q_offset) => rope({ q: alike(1), k: alike(6), q_offset });

/* What the article's code makes of twelve heads. */
const printed = [...Array.from({ length: 8 }, (_, i) => (i + 1) / 2),
  ...Array.from({ length: 4 }, (_, i) => (i + 1) / 4)];

export default [
  figure('order', 'attention', {
    configs: { a: said(words), b: said(words.toReversed()) }, versions: ['forward', 'backward'],
    touch: [
      pick('scheme', ['none', 'sinusoidal', 'rope', 'alibi'], { text: 'scheme' }),
      pick('causal', [false, true], { text: 'causal' }),
    ],
  }),
  figure('table-viridis', 'table', {
    beside: true, configs: { a: sinusoid({ dim: 512, len: 100 }) }, address: 'cmap=viridis&cur=40,64',
    touch: [slide('base', 10, 1e6, { spacing: 'log' }), slide('dim', 2, 512)],
  }),
  figure('table-50x64', 'table', {
    configs: { a: sinusoid({ dim: 64, base: CUT, len: 50 }), b: sinusoid({ dim: 64, len: 50 }) }, address: 'cur=20,24',
    versions: ['cut', 'own'], touch: [slide('base', 1.5, 1e4, { spacing: 'log', whole: false, slots: 'a' })],
  }),
  figure('unique-bounded', 'properties', {
    configs: { a: sinusoid({ dim: 512, len: 100 }) },
    touch: [slide('dim', 2, 512, { step: 2 }), slide('len', 2, 1024, { spacing: 'log' })],
  }),
  figure('learned', 'table', {
    configs: {
      a: { scheme: 'learned', rows: 64, dim: 64, len: 64, seed: 0, std: 1 }, b: sinusoid({ dim: 64, len: 64 }),
    },
    address: 'cur=20,10', versions: ['table', 'formula'],
    touch: [
      slide('len', 16, 128), pick('out_of_range', ['error', 'clamp', 'wrap', 'zero', 'interpolate'], { slots: 'a' }),
    ],
  }),
  figure('norms', 'rotate', {
    configs: { a: rope({ head_dim: 16, direction: -1 }), b: rope({ head_dim: 16, direction: 1 }) },
    versions: ['printed', 'defined'],
  }),
  figure('cache', 'attention', {
    configs: { a: cached(0), b: cached(5) }, address: 'lo=0&hi=0.35', versions: ['printed', 'defined'],
    touch: [slide('q_offset', 0, 5, { slots: 'b' })],
  }),
  figure('alibi-heads', 'bias', {
    configs: { a: alibi({ num_heads: 8, len: 32, causal: true }) },
    touch: [slide('num_heads', 1, 16), pick('causal', [false, true])],
  }),
  figure('alibi-as-printed', 'bias', {
    configs: {
      a: alibi({ slopes: printed, num_heads: 12, len: 16 }), b: alibi({ num_heads: 12, len: 16, causal: true }),
    },
    versions: ['printed', 'defined'], controls: ['scale'],
  }),
  figure('compare-three', 'properties', {
    configs: {
      a: sinusoid({ dim: 64, len: 64 }), b: rope({ head_dim: 64, len: 64 }), c: alibi({ len: 64, causal: false }),
    },
    touch: [slide('len', 2, 1024, { spacing: 'log' }), pick('causal', [false, true], { slots: 'c', text: 'causal' })],
  }),
  figure('extrapolation', 'extrapolate', {
    configs: {
      a: sinusoid({ dim: 64, len: 128 }), b: rope({ head_dim: 64, len: 128 }), c: alibi({ len: 128, causal: true }),
      d: { scheme: 'learned', rows: 128, dim: 64, len: 128, seed: 0 },
    },
    address: 'train=128&eval=256', controls: ['train', 'eval'],
  }),
  figure('training', 'experiment', {
    configs: { a: sinusoid(), b: rope(), c: alibi(), d: { scheme: 'learned' } },
    address: 'task=local&steps=300&train=64&eval=128', controls: ['task', 'seed'],
  }),
];
