/* The geometry of a heat map's axes. */
import test from 'node:test';
import assert from 'node:assert/strict';
import { fit, fitBoth, lay, cellAt, pixelOf, isDrawn, clampFirst, moved, revealing, scaled, zoomed, overlap, covers, about }
  from '../../server/page/draw/windows.js';

test('fit shows every cell', () => {
  assert.deepEqual(fit(64, 900), { px: 14, step: 1 });
  assert.deepEqual(fit(131072, 560), { px: 1, step: 235 });
  assert.deepEqual(fit(900, 900), { px: 1, step: 1 });
  assert.deepEqual(fit(901, 900), { px: 1, step: 2 });
  assert.deepEqual(fit(4, 900), { px: 64, step: 1 });
  assert.deepEqual(fitBoth({ cells: 5, room: 100 }, { cells: 1000, room: 500 }, { square: true }).row, { px: 1, step: 2 });
  for (const cells of [1, 7, 559, 560, 561, 4096, 10 ** 12]) {
    const axis = lay(cells, 560, fit(cells, 560), 0);
    assert.ok(axis.count * axis.step >= cells && axis.count * axis.px <= 560);
  }
});

test('an axis begins at a multiple of its step and keeps empty room', () => {
  assert.deepEqual(lay(1000, 100, { px: 1, step: 133 }, 200), { cells: 1000, room: 8, px: 1, step: 133, first: 133, count: 7 });
  assert.deepEqual(lay(64, 200, { px: 8, step: 1 }, 60), { cells: 64, room: 200, px: 8, step: 1, first: 60, count: 4 });
  assert.equal(lay(64, 200, { px: 8, step: 1 }, 99).count, 0);
  assert.equal(lay(64, 20, { px: 30, step: 1 }, 0).count, 1);
});

test('pixels and cells', () => {
  const axis = lay(1000, 100, { px: 1, step: 10 }, 200);
  assert.equal(cellAt(axis, 3), 230);
  assert.equal(pixelOf(axis, 239), 3);
  assert.ok(isDrawn(axis, 200) && !isDrawn(axis, 199));
});

test('moving leaves no room empty', () => {
  const axis = lay(64, 200, { px: 8, step: 1 }, 10);
  assert.equal(moved(axis, -16), 12);
  assert.equal(moved(axis, 9999), 0);
  assert.equal(moved(axis, -9999), 39);
  assert.equal(clampFirst(lay(4, 200, { px: 8, step: 1 }, 0), 3), 0);
  assert.equal(revealing(axis, 9), 9);
  assert.equal(revealing(axis, 20), 10);
  assert.equal(revealing(axis, 40), 16);
});

test('a scale always changes', () => {
  assert.deepEqual(scaled({ px: 8, step: 1 }, 2), { px: 16, step: 1 });
  assert.deepEqual(scaled({ px: 1, step: 1 }, 1.1), { px: 2, step: 1 });
  assert.deepEqual(scaled({ px: 1, step: 133 }, 2), { px: 1, step: 67 });
  assert.deepEqual(scaled({ px: 1, step: 2 }, 1.1), { px: 1, step: 1 });
  assert.deepEqual(scaled({ px: 1, step: 3 }, 8), { px: 3, step: 1 });
  assert.deepEqual(scaled({ px: 2, step: 1 }, 0.9), { px: 1, step: 1 });
  assert.deepEqual(scaled({ px: 1, step: 1 }, 0.5), { px: 1, step: 2 });
  assert.deepEqual(scaled({ px: 1, step: 10 }, 0.99), { px: 1, step: 11 });
  assert.deepEqual(scaled({ px: 256, step: 1 }, 2), { px: 256, step: 1 });
});

test('zooming keeps the cell under the pointer', () => {
  const axis = lay(1000, 400, { px: 4, step: 1 }, 100);
  const pixel = 201;
  const near = zoomed(axis, 400, 2, pixel, { px: 1, step: 3 });
  assert.deepEqual([near.px, near.step], [8, 1]);
  assert.equal(cellAt(lay(1000, 400, near, near.first), pixel), cellAt(axis, pixel));
  const far = zoomed(lay(1000, 400, { px: 1, step: 3 }, 0), 400, 0.5, 10, { px: 1, step: 3 });
  assert.deepEqual(far, { px: 1, step: 3, first: 0 });
});

test('a kept window serves what it has of another one', () => {
  const kept = { first: 100, step: 10, count: 20 };
  const axis = lay(1000, 20, { px: 1, step: 10 }, 150);
  assert.deepEqual(overlap(axis, kept), { px: 1, first: 150, count: 15, start: 0, from: 5 });
  assert.deepEqual(overlap(lay(1000, 20, { px: 1, step: 10 }, 50), kept), { px: 1, first: 100, count: 15, start: 5, from: 0 });
  assert.equal(overlap(lay(1000, 20, { px: 1, step: 10 }, 500), kept), null);
  assert.equal(overlap(lay(1000, 20, { px: 1, step: 5 }, 150), kept), null);
  assert.ok(covers(lay(1000, 10, { px: 1, step: 10 }, 150), kept) && !covers(axis, kept));
});

test('cells about a cell', () => {
  assert.deepEqual(about(128, 2, 32), [0, 32]);
  assert.deepEqual(about(128, 64, 32), [48, 80]);
  assert.deepEqual(about(128, 127, 32), [96, 128]);
  assert.deepEqual(about(5, 3, 32), [0, 5]);
});
