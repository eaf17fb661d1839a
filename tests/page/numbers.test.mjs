/* Short texts of numbers, and ticks. */
import test from 'node:test';
import assert from 'node:assert/strict';
import { hyphened, printed, printedIn, short, jsonText, roundStep, ticks, cellTicks } from '../../server/page/draw/numbers.js';

test('short texts', () => {
  const texts = { 57.29577951308232: '57.3', 0.5: '0.5', 0: '0', 131072: '131072', 12345678: '1.235e7', 0.00001: '1e\u22125', 123456.789: '123457' };
  for (const [value, text] of Object.entries(texts)) assert.equal(short(Number(value)), text);
  assert.equal(short(-0.25), '\u22120.25');
  assert.equal(short(-1.5e-9), '\u22121.5e\u22129');
  assert.equal(short(-0), '0');
  assert.equal(short(-Infinity), '\u2212\u221e');
});

test('one minus sign for readers, hyphens for programs', () => {
  for (const [text, seen] of Object.entries({ '-1.0': '\u22121.0', '-1.5e-09': '\u22121.5e\u221209', '3': '3', '-Infinity': '\u2212Infinity' })) {
    assert.equal(printed(text), seen);
    assert.equal(hyphened(seen), text);
  }
  assert.equal(hyphened('b \u2212 a of \u22120.5'), 'b \u2212 a of -0.5');
  const sentences = {
    'spread over [-1,1]; -1: none': 'spread over [\u22121,1]; \u22121: none', 'within 2^-22, from -1e-6': 'within 2^\u221222, from \u22121e\u22126',
    'k_pos - q_pos': 'k_pos \u2212 q_pos', '1-D, llama-3 and 0..n-1': '1-D, llama-3 and 0..n-1',
  };
  for (const [text, seen] of Object.entries(sentences)) assert.equal(printedIn(text), seen);
});

test('texts as the API writes doubles', () => {
  const texts = ['1.0', '-0.0', '0.1', '-Infinity', 'NaN', '1e+21', '9007199254740992.0', '1.5e-09', '0.0001', '2e-05', '1e-300'];
  for (const text of texts) assert.equal(jsonText(Number(text)), text);
});

test('ticks are round and few', () => {
  assert.deepEqual(ticks(-1, 1, 5), [-1, -0.5, 0, 0.5, 1]);
  assert.deepEqual(ticks(0, 0.3, 4), [0, 0.1, 0.2, 0.3]);
  assert.deepEqual(ticks(2, 2, 5), [2]);
  assert.equal(roundStep(30), 50);
  assert.equal(roundStep(100), 100);
});

test('ticks of cells', () => {
  assert.deepEqual(cellTicks({ cells: 128, first: 0, step: 1, px: 4, count: 128 }, 30), [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120]);
  assert.deepEqual(cellTicks({ cells: 1000, first: 133, step: 133, px: 1, count: 7 }, 4), [1000].slice(1));
  assert.deepEqual(cellTicks({ cells: 5, first: 0, step: 1, px: 64, count: 5 }, 30), [0, 1, 2, 3, 4]);
});
