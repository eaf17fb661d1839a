/* draw/hands.js without its canvas, and what `rotate` asks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { arrange, clocksOf, pairsShown, pixelsOfUnit, turned } from '../../server/page/draw/hands.js';
import { products, rotation, widthOf } from '../../server/page/views/rotate/ask.js';

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

test('no hand leaves its clock, and tips stand where the channels say, upwards', () => {
  const picture = { pairs: [[0, 1]], q: [3, 4], k: [0, -1], shown: [0] };
  const unit = pixelsOfUnit(picture, 50);
  assert.equal(unit, 9);
  const [clock] = clocksOf(picture, { columns: 1, cell: 100, left: 0, foot: 0 }, unit);
  assert.deepEqual(clock.tips, { q: [77, 14], k: [50, 59] });
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

const row = { name: 'rope', parameters: [{ name: 'head_dim', default: 64 }] };
const catalogue = {
  catalogue: () => ({ common: ['dtype', 'outputs'].map((name) => ({ name, group: 'answer' })) }),
  sequenceRows: () => [{ name: 'len' }, { name: 'positions' }],
  requestFor: (path, config) => ({ ...config }),
  inherited: ({ preset }) => preset ? { head_dim: 128 } : {},
  schemeOf: () => row,
};

test('a rotation is asked for one position each; the width is that of the configuration', () => {
  const config = { scheme: 'rope', head_dim: 4, len: 100, positions: [1], dtype: 'f32' };
  assert.deepEqual(rotation(catalogue, config, 4, { m: 3, n: 5 }), { path: '/rotate', body: {
    scheme: 'rope', head_dim: 4, dtype: 'f32', q: { shape: [1, 4], seed: 186, std: 1 }, k: { shape: [1, 4], seed: 186, std: 1 },
    q_positions: [3], k_positions: [5] } });
  assert.deepEqual(rotation(catalogue, { q: [[1, 0]] }, 2, { m: 0, n: 0 }).body.q, [[1, 0]]);
  assert.equal(widthOf(catalogue, config), 4);
  assert.equal(widthOf(catalogue, { scheme: 'rope' }), 64);
  assert.equal(widthOf(catalogue, { preset: 'llama-3.1' }), 128);
  assert.equal(widthOf(catalogue, { hf_config: {} }), null);
});

test('the three products are one request', () => {
  const { path, body } = products([1, 2], [3, 4]);
  assert.equal(path, '/attention');
  assert.deepEqual(body.q, { dtype: 'f64', shape: [2, 2], data: [1, 2, 3, 4] });
  assert.deepEqual([body.k, body.softmax_scale, body.outputs], [body.q, 1, ['scores']]);
});
