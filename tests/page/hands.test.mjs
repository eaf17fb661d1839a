/* draw/hands.js without its canvas. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { arrange, pairsShown, turned } from '../../server/page/draw/hands.js';

test('at most 16 clocks, from the fastest pair to the slow ones', () => {
  for (let count = 1; count < 200; count += 1) {
    const shown = pairsShown(count);
    assert.ok(shown[0] === 0 && shown.length <= 16 && shown.at(-1) < count && (count < 16 || shown.length > 8), `${count}`);
  }
});

test('clocks fill the width without leaving it', () => {
  for (const width of [280, 320, 700, 1200]) for (let count = 1; count <= 16; count += 1) {
    const { columns, rows, cell } = arrange(width, count);
    assert.ok(columns * cell <= width && columns * rows >= count && columns * (rows - 1) < count, `${width} ${count}`);
  }
});

test('the way round a centre is in radians, counter-clockwise, however far from it', () => {
  for (const radius of [10, 200]) {
    let gone = 0;
    let last = [50 + radius, 50];
    for (let i = 1; i <= 100; i += 1) {
      const point = [50 + radius * Math.cos(i / 50), 50 - radius * Math.sin(i / 50)];
      gone += turned([50, 50], last, point);
      last = point;
    }
    assert.ok(Math.abs(gone - 2) < 1e-3, `${gone}`);
  }
});
