/* Axes: pixels of values, ticks and their texts. */
import test from 'node:test';
import assert from 'node:assert/strict';
import { axis, roomy, ticks } from '../../server/page/draw/axes.js';

const texts = (list) => list.map((tick) => tick.text);

test('a linear axis goes there and back', () => {
  const line = axis({ lo: -1, hi: 3, from: 100, to: 500 });
  assert.equal(line.at(-1), 100);
  assert.equal(line.at(3), 500);
  assert.equal(line.at(0), 200);
  assert.equal(line.value(200), 0);
});

test('an axis may run upwards, as y does on a screen', () => {
  const line = axis({ lo: 0, hi: 10, from: 300, to: 0 });
  assert.equal(line.at(10), 0);
  assert.equal(line.at(2.5), 225);
  assert.equal(line.value(225), 2.5);
});

test('a logarithmic axis gives every factor of ten the same length', () => {
  const line = axis({ scale: 'log', lo: 1, hi: 10000, from: 0, to: 400 });
  for (const [value, pixel] of [[1, 0], [10, 100], [100, 200], [10000, 400]]) {
    assert.ok(Math.abs(line.at(value) - pixel) < 1e-9);
    assert.ok(Math.abs(line.value(pixel) / value - 1) < 1e-12);
  }
});

test('a roomy range contains its values and is never empty', () => {
  for (const range of [[5, 5], [0, 0], [-2, -2], null]) {
    const [lo, hi] = roomy(range);
    assert.ok(lo < hi);
    if (range) assert.ok(lo < range[0] && hi > range[1]);
  }
  const [lo, hi] = roomy([1, 1000], 'log', 0.5);
  assert.ok(lo > 0 && lo < 1 && hi > 1000);
});

test('linear ticks keep their distance', () => {
  const line = axis({ lo: -1.1, hi: 1.1, from: 300, to: 0 });
  const found = ticks(line, 40);
  for (let i = 1; i < found.length; i += 1) assert.ok(line.at(found[i - 1].value) - line.at(found[i].value) >= 40);
});

test('a short stretch of a logarithmic axis has linear ticks', () => {
  const found = ticks(axis({ scale: 'log', lo: 20, hi: 60, from: 0, to: 400 }), 100);
  assert.deepEqual(texts(found), ['20', '30', '40', '50', '60'].filter((_, i) => texts(found).includes(['20', '30', '40', '50', '60'][i])));
  assert.ok(found.length >= 2);
});
