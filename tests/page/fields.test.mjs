/* Fields: laws of texts and sliders; what single calls answer are rows of cases/modules.jsonl. */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { print, read, sentence, slider, words } from '../../server/page/forms/fields.js';

test('tokens become the sentence that gives them back', () => {
  const cases = [['The', 'dog', '.'], [...'狗追狗。'], ['GPT', '会', '说', 'hi'], ['<s>', 'new york', ''], ['a b'],
    ['[', 'CLS', ']'], [], ['don’t'], ['1', '2']];
  for (const tokens of cases) assert.deepEqual(words(sentence(tokens)), tokens, JSON.stringify(tokens));
});

test('what is printed reads back', () => {
  const cases = [['array', [1, [2, 3]]], ['array', ['a,b']], ['any', { type: 'text', len: 4 }], ['number', 1e-7],
    ['any', 'sqrt_dim']];
  for (const [type, value] of cases) {
    assert.deepEqual(read({ type }, print({ type }, value)), { value });
  }
});

const stops = (usual, type) => slider({ usual, spacing: 'log', type }).values;

test('logarithmic sliders have both ends, powers of two, and no step that stands still', () => {
  const integers = [[1, 512], [8, 1024]].map((usual) => [usual, 'integer']);
  const numbers = [[256, 262144], [100, 1e7], [0.01, 2]].map((usual) => [usual, 'number']);
  for (const [usual, type] of [...integers, ...numbers]) {
    const values = stops(usual, type);
    assert.deepEqual([values[0], values.at(-1)], usual);
    assert.ok(values.every((value, i) => !i || value > values[i - 1]), String(usual));
    if (type === 'integer') assert.ok(values.includes(64) && values.every(Number.isInteger));
  }
  assert.ok(stops([8, 1024], 'integer').every((value) => value % 8 === 0));
  assert.ok(stops([100, 1e7], 'number').includes(10000));
});

test('a typed value stands at the nearest stop', () => {
  const { values, nearest } = slider({ usual: [1, 512], spacing: 'log', type: 'integer' });
  for (const [typed, stop] of [[100, 100], [-5, 1], [9999, 512]]) assert.equal(values[nearest(typed)], stop);
});
