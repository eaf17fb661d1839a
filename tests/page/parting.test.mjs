import { test } from 'node:test';
import assert from 'node:assert/strict';
import { differing, partings } from '../../server/page/draw/parting.js';

test('where a difference begins and is largest', () => {
  const values = Float64Array.from([0, 0.005, 0, 0, -0.02, 0, 0.5, 0.03, -0.5]);
  assert.deepEqual(partings({ values, rows: 3, cols: 3 }, 0.01), { cols: [0, 1, 2], first: [1, 1], most: [2, 0], value: 0.5 });
  assert.deepEqual(partings({ values, rows: 1, cols: 3 }, 0.01), { cols: [], first: null, most: [0, 1], value: 0.005 });
});

test('what is masked in one of them is no difference', () => {
  const values = Float64Array.from([NaN, Infinity, -Infinity, 0.25]);
  assert.deepEqual(partings({ values, rows: 2, cols: 2 }, 0.01), { cols: [1], first: [1, 1], most: [1, 1], value: 0.25 });
  assert.equal(partings({ values: Float64Array.of(NaN, Infinity), rows: 1, cols: 2 }, 0.01).value, 0);
});

test('fields that differ', () => {
  const llama = { scheme: 'rope', base: 5e5, scaling: { type: 'llama3', factor: 8, low: 1 } };
  assert.deepEqual(differing(llama, { ...llama, base: 1e6 }), [['base', 5e5, 1e6]]);
  assert.deepEqual(differing(llama, { ...llama, scaling: { type: 'default' } }), [['scaling', 'llama3', 'default']]);
  assert.deepEqual(differing(llama, { ...llama, scaling: { ...llama.scaling, factor: 32 } }), [['scaling.factor', 8, 32]]);
  assert.deepEqual(differing(llama, { ...llama, extra: 1 }), [['extra', undefined, 1]]);
  assert.deepEqual(differing(llama, { scheme: 'alibi', slopes: [1] }), [['scheme', 'rope', 'alibi']]);
  assert.deepEqual(differing(llama, structuredClone(llama)), []);
});
