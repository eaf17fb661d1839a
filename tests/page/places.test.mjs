/* At which positions the rows and columns of a tensor stand: API §2.2. */
import test from 'node:test';
import assert from 'node:assert/strict';
import { placeOf, places } from '../../server/page/draw/places.js';

const SEQUENCE = ['len', 'offset', 'positions', 'grid', 'lens', 'segments', 'tokens', 'q_len', 'k_len', 'q_offset', 'q_positions', 'k_positions'];

const table = (config, rows) => places(config, { axes: ['position', 'dim'], rows, cols: 8 }, SEQUENCE);
const pairs = (config, rows, cols) => places(config, { axes: ['head', 'query', 'key'], rows, cols }, SEQUENCE);
const all = (place, cells) => place && Array.from({ length: cells }, (_, i) => placeOf(place, i));

test('rows of a table', () => {
  for (const [config, rows, expected] of [
    [{ len: 3 }, 3, [0, 1, 2]],
    [{ len: 3, offset: 248 }, 3, [248, 249, 250]],
    [{ tokens: ['a', 'b'], offset: 5 }, 2, [5, 6]],
    [{ positions: [0, 1, 131071] }, 3, [0, 1, 131071]],
    [{ positions: [0.5, -3] }, 2, [0.5, -3]],
    [{ lens: [2, 3], offset: 1 }, 5, [1, 2, 1, 2, 3]],
    [{ offset: 7 }, 2, [7, 8]],                            /* tensors that were sent say how many */
    [{ grid: [2, 3] }, 6, null],
    [{ positions: [[0, 1], [0, 0]] }, 2, null],
    [{ segments: [{ type: 'text', len: 4 }] }, 4, null],
    [{ len: 3, offset: 2 }, 4, null],                      /* a class token's row stands before them */
    [{ positions: [1, 2] }, 3, null],
  ]) assert.deepEqual(all(table(config, rows).row, rows), expected, JSON.stringify(config));
  assert.deepEqual(all(table({ len: 3, offset: 248 }, 3).col, 8), [0, 1, 2, 3, 4, 5, 6, 7], 'channels are counted from 0');
});

test('queries and keys', () => {
  for (const [config, rows, cols, queries, keys] of [
    [{ len: 2 }, 2, 2, [0, 1], [0, 1]],
    [{ len: 2, offset: 9 }, 2, 2, [9, 10], [9, 10]],
    [{ q_len: 1, k_len: 4 }, 1, 4, [3], [0, 1, 2, 3]],                                  /* decoding with a cache */
    [{ q_len: 1, k_len: 4, q_offset: 0 }, 1, 4, [0], [0, 1, 2, 3]],                     /* cross attention */
    [{ q_len: 2, k_len: 4, offset: 100 }, 2, 4, [102, 103], [100, 101, 102, 103]],
    [{ q_positions: [200], k_positions: [7, 3] }, 1, 2, [200], [7, 3]],
    [{ positions: [4, 8] }, 2, 2, [4, 8], [4, 8]],
    [{ lens: [1, 2] }, 3, 3, [0, 0, 1], [0, 0, 1]],
    [{ grid: [1, 2] }, 2, 2, null, null],
  ]) {
    const { row, col } = pairs(config, rows, cols);
    assert.deepEqual([all(row, rows), all(col, cols)], [queries, keys], JSON.stringify(config));
  }
});

test('a tensor of one axis has one row', () => {
  const { row, col } = places({ len: 3, offset: 4 }, { axes: ['position'], rows: 1, cols: 3 }, SEQUENCE);
  assert.deepEqual([all(row, 1), all(col, 3)], [[0], [4, 5, 6]]);
});
