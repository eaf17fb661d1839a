/* Where the cards of the gallery lead, from rows such as the catalogue has. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { haystack, isExactly, matches, modelStart, PAIRS, pairStart, pictured } from '../../server/page/views/gallery/starts.js';

const table = { name: 'waves', endpoints: ['/encode', '/attention'], parameters: [{ name: 'base', group: 'frequencies' }],
  outputs: [{ name: 'ids', axes: ['position'], default: false }, { name: 'encoding', axes: ['position', 'dim'], default: true }],
  example: { scheme: 'waves', len: 8, dim: 16 }, picture: '/encode?scheme=waves&len=128&dim=64&format=png' };
const bias = { ...table, name: 'slopes', outputs: [{ name: 'bias', axes: ['head', 'query', 'key'], default: true }],
  example: { scheme: 'slopes', len: 4, num_heads: 2, seed: 3, std: 0.5 },
  picture: '/encode?scheme=slopes&grid=7,7&outputs=index&format=png' };

test('a scheme without a picture', () => assert.deepEqual(pictured(null), {}));

test('a model gets a sequence that it can encode', () => {
  const start = (config, row = table) => modelStart({ name: 'm', config }, row).configs.a;
  assert.deepEqual(start({ scheme: 'waves' }), { preset: 'm', len: 48 });
  assert.deepEqual(start({ grid: [7, 7] }, bias), { preset: 'm', seed: 3, std: 0.5 });
  for (const config of [{ table_grid: [14, 14] }, { max_resolution: [224, 224] }, { style: 'mae' }])
    assert.deepEqual(start(config), { preset: 'm', grid: [14, 14] });
});

test('pairs', () => {
  assert.equal(new Set(PAIRS.map(({ id }) => id)).size, PAIRS.length);
  const [first] = PAIRS;
  const start = pairStart(first);
  assert.equal(start.on, 'b-a');
  assert.deepEqual(start.configs.b, { preset: 'qwen2.5', len: 1024 });
});

test('search takes every word, in both languages, in names and aliases', () => {
  const model = { name: 'llama-3.1', label: 'Llama 3.1', label_zh: 'Llama 3.1', aliases: ['llama-3.3-70b'] };
  const text = haystack(model, { name: 'rope', label_zh: '旋转位置编码' });
  for (const query of ['LLAMA', '3.3-70b', 'rope 3.1', '旋转', '']) assert.ok(matches(text, query), query);
  for (const query of ['qwen', 'llama alibi']) assert.ok(!matches(text, query), query);
  assert.ok(isExactly({ name: 'x', label: 'X', aliases: ['y-1'] }, 'Y-1') && !isExactly({ name: 'x', label: 'X' }, 'x1'));
});
