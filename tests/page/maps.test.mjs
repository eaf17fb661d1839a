/* What the views `attention` and `bias` ask and compare. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attentionBody, withoutPositions } from '../../server/page/views/attention/ask.js';
import { biasBody, hasBias } from '../../server/page/views/bias/ask.js';

const rows = (...names) => names.map((name) => ({ name }));
const sequence = [...rows('len', 'offset', 'grid', 'tokens', 'positions')].map((row) => ({ ...row, group: 'sequence' }));
const answer = [...rows('outputs', 'slice', 'dtype')].map((row) => ({ ...row, group: 'answer' }));
const none = { name: 'none', parameters: rows('dim', 'arith'), attention: { parameters: rows('num_heads', 'head_dim', 'softmax_scale', 'seed', 'causal'), inputs: rows('q', 'k', 'x') } };
const schemes = {
  none,
  alibi: { name: 'alibi', inputs: [], outputs: rows('bias', 'slopes'), example: { scheme: 'alibi', len: 4 } },
  t5: { name: 't5', inputs: rows('table'), outputs: rows('buckets', 'bias'), example: { scheme: 't5', len: 4, seed: 0 } },
  swin: { name: 'swin', inputs: rows('table'), outputs: rows('bias', 'index'), example: { scheme: 'swin', grid: [7, 7], seed: 0 } },
  rope: { name: 'rope', inputs: [], outputs: rows('cos', 'sin'), example: {} },
};
const catalogue = {
  catalogue: () => ({ common: [...sequence, ...answer] }),
  sequenceRows: () => sequence,
  requestFor: (path, config) => ({ ...config }),
  scheme: (name) => schemes[name],
  schemeOf: ({ scheme }) => schemes[scheme],
};

test('a sentence takes the place of the sequence, and nothing says how to answer', () => {
  const config = { scheme: 'rope', base: 100, len: 9, offset: 3, outputs: ['cos'], dtype: 'f16' };
  assert.deepEqual(attentionBody(catalogue, config, ['a', 'b']), { scheme: 'rope', base: 100, dtype: 'f16', tokens: ['a', 'b'] });
});

test('queries and keys of the configuration itself stay, with its sequence', () => {
  const config = { scheme: 'rope', q: [[1, 0]], k: [[0, 1]], len: 1 };
  assert.deepEqual(attentionBody(catalogue, config, ['a']), config);
});

test('without positions all else is the same, given or resolved', () => {
  const resolved = { scheme: 't5', num_buckets: 32, num_heads: 4, head_dim: 16, softmax_scale: 1, seed: 0, causal: false, window: null };
  const body = { scheme: 't5', num_buckets: 8, seed: 5, tokens: ['a'] };
  assert.deepEqual(withoutPositions(catalogue, body, resolved), { num_heads: 4, head_dim: 16, softmax_scale: 1, seed: 5, causal: false, tokens: ['a'], scheme: 'none' });
});

test('a bias is asked with a sequence and, where its scheme needs them, with random weights', () => {
  assert.deepEqual(biasBody(catalogue, { scheme: 'alibi' }), { scheme: 'alibi', len: 64 });
  assert.deepEqual(biasBody(catalogue, { scheme: 'alibi', len: 7, outputs: ['slopes'] }), { scheme: 'alibi', len: 7 });
  assert.deepEqual(biasBody(catalogue, { scheme: 't5' }), { scheme: 't5', len: 64, seed: 0 });
  assert.deepEqual(biasBody(catalogue, { scheme: 't5', table: [[1]], len: 3 }), { scheme: 't5', table: [[1]], len: 3 });
  assert.deepEqual(biasBody(catalogue, { scheme: 'swin', std: 1 }), { scheme: 'swin', std: 1, grid: [7, 7], seed: 0 });
  assert.deepEqual([hasBias(schemes.t5), hasBias(schemes.rope)], [true, false]);
});
