/* The geometry of a heat map's axes. */
import test from 'node:test';
import assert from 'node:assert/strict';
import { fit, lay, isDrawn, zoomed, covers } from '../../server/page/draw/windows.js';

test('fit shows every cell', () => {
  for (const cells of [1, 7, 559, 560, 561, 4096, 10 ** 12]) {
    const axis = lay(cells, 560, fit(cells, 560), 0);
    assert.ok(axis.count * axis.step >= cells && axis.count * axis.px <= 560);
  }
});

test('pixels and cells', () => {
  const axis = lay(1000, 100, { px: 1, step: 10 }, 200);
  assert.ok(isDrawn(axis, 200) && !isDrawn(axis, 199));
});

test('zooming keeps the cell under the pointer', () => {
  const axis = lay(1000, 400, { px: 4, step: 1 }, 100);
  const pixel = 201;
  const near = zoomed(axis, 400, 2, pixel, { px: 1, step: 3 });
  assert.deepEqual([near.px, near.step], [8, 1]);
  const far = zoomed(lay(1000, 400, { px: 1, step: 3 }, 0), 400, 0.5, 10, { px: 1, step: 3 });
  assert.deepEqual(far, { px: 1, step: 3, first: 0 });
});

test('a kept window serves what it has of another one', () => {
  const kept = { first: 100, step: 10, count: 20 };
  const axis = lay(1000, 20, { px: 1, step: 10 }, 150);
  assert.ok(covers(lay(1000, 10, { px: 1, step: 10 }, 150), kept) && !covers(axis, kept));
});
