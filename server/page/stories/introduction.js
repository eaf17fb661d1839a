/* Story: positions from the ground up. Tables of sines from near and far, a learned table, rotation, three axes. */
import { figure, pick, slide } from './parts.js';

const sines = (dim, len, more) => ({ scheme: 'sinusoidal', dim, len, ...more });

/* What the article prints of its 5 × 5 table, value by value; it stops after two rows. */
const UNPRINTED = ['NaN', 'NaN', 'NaN', 'NaN', 'NaN'];
const PRINTED = [[0, 1, 0, 1, 0], [0.001, 0.999, 0.001, 0.999, 0.001], UNPRINTED, UNPRINTED, UNPRINTED];

export default [
  figure('order', 'attention', {
    configs: { a: { scheme: 'sinusoidal', dim: 96, tokens: ['dog', 'bites', 'man', 'man', 'bites', 'dog'] } },
    touch: [pick('scheme', ['sinusoidal', 'rope', 'none'], { text: 'scheme' })],
  }),
  figure('five-by-five', 'table', {
    configs: { a: { scheme: 'learned', len: 5, table: PRINTED }, b: sines(5, 5, { base: 10000 }) },
    address: 'cur=1,0&cmap=coolwarm', versions: ['printed', 'defined'],
    touch: [slide('base', 2, 100000, { slots: 'b', spacing: 'log', text: 'base' })],
  }),
  figure('first-indices', 'curves', {
    configs: { a: sines(50, 33) }, address: 'cols=0,1,2,3', touch: [pick('layout', ['interleaved', 'half'])],
  }),
  figure('later-indices', 'curves', {
    /* A shift of 1 makes the last exponent 48/48: the wave that the article's round number belongs to. */
    configs: {
      a: sines(50, 65, { angle_scale: 1000, freq_shift: 1 }), b: sines(50, 65, { angle_scale: 1000 }),
    },
    address: 'cols=48,49&cur=43,48', versions: ['printed', 'defined'],
    touch: [slide('angle_scale', 1, 1000, { spacing: 'log', text: 'step' })],
  }),
  figure('dims', 'curves', {
    configs: { a: sines(50, 33), b: sines(20, 33) }, address: 'cols=0,1,2,3',
    touch: [slide('dim', 4, 128, { slots: 'b', step: 2 })],
  }),
  figure('rows-20', 'table', {
    configs: { a: sines(50, 20) }, address: 'cmap=coolwarm', touch: [slide('len', 20, 2000, { spacing: 'log' })],
  }),
  figure('rows-40000', 'table', {
    configs: { a: sines(50, 40000) }, address: 'cmap=coolwarm', controls: ['red'],
    touch: [slide('len', 2000, 200000, { spacing: 'log' })],
  }),
  figure('learned-2d', 'table', {
    configs: { a: { scheme: 'learned', grid: [6, 8], dim: 16, seed: 1, std: 1, channels_first: false } },
    address: 'cur=9,0', touch: [pick('grid', [[6, 8], [4, 12], [12, 4]]), slide('seed', 0, 20)],
  }),
  figure('rope-turn', 'rotate', {
    configs: { a: { scheme: 'rope', head_dim: 16, direction: -1 }, b: { scheme: 'rope', head_dim: 16 } },
    address: 'm=9&n=6', versions: ['printed', 'defined'],
  }),
  figure('rope-distance', 'distance', {
    configs: { a: { scheme: 'rope', head_dim: 128, len: 128 } }, address: 'cur=12,0',
    touch: [pick('base', [10000, 500000])],
  }),
  figure('m-rope', 'multimodal', {
    configs: {
      a: {
        preset: 'qwen2.5-vl', position_style: 'qwen2_5_vl',
        segments: [
          { type: 'text', len: 4 }, { type: 'image', grid: [1, 8, 8] },
          { type: 'video', grid: [3, 4, 4], second_per_grid: 1 }, { type: 'text', len: 4 },
        ],
      },
    },
    touch: [pick('position_style', ['qwen2_vl', 'qwen2_5_vl', 'qwen2_5_omni'])],
  }),
];
