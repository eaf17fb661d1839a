/* What the views `attention` and `bias` ask and compare. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attentionBody, equalTokens, hasContent, largestDifference, withoutPositions } from '../../server/page/views/attention/ask.js';
import { ascending, biasBody, distancesOf, extremesOf, hasBias, headsWith, queryOf, rowOf, windowOf } from '../../server/page/views/bias/ask.js';

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
  assert.equal(hasContent(config), true);
  assert.deepEqual(attentionBody(catalogue, config, ['a']), config);
  assert.equal(hasContent({ scheme: 'rope' }), false);
});

test('without positions all else is the same, given or resolved', () => {
  const resolved = { scheme: 't5', num_buckets: 32, num_heads: 4, head_dim: 16, softmax_scale: 1, seed: 0, causal: false, window: null };
  const body = { scheme: 't5', num_buckets: 8, seed: 5, tokens: ['a'] };
  assert.deepEqual(withoutPositions(catalogue, body, resolved), { num_heads: 4, head_dim: 16, softmax_scale: 1, seed: 5, causal: false, tokens: ['a'], scheme: 'none' });
});

test('equal tokens and their places', () => {
  assert.deepEqual(equalTokens(['the', 'dog', 'chased', 'the', 'dog', 'dog']), [{ token: 'the', at: [0, 3] }, { token: 'dog', at: [1, 4, 5] }]);
  assert.deepEqual(equalTokens(['The', 'the']), []);
});

test('the largest difference is over all heads, columns and pairs of places', () => {
  const values = Float64Array.of(1, 2, 1, 2, 9, 9, /* head 1 */ 0, 0, 0, -3, 9, 9);
  assert.deepEqual(largestDifference(values, [2, 3, 2], [{ token: 'dog', at: [0, 1] }]), { difference: 3, token: 'dog' });
  assert.deepEqual(largestDifference(values, [1, 3, 2], [{ token: 'dog', at: [0, 1] }]), { difference: 0, token: 'dog' });
  assert.deepEqual(largestDifference(values, [2, 3, 2], [{ token: 'dog', at: [0, 1] }, { token: 'cat', at: [1, 2] }]), { difference: 12, token: 'cat' });
});

test('a bias is asked with a sequence and, where its scheme needs them, with random weights', () => {
  assert.deepEqual(biasBody(catalogue, { scheme: 'alibi' }), { scheme: 'alibi', len: 64 });
  assert.deepEqual(biasBody(catalogue, { scheme: 'alibi', len: 7, outputs: ['slopes'] }), { scheme: 'alibi', len: 7 });
  assert.deepEqual(biasBody(catalogue, { scheme: 't5' }), { scheme: 't5', len: 64, seed: 0 });
  assert.deepEqual(biasBody(catalogue, { scheme: 't5', table: [[1]], len: 3 }), { scheme: 't5', table: [[1]], len: 3 });
  assert.deepEqual(biasBody(catalogue, { scheme: 'swin', std: 1 }), { scheme: 'swin', std: 1, grid: [7, 7], seed: 0 });
  assert.deepEqual([hasBias(schemes.t5), hasBias(schemes.rope)], [true, false]);
});

test('heads are shown sixteen at a time', () => {
  assert.deepEqual(headsWith(0, 8), [0, 8]);
  assert.deepEqual(headsWith(17, 40), [16, 32]);
  assert.deepEqual(headsWith(39, 40), [32, 40]);
  assert.deepEqual(headsWith(99, 40), [32, 40]);
});

test('one request has all heads that are shown; reduced only where cells do not fit', () => {
  const plan = (step) => ({ row: { step, count: 4 }, col: { step, count: 4 } });
  assert.deepEqual(windowOf({ scheme: 'alibi' }, [0, 8], [8, 4, 4], plan(1), 'mean').body,
    { scheme: 'alibi', outputs: ['bias'], slice: [[0, 8], [0, 4, 1], [0, 4, 1]], dtype: 'f32' });
  assert.equal(windowOf({}, [0, 8], [8, 4, 4], plan(2), 'mean').body.reduce, 'mean');
  assert.deepEqual(extremesOf({}, [8, 4, 6], 'min').body.slice, [null, [null, null, 4], [null, null, 6]]);
  assert.equal(extremesOf({}, [8, 8192, 8192], 'min'), null);
  assert.deepEqual(rowOf({}, [0, 8], 3).body.slice, [[0, 8], 3, null]);
});

test('distances are key positions minus the query position', () => {
  const shape = [1, 3, 3];
  assert.deepEqual(distancesOf({ len: 3, offset: 5 }, shape, 1), { x: [-1, 0, 1], isDistance: true });
  assert.deepEqual(distancesOf({ q_len: 1, k_len: 3 }, [1, 1, 3], 0).x, [-2, -1, 0]);
  assert.deepEqual(distancesOf({ q_len: 2, k_len: 3, q_offset: 0 }, [1, 2, 3], 1).x, [-1, 0, 1]);
  assert.deepEqual(distancesOf({ positions: [0, 10, 4] }, shape, 1).x, [-10, 0, -6]);
  assert.deepEqual(distancesOf({ q_positions: [7], k_positions: [7, 9] }, [1, 1, 2], 0).x, [0, 2]);
  assert.deepEqual(distancesOf({ grid: [1, 3] }, shape, 1), { x: [0, 1, 2], isDistance: false });
});

test('lines go from left to right; before the cursor is moved a query in the middle is read', () => {
  assert.deepEqual(ascending([-10, 0, -6], [1, 2, 3]), { x: [-10, -6, 0], y: [1, 3, 2] });
  assert.equal(queryOf([0, 0], [1, 64, 64]), 32);
  assert.equal(queryOf([0, 3], [1, 64, 64]), 0);
  assert.equal(queryOf([70, 3], [1, 64, 64]), 63);
});
