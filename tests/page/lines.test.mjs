/* Lines: their stretches, their colours, and what `curves` asks for. */
import test from 'node:test';
import assert from 'node:assert/strict';
import { nearest, stretches } from '../../server/page/draw/lines.js';
import { colorOf, dashOf, mix } from '../../server/page/draw/series.js';
import { columnsOf, rowsOf, runOf, samplesOf, slicesOf, whole, windowOf, zoomBy } from '../../server/page/views/curves/ask.js';

/* Contrast of two colours as WCAG defines it, 1 to 21. */
function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(hex) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).map((value) => value / 255).map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

const linear = { scale: 'linear' };
const log = { scale: 'log' };

test('values that are not finite make gaps', () => {
  assert.deepEqual(stretches([0, 1, 2, 3, 4], [1, NaN, 2, 3, Infinity], linear, linear), [[0, 0], [2, 3]]);
  assert.deepEqual(stretches([0, 1], [NaN, NaN], linear, linear), []);
  assert.deepEqual(stretches([0, 1, 2], [5, 0, 5], linear, log), [[0, 0], [2, 2]]);
  assert.deepEqual(stretches([], [], linear, linear), []);
});

test('the nearest sample', () => {
  const list = [0, 1, 2.5, 10];
  for (const [value, i] of [[-3, 0], [0.4, 0], [0.6, 1], [1.75, 1], [1.8, 2], [99, 3]]) assert.equal(nearest(list, value), i, `${value}`);
  assert.equal(nearest([], 1), -1);
});

test('colours differ and stand out from the paper of both themes', () => {
  for (const [theme, paper] of [['light', '#ffffff'], ['light', '#f7f6f3'], ['dark', '#14161a'], ['dark', '#1e2126']]) {
    const colors = Array.from({ length: 24 }, (_, i) => colorOf(i, theme));
    assert.equal(new Set(colors).size, 24);
    for (const color of colors) {
      assert.match(color, /^#[0-9a-f]{6}$/);
      assert.ok(contrast(color, paper) >= 3, `${color} on ${paper}`);
    }
  }
});

test('dashes differ and keep short gaps', () => {
  const dashes = [0, 1, 2, 3, 4, 5].map(dashOf);
  assert.equal(new Set(dashes.map(String)).size, 6);
  for (const dash of dashes) for (let i = 1; i < dash.length; i += 2) assert.ok(dash[i] <= 3);
});

test('mixed colours', () => {
  assert.equal(mix('#000000', '#ffffff', 0), '#000000');
  assert.equal(mix('#102030', '#304050', 0.5), '#203040');
  assert.ok(Math.abs(contrast('#000000', '#ffffff') - 21) < 1e-9);
});

const SEQUENCE = ['len', 'offset', 'positions', 'grid', 'tokens'];

test('a run is a length and an offset, and nothing else', () => {
  assert.deepEqual(runOf({ scheme: 'rope', len: 8 }, SEQUENCE), { offset: 0, len: 8 });
  assert.deepEqual(runOf({ len: 8, offset: 3, positions: null }, SEQUENCE), { offset: 3, len: 8 });
  assert.deepEqual(runOf({ tokens: ['a', 'b'] }, SEQUENCE), { offset: 0, len: 2 });
  for (const config of [{}, { grid: [2, 2] }, { positions: [1, 2] }, { len: 0 }, { len: 'x' }]) assert.equal(runOf(config, SEQUENCE), null);
});

test('what is in view', () => {
  assert.deepEqual(whole([{ offset: 0, len: 8 }, { offset: 4, len: 10 }]), [0, 13]);
  assert.deepEqual(windowOf([0, 63], { start: 9, zoom: 'fit', width: 600 }), [0, 63]);
  assert.deepEqual(windowOf([0, 9999], { start: 0, zoom: 'fit', width: 600 }), [0, 300]);
  assert.deepEqual(windowOf([0, 9999], { start: 50000, zoom: 'fit', width: 600 }), [9699, 9999]);
  assert.deepEqual(windowOf([0, 99], { start: 20, zoom: 60, width: 600 }), [20, 30]);
  assert.deepEqual(windowOf([5, 5], { start: 0, zoom: 'fit', width: 600 }), [4.5, 5.5]);
});

test('zooming goes by halves and doubles and has ends', () => {
  assert.equal(zoomBy(9.4, 1), 16);
  assert.equal(zoomBy(9.4, -1), 8);
  assert.equal(zoomBy(16, 1), 32);
  assert.equal(zoomBy(256, 1), 256);
  assert.equal(zoomBy(2, -1), 2);
});

test('samples contain the integers and cover the window', () => {
  const fine = samplesOf([0, 10], 600);
  assert.equal(fine.length, 161);
  const coarse = samplesOf([0, 300], 600);
  assert.ok(coarse.length <= 1202 && coarse.includes(17) && coarse.includes(300));
  const odd = samplesOf([0.3, 2.7], 600);
  assert.ok(odd[0] <= 0.3 && odd.at(-1) >= 2.7 && odd.includes(1) && odd.includes(2));
});

test('rows of a run in view', () => {
  assert.deepEqual(rowsOf({ offset: 0, len: 64 }, [0, 63]), [0, 64]);
  assert.deepEqual(rowsOf({ offset: 100, len: 10 }, [102.5, 104.2]), [2, 6]);
  assert.deepEqual(rowsOf({ offset: 100, len: 10 }, [0, 50]), [0, 0]);
});

test('one slice brings columns in even steps, else each is asked for', () => {
  assert.deepEqual(slicesOf([0, 8, 16, 24]), [{ slice: [0, 25, 8], cols: [0, 8, 16, 24] }]);
  assert.deepEqual(slicesOf([5]), [{ slice: [5, 6, 1], cols: [5] }]);
  assert.deepEqual(slicesOf([12, 0, 1])[0].slice, [0, 13, 1]);
  assert.deepEqual(slicesOf([0, 1, 500]).map((one) => one.cols), [[0], [1], [500]]);
  assert.deepEqual(slicesOf([]), []);
});

test('columns of the address', () => {
  assert.deepEqual(columnsOf('0,1,12', 64), [0, 1, 12]);
  assert.deepEqual(columnsOf('3,3,99', 64), [3]);
  assert.deepEqual(columnsOf('99', 64), [0]);
  assert.deepEqual(columnsOf(null, 12), [0, 8]);
  assert.deepEqual(columnsOf(null, null), [0, 8, 16, 24]);
});
