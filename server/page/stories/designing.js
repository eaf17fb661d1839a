/* Story: a positional encoding designed step by step, from counting over binary digits and waves to rotation. */
import { figure, pick, slide } from './parts.js';

const TOKENS = ['The', 'dog', 'chased', 'another', 'dog'];
const SPACING = { spacing: 'log' };
const REALS = { ...SPACING, whole: false };
const versions = ['printed', 'defined'];
const wave = { scheme: 'sinusoidal', dim: 16, base: 256, len: 64 };
const upright = [[0, 1, 0, 1, 0, 1, 0, 1]];   /* the sinusoidal row of position 0 */

export default [
  figure('dogs', 'attention', {
    configs: { a: { scheme: 'none', dim: 96, causal: false, tokens: TOKENS } }, address: 'cur=1,0',
    touch: [
      pick('scheme', ['none', 'sinusoidal', 'rope', 'alibi'], { text: 'scheme' }),
      pick('causal', [false, true], { text: 'causal' }),
    ],
  }),
  figure('wishes', 'properties', {
    configs: { a: { scheme: 'integer', dim: 64, len: 64 } },
    touch: [
      pick('scheme', ['integer', 'binary', 'sinusoidal', 'rope'], { text: 'scheme' }), slide('len', 8, 1024, SPACING),
    ],
  }),
  figure('integer', 'table', {
    configs: { a: { scheme: 'integer', dim: 32, len: 32, pe_scale: 1, x: { shape: [32, 32], seed: 7, std: 0.02 } } },
    address: 'cur=2,0', touch: [slide('pe_scale', 1e-4, 1, REALS)],
  }),
  figure('integer-normalized', 'curves', {
    configs: {
      a: { scheme: 'integer', dim: 1, normalize: 'length', len: 10 },
      b: { scheme: 'integer', dim: 1, normalize: 'length', len: 40 },
    },
    address: 'cols=0&cur=5,0', versions: ['short', 'long'], touch: [slide('len', 6, 80, { slots: 'b' })],
  }),
  figure('binary-252', 'table', {
    configs: { a: { scheme: 'binary', dim: 8, bits: 8, len: 8, offset: 248 } }, address: 'cur=4,0',
    touch: [slide('offset', 0, 248), pick('dim', [8, 16, 32]), pick('bit_order', ['msb', 'lsb'])],
  }),
  figure('binary-waves', 'table', {
    configs: { a: { scheme: 'binary', dim: 8, bits: 8, bit_order: 'lsb', len: 64 } }, address: 'cur=22,2',
    touch: [slide('len', 16, 256), pick('bit_order', ['msb', 'lsb'])],
  }),
  figure('top-bit', 'curves', {
    configs: {
      a: { scheme: 'binary', dim: 1, bits: 5, lens: [32, 32] }, b: { scheme: 'binary', dim: 1, bits: 6, lens: [64] },
    },
    address: 'cols=0&cur=32,0', versions,
  }),
  figure('binary-path', 'trajectory', {
    configs: { a: { scheme: 'binary', dim: 3, bits: 3, bit_order: 'lsb', lens: [8] } }, address: 'cur=3,0&spin=25',
    touch: [pick('lens', [[4], [8]], { text: 'count' })],
  }),
  figure('sine-waves', 'table', {
    configs: { a: { scheme: 'binary', dim: 16, bits: 8, bit_order: 'lsb', len: 64 }, b: wave }, address: 'cur=20,6',
    touch: [slide('base', 10, 10000, { ...SPACING, slots: 'b' })],
  }),
  figure('sine-path', 'trajectory', {
    configs: { a: wave }, address: 'cols=0,1,6&spin=25', touch: [slide('base', 10, 10000, SPACING)],
  }),
  figure('shift-matrix', 'table', {
    beside: true,
    configs: { a: { ...wave, k: 3 } }, address: 'out=shift_matrix&cmap=coolwarm&lo=-1&hi=1',
    touch: [slide('k', 1, 32, { text: 'k' }), slide('base', 10, 10000, SPACING)],
  }),
  figure('clocks', 'rotate', {
    configs: { a: { scheme: 'rope', head_dim: 8, base: 256, direction: -1, q: upright, k: upright } },
    address: 'm=0&n=3',
  }),
  figure('chased', 'table', {
    configs: {
      a: { scheme: 'integer', dim: 1, len: 5, offset: 0 },
      b: { scheme: 'alibi', form: 'asymmetric', num_heads: 1, slopes_left: [1], slopes_right: [-1], len: 5, offset: 0 },
    },
    address: 'cur=2,0', versions: ['absolute', 'relation'], touch: [slide('offset', 0, 4)],
  }),
  figure('rotation', 'rotate', {
    configs: { a: { scheme: 'rope', head_dim: 16, direction: -1 }, b: { scheme: 'rope', head_dim: 16 } },
    address: 'm=9&n=6', versions,
  }),
  figure('ladder', 'curves', {
    configs: {
      a: { scheme: 'rope', head_dim: 8, inv_freq: [0.1, 0.01, 0.001, 0.0001], len: 64 },
      b: { scheme: 'rope', head_dim: 8, len: 64 },
    },
    address: 'out=cos&cols=0,1,2,3', versions, touch: [slide('len', 16, 160)],
  }),
  figure('distance', 'distance', {
    configs: { a: { scheme: 'rope', head_dim: 64, len: 128 } }, address: 'cur=16,0',
    touch: [slide('base', 10, 1e6, SPACING)],
  }),
  figure('grid-2d', 'table', {
    configs: { a: { scheme: 'rope', head_dim: 32, len: 64 }, b: { scheme: 'rope', head_dim: 32, grid: [8, 8] } },
    address: 'out=cos&cur=8,0', versions: ['flat', 'axes'],
    touch: [pick('grid', [[8, 8], [4, 16], [16, 4]], { slots: 'b' })],
  }),
  figure('p-rope', 'rotate', {
    configs: {
      a: { scheme: 'rope', head_dim: 8, inv_freq: [0, 0, 0.0625, 0.015625] },
      b: { scheme: 'rope', head_dim: 8, base: 256, scaling: { type: 'proportional', partial_rotary_factor: 0.5 } },
    },
    address: 'm=20&n=0', versions, controls: ['both'],
    touch: [slide('scaling.partial_rotary_factor', 0, 1, { whole: false, step: 0.25, slots: 'b', text: 'share' })],
  }),
];
