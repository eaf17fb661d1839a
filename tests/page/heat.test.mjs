/* Colours of a heat map: numbers, ranges, pixels. */
import test from 'node:test';
import assert from 'node:assert/strict';
import { paint } from '../../server/page/draw/colors.js';

const rows = (pixels, width) => Array.from({ length: pixels.length / width }, (_, y) => [...pixels.slice(y * width, (y + 1) * width)].join(''));
const digits = Uint32Array.from({ length: 10 }, (_, i) => i);

function painted(width, height, row, col, window) {
  const pixels = new Uint32Array(width * height).fill(8);
  paint({ pixels, width, height }, { row, col }, window, digits);
  return rows(pixels, width);
}

test('blocks of pixels', () => {
  const window = { numbers: Uint8Array.of(1, 2, 3, 4), stride: 2 };
  assert.deepEqual(painted(5, 4, { px: 2, count: 2, start: 0, from: 0 }, { px: 2, count: 2, start: 0, from: 0 }, window),
    ['11220', '11220', '33440', '33440']);
  assert.deepEqual(painted(2, 2, { px: 1, count: 2, start: 0, from: 0 }, { px: 1, count: 2, start: 0, from: 0 }, window), ['12', '34']);
});

test('a part of a kept window, beginning at a pixel of the canvas', () => {
  const window = { numbers: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9), stride: 3 };
  assert.deepEqual(painted(4, 3, { px: 1, count: 2, start: 1, from: 1 }, { px: 2, count: 1, start: 2, from: 2 }, window),
    ['0000', '0066', '0099']);
});

test('a block that the canvas cuts', () => {
  const window = { numbers: Uint8Array.of(1, 2), stride: 2 };
  assert.deepEqual(painted(5, 2, { px: 3, count: 1, start: 0, from: 0 }, { px: 3, count: 2, start: 0, from: 0 }, window), ['11122', '11122']);
});
