/* Which colour a value has: its number among the 255 of a colour map, the range that these numbers span, the look-up
 * table from numbers to pixels, and numbers as blocks of pixels in the buffer of an ImageData. Pure. */

export const LAST = 254;             /* the greatest colour number */
const ROUND = 2 ** 52;               /* x + ROUND - ROUND rounds 0 <= x < ROUND to an integer, halves to even */
const NEAR_TIE = 0.4999999;
const HUGE = 1e300;                  /* from here on 254 times the span would overflow */
const SMALLER = 2 ** -12;            /* exact: a power of two */

/* numbers[i] = 1 + k, where k = 254 (v - min) / (max - min) is rounded half to even and clamped; 0 where v is not
 * finite. The order of operations is part of the promise: tests compute the same k. But a product is faster than a
 * division and differs from it by less than 1e-12, so that only values near a tie are divided. If all values are equal,
 * k is 0 up to that value, as in the server's pictures. */
export function number(values, [min, max], numbers) {
  const span = max - min;
  if (span > HUGE) {
    return number(Float64Array.from(values, (v) => v * SMALLER), [min * SMALLER, max * SMALLER], numbers);
  }
  const factor = LAST / span;
  /* in registers: half as long as from the module */
  const [last, round, tie, count] = [LAST, ROUND, NEAR_TIE, values.length];
  for (let i = 0; i < count; i++) {
    const v = values[i];
    const x = (v - min) * factor;
    if (x > 0 && x < last) {
      let k = (x + 0.5) | 0;
      const rest = x - k;
      if (rest < -tie || rest > tie) k = (last * (v - min) / span + round - round) | 0;
      numbers[i] = k + 1;
    } else numbers[i] = v - v !== 0 ? 0 : x > 0 ? last + 1 : 1;
  }
  return numbers;
}

/* The 255 colours '#rrggbb' as pixels of an ImageData (little-endian RGBA); entry 0 is transparent. */
export function lookup(colors) {
  const table = new Uint32Array(colors.length + 1);
  colors.forEach((color, i) => {
    const rgb = parseInt(color.slice(1), 16);
    table[i + 1] = 0xff000000 | (rgb & 255) << 16 | rgb & 0xff00 | rgb >> 16;
  });
  return table;
}

/* ---- ranges: [min, max], or null where no value is finite ---- */

export function extremes(values) {
  let min = Infinity;
  let max = -Infinity;
  for (let i = 0; i < values.length; i++) {
    const v = values[i];
    if (v - v !== 0) continue;
    if (v < min) min = v;
    if (v > max) max = v;
  }
  return min <= max ? [min, max] : null;
}

/* The least range that holds all of them. */
export function widest(ranges) {
  const known = ranges.filter(Boolean);
  return known.length ? [Math.min(...known.map((r) => r[0])), Math.max(...known.map((r) => r[1]))] : null;
}

/* A range about 0. Where all differences are 0 it is that of ±1, so that they get the colour of 0. */
export function symmetric(range) {
  const most = range ? Math.max(Math.abs(range[0]), Math.abs(range[1])) : 0;
  return [-(most || 1), most || 1];
}

/* What the user has fixed replaces one end or both. An end beyond the other one takes it along, as in the server's
 * pictures. */
export function limited(range, lo, hi) {
  if (lo === null && hi === null) return range;
  const [least, most] = range ?? [lo ?? hi, hi ?? lo];
  const min = lo ?? (hi < least ? hi : least);
  return [min, hi ?? Math.max(most, min)];
}

/* ---- pixels ---- */

/* pixels: Uint32Array of width x height. grid: { row, col }, each { px, count, start, from }: pixels of a drawn cell,
 * how many are drawn, the pixel where the first begins, its index in the window. numbers: colour numbers of a window
 * with `stride` columns. What lies beside the grid is transparent. */
export function paint({ pixels, width, height }, { row, col }, { numbers, stride }, table) {
  const right = Math.min(width, col.start + col.count * col.px);
  const bottom = Math.min(height, row.start + row.count * row.px);
  if (col.start > 0 || row.start > 0 || right < width || bottom < height) pixels.fill(0);
  for (let i = 0; i < row.count; i++) {
    const top = row.start + i * row.px;
    const first = top * width + col.start;
    const end = top * width + right;
    const at = (row.from + i) * stride + col.from;
    if (col.px === 1) paintThin(pixels, first, end, numbers, at, table);
    else paintWide(pixels, first, end, numbers, at, table, col.px);
    const last = Math.min(top + row.px, bottom);
    for (let y = top + 1; y < last; y++) pixels.copyWithin(y * width + col.start, first, end);
  }
}

function paintThin(pixels, first, end, numbers, at, table) {
  for (let p = first; p < end; p++, at++) pixels[p] = table[numbers[at]];
}

function paintWide(pixels, first, end, numbers, at, table, px) {
  for (let p = first; p < end; at++) {
    const stop = Math.min(p + px, end);
    const pixel = table[numbers[at]];
    while (p < stop) pixels[p++] = pixel;
  }
}
