/* What `curves` asks for: which positions are in view, where they are sampled, which columns one request brings. Pure. */

export const COLUMNS_MAX = 12;
const SAMPLES_A_STEP = 16;
const PIXELS_A_STEP = 2;          /* with fewer, waves would be sampled too thinly to be true */
const NARROW = 64;                /* so many columns are brought along rather than asked for twice */
const ZOOMS = [2, 4, 8, 16, 32, 64, 128, 256];

/* A configuration whose sequence is a run of positions: { offset, len }; else null. */
export function runOf(config, sequenceNames) {
  const given = sequenceNames.filter((name) => config[name] !== undefined && config[name] !== null);
  if (given.some((name) => !['len', 'offset', 'tokens'].includes(name))) return null;
  const len = config.len ?? config.tokens?.length;
  return Number.isInteger(len) && len > 0 ? { offset: config.offset ?? 0, len } : null;
}

/* All that can be in view: the runs of all configurations together, as [first, last]. */
export const whole = (runs) => [Math.min(...runs.map((run) => run.offset)), Math.max(...runs.map((run) => run.offset + run.len - 1))];

/* The positions [from, to] in view. zoom: pixels of a step, or 'fit' for as many positions as are honestly drawn. */
export function windowOf([first, last], { start, zoom, width }) {
  const span = zoom === 'fit' ? width / PIXELS_A_STEP : width / zoom;
  if (last - first <= span) return zoom === 'fit' || last === first ? around(first, last) : [first, first + span];
  const from = Math.min(Math.max(start, first), last - span);
  return [from, from + span];
}

/* A single position gets room on both sides. */
const around = (first, last) => first === last ? [first - 0.5, first + 0.5] : [first, last];

/* The zoom after one step in or out from what is shown. */
export function zoomBy(shown, direction) {
  const next = direction > 0 ? ZOOMS.find((px) => px > shown * 1.01) : ZOOMS.findLast((px) => px < shown * 0.99);
  return next ?? (direction > 0 ? ZOOMS.at(-1) : ZOOMS[0]);
}

/* Samples of [from, to]: multiples of a power of two, so that their decimals are short and integers are among them. */
export function samplesOf([from, to], width) {
  let step = 1 / SAMPLES_A_STEP;
  while ((to - from) / step > 2 * width && step < 1) step *= 2;
  const [first, last] = [Math.floor(from / step), Math.ceil(to / step)];
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

/* Whole positions of a run within [from, to], and one more on each side, as rows [start, stop]. */
export function rowsOf({ offset, len }, [from, to]) {
  const start = Math.max(0, Math.floor(from) - offset);
  return [start, Math.max(start, Math.min(len, Math.ceil(to) - offset + 1))];
}

const gcd = (a, b) => b ? gcd(b, a % b) : a;

/* Slices [start, stop, step] of the columns, each with the columns that it brings: [{ slice, cols }]. One slice where
 * it brings few others, else one a column. */
export function slicesOf(cols) {
  const sorted = [...new Set(cols)].sort((a, b) => a - b);
  if (!sorted.length) return [];
  const [first, last] = [sorted[0], sorted.at(-1)];
  const step = sorted.reduce((common, col) => gcd(common, col - first), 0) || 1;
  const count = (last - first) / step + 1;
  if (count <= NARROW) return [{ slice: [first, last + 1, step], cols: Array.from({ length: count }, (_, i) => first + i * step) }];
  return sorted.map((col) => ({ slice: [col, col + 1, 1], cols: [col] }));
}

/* Columns of the address, or a few that show slow and fast ones; those that the output has. */
export function columnsOf(text, width) {
  const wanted = text ? text.split(',').map(Number) : [0, 8, 16, 24];
  const there = [...new Set(wanted)].filter((col) => width === null || col < width);
  return (there.length ? there : [0]).slice(0, COLUMNS_MAX);
}
