/* Colours of a heat map: numbers, ranges, pixels. */
import test from 'node:test';
import assert from 'node:assert/strict';
import { number, lookup, paint } from '../../server/page/draw/colors.js';

const numbered = (values, range) => [...number(Float64Array.from(values), range, new Uint8Array(values.length))];

test('a value has number 1 + k, k rounded half to even', () => {
  assert.deepEqual(numbered([0, 254], [0, 254]), [1, 255]);
  assert.deepEqual(numbered([0.5, 1.5, 2.5, 253.5], [0, 254]), [1, 3, 3, 255]);
  assert.deepEqual(numbered([-1, -0.5, 0, 0.5, 1], [-1, 1]), [1, 65, 128, 191, 255]);
});

test('values beyond the range are clamped, what is not finite is 0', () => {
  assert.deepEqual(numbered([-9, 9, NaN, Infinity, -Infinity], [-1, 1]), [1, 255, 0, 0, 0]);
});

test('one value only: as the server draws it', () => {
  assert.deepEqual(numbered([3, 2, 4, NaN], [3, 3]), [1, 1, 255, 0]);
});

test('ranges whose span overflows', () => {
  assert.deepEqual(numbered([-1.7e308, 0, 1.7e308], [-1.7e308, 1.7e308]), [1, 128, 255]);
});

test('f32 values are compared as doubles', () => {
  const values = Float32Array.of(0.1, 0.3);
  assert.deepEqual([...number(values, [0, 1], new Uint8Array(2))], [1 + Math.round(254 * values[0]), 1 + Math.round(254 * values[1])]);
});

test('the table of pixels is little-endian RGBA, entry 0 transparent', () => {
  assert.deepEqual([...new Uint8Array(lookup(['#440154', '#fde725']).buffer)], [0, 0, 0, 0, 0x44, 1, 0x54, 255, 0xfd, 0xe7, 0x25, 255]);
});

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
