/* The story of absolute and relative positions: from a row that is added to scores that know only the distance. */
import { language } from '../words.js';
import { figure, pick, slide } from './parts.js';

/* The same words in two orders, in the language in which the story was opened. */
const SENTENCES = { en: ['cats', 'chase', 'dogs', ',', 'dogs', 'chase', 'cats'], zh: [...'猫追狗，狗追猫'] };
const sentence = { tokens: SENTENCES[language()], dim: 96, num_heads: 1, seed: 0 };
const drawn = (seed, std, ...shape) => ({ shape, seed, std });
const SIGNED = 'cmap=coolwarm&lo=-2&hi=2';

const table = { len: 48, dim: 48 };
const product = { scheme: 'sinusoidal', dim: 48, layout: 'half', x: drawn(7, 1, 32, 48) };
const shaw = { scheme: 'shaw', len: 24, p_min: -4, p_max: 4 };
const xlnet = {
  scheme: 'xlnet', ...sentence, clamp_len: -1, u: drawn(19, 1, 1, 96), v_bias: drawn(19, 1, 1, 96),
  w_r: drawn(3, 0.1, 96, 96),
};
const deberta = { scheme: 'deberta', max_relative_positions: 16, position_buckets: -1 };
const backwards = Array.from({ length: 24 }, (_, i) => -i);   /* turns i - j into j - i */
const linear = { ...sentence, kernel: 'linear' };

export default [
  figure('order', 'attention', {
    configs: { a: { scheme: 'sinusoidal', ...sentence } }, address: 'lo=0&hi=0.6',
    touch: [pick('scheme', ['sinusoidal', 'alibi', 'rope', 'none'], { text: 'scheme' })],
  }),
  figure('learned-end', 'table', {
    configs: {
      a: { scheme: 'learned', rows: 32, ...table, seed: 3, std: 1, out_of_range: 'zero' },
      b: { scheme: 'sinusoidal', ...table },
    },
    address: `${SIGNED}&cur=31,0`, versions: ['stored', 'formula'],
    touch: [
      slide('len', 8, 96), pick('out_of_range', ['zero', 'error', 'clamp', 'wrap', 'interpolate'], { slots: 'a' }),
    ],
  }),
  figure('floater', 'trajectory', {
    configs: {
      a: { scheme: 'floater', dim: 8, hidden: 32, lens: [64], seed: 29, std: 1, dt: 0.25, activation: 'tanh' },
    },
    touch: [slide('dt', 0.02, 0.5, { whole: false }), slide('seed', 0, 40)],
  }),
  figure('multiply', 'table', {
    configs: { a: product, b: { ...product, combine: 'multiply' }, c: { ...product, combine: 'multiply_residual' } },
    address: `out=combined&${SIGNED}&cur=0,16`, versions: ['sum', 'times', 'residual'],
    touch: [slide('base', 2, 100000, { spacing: 'log' }), pick('layout', ['half', 'interleaved'])],
  }),
  figure('four-terms', 'attention', {
    configs: { a: { scheme: 'sinusoidal', ...sentence, pe_scale: 1 } }, address: `out=terms&${SIGNED}`,
    touch: [slide('pe_scale', 0, 3, { whole: false }), slide('seed', 0, 20)],
  }),
  figure('shaw', 'table', {
    configs: { a: { ...shaw, direction: 'query_minus_key' }, b: shaw }, address: 'cur=12,12',
    versions: ['printed', 'defined'], touch: [slide('p_min', -16, 0), slide('p_max', 0, 16)],
  }),
  figure('xlnet', 'attention', {
    configs: { a: xlnet }, address: `out=terms&${SIGNED}`, touch: [slide('clamp_len', -1, 6), slide('seed', 0, 20)],
  }),
  figure('t5-buckets', 'table', {
    beside: true,
    configs: { a: { scheme: 't5', len: 120, bidirectional: true } }, address: 'out=buckets&cur=80,0',
    touch: [
      slide('num_buckets', 8, 64, { step: 4 }), slide('max_distance', 40, 512), pick('bidirectional', [true, false]),
    ],
  }),
  figure('deberta', 'table', {
    configs: { a: { ...deberta, q_positions: backwards, k_positions: backwards }, b: { ...deberta, len: 24 } },
    address: 'cur=12,4', versions: ['printed', 'defined'],
    touch: [slide('max_relative_positions', 6, 32), pick('position_buckets', [-1, 8])],
  }),
  figure('rotation', 'rotate', {
    configs: { a: { scheme: 'rope', head_dim: 16 } },
  }),
  figure('linear-attention', 'attention', {
    configs: { a: { scheme: 'rope', ...linear }, b: { scheme: 'xpos', ...linear } }, address: 'lo=0.06&hi=0.18',
    touch: [pick('scheme', ['xpos', 'sinusoidal', 'alibi', 't5', 'shaw'], { slots: 'b', text: 'schemeOfB' })],
  }),
];
