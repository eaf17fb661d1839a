/* Lines: their stretches, their colours, and what `curves` asks for. */
import test from 'node:test';
import assert from 'node:assert/strict';
import { colorOf, dashOf } from '../../server/page/draw/series.js';
import { samplesOf } from '../../server/page/views/curves/ask.js';

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

test('samples contain the integers and cover the window', () => {
  const fine = samplesOf([0, 10], 600);
  assert.equal(fine.length, 161);
  const coarse = samplesOf([0, 300], 600);
  assert.ok(coarse.length <= 1202 && coarse.includes(17) && coarse.includes(300));
  const odd = samplesOf([0.3, 2.7], 600);
  assert.ok(odd[0] <= 0.3 && odd.at(-1) >= 2.7 && odd.includes(1) && odd.includes(2));
});
