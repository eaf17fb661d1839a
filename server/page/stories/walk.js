/* The guided walk: ten steps, a figure each, from words without an order to a model of one's own. A section of its text
 * is a step. */
import { figure, pick, slide } from './parts.js';

const DOGS = ['The', 'dog', 'chased', 'another', 'dog'];
const TURNED = ['another', 'dog', 'chased', 'The', 'dog'];
const LOG = { spacing: 'log' };
const said = (tokens, more) => ({ scheme: 'none', dim: 96, causal: false, tokens, ...more });

export default [
  figure('words', 'attention', { configs: { a: said(DOGS) }, address: 'cur=1,0' }),
  figure('rows', 'attention', {
    configs: { a: said(DOGS), b: said(TURNED) }, address: 'cur=1,0', versions: ['one', 'other'],
    touch: [pick('scheme', ['none', 'sinusoidal'], { text: 'scheme' })],
  }),
  figure('added', 'attention', {
    configs: { a: said(DOGS, { scheme: 'sinusoidal', pe_scale: 1 }) }, address: 'cur=1,0',
    touch: [slide('pe_scale', 0, 2, { whole: false, text: 'share' })],
  }),
  figure('waves', 'curves', {
    configs: { a: { scheme: 'sinusoidal', dim: 32, base: 1000, len: 65 } }, address: 'cols=0,8,16,24&cur=16,0',
    touch: [slide('base', 10, 10000, LOG)],
  }),
  figure('turn', 'rotate', {
    configs: { a: { scheme: 'rope', head_dim: 8, base: 256 } }, address: 'm=9&n=6', controls: ['m', 'n', 'both'],
  }),
  figure('apart', 'distance', {
    configs: { a: { scheme: 'rope', head_dim: 64, len: 128 } }, address: 'cur=24,0',
    touch: [slide('base', 10, 1e6, LOG)],
  }),
  figure('bias', 'bias', {
    configs: { a: { scheme: 'alibi', num_heads: 4, len: 32, causal: true } }, touch: [slide('num_heads', 1, 8)],
  }),
  figure('stretch', 'scaling', {
    configs: { a: { preset: 'llama-3.1', base: 500000 } }, address: 'train=8192&eval=131072',
    touch: [slide('base', 1e4, 1e7, LOG)],
  }),
  figure('breaks', 'extrapolate', {
    configs: { a: { scheme: 'rope', head_dim: 64, len: 128 } }, address: 'train=128&eval=1024',
    controls: ['train', 'eval'],
    touch: [pick('scheme', ['rope', 'sinusoidal', 'alibi'], { text: 'scheme' })],
  }),
  figure('yours', 'table', {
    configs: { a: { preset: 'llama-3.1', len: 128 }, b: { preset: 'qwen2.5', len: 128 } }, address: 'out=cos&cur=40,8',
    versions: ['llama', 'qwen'],
  }),
];
