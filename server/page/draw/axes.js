/* Axes of line pictures: which pixel a value has, which ticks stand on an axis and what they say. Pure. */
import { roundStep } from './numbers.js';

/* An axis from value lo at pixel `from` to value hi at pixel `to`; scale is linear or log. */
export function axis({ scale = 'linear', lo, hi, from, to }) {
  const bend = scale === 'log' ? Math.log10 : (value) => value;
  const unbend = scale === 'log' ? (value) => 10 ** value : (value) => value;
  const [start, span] = [bend(lo), bend(hi) - bend(lo)];
  return {
    scale, lo, hi, from, to,
    at: (value) => from + (bend(value) - start) / span * (to - from),
    value: (pixel) => unbend(start + (pixel - from) / (to - from) * span),
  };
}

/* Least and largest of what an axis of this scale can show, as [lo, hi]; null where there is nothing. */
export function extent(lists, scale = 'linear') {
  let [lo, hi] = [Infinity, -Infinity];
  for (const list of lists) for (const value of list) {
    if (!Number.isFinite(value) || (scale === 'log' && value <= 0)) continue;
    if (value < lo) lo = value;
    if (value > hi) hi = value;
  }
  return lo <= hi ? [lo, hi] : null;
}

/* A range that leaves room around [lo, hi], so that no line runs along the frame; null becomes 0...1 or 1...10. */
export function roomy(range, scale = 'linear', share = 0.06) {
  if (!range) return scale === 'log' ? [1, 10] : [0, 1];
  const [lo, hi] = range;
  if (scale === 'log') {
    const room = lo === hi ? 2 : (hi / lo) ** share;
    return [lo / room, hi * room];
  }
  const room = lo === hi ? Math.abs(lo) / 2 || 0.5 : (hi - lo) * share;
  return [lo - room, hi + room];
}

/* Ticks of an axis, at least `room` pixels apart: [{ value, text }], and without a text where only a fine line stands.
 * whole: positions and pairs, which have no ticks between integers. */
export function ticks(line, room, { whole = false } = {}) {
  const length = Math.abs(line.to - line.from);
  if (!(length > 0) || !(line.hi > line.lo)) return [];
  if (line.scale === 'log' && line.hi / line.lo >= 12) return decades(line, room, length);
  const step = Math.max(roundStep((line.hi - line.lo) * room / length), whole ? 1 : 0);
  return linear(line, step);
}

function linear({ lo, hi }, step) {
  const found = [];
  for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi + step * 1e-9; i += 1) {
    const value = Number((i * step).toPrecision(12));
    found.push({ value, text: tickText(value, step) });
  }
  return found;
}

function decades({ lo, hi }, room, length) {
  const [first, last] = [Math.floor(Math.log10(lo)), Math.ceil(Math.log10(hi))];
  const pixels = length / (Math.log10(hi) - Math.log10(lo));
  const every = Math.max(1, Math.ceil(room / pixels));
  const found = [];
  for (let power = first; power <= last; power += 1) {
    const labelled = ((power % every) + every) % every === 0;
    for (const times of every === 1 && pixels >= 2 * room ? [1, 2, 5] : [1]) {
      const value = Number(`${times}e${power}`);
      if (value >= lo * (1 - 1e-9) && value <= hi * (1 + 1e-9)) found.push({ value, text: labelled ? powerText(times, power) : null });
    }
  }
  return found;
}

const RAISED = '⁰¹²³⁴⁵⁶⁷⁸⁹';
const raised = (power) => (power < 0 ? '⁻' : '') + String(Math.abs(power)).replace(/\d/g, (digit) => RAISED[digit]);

/* 10 to a power as 1000 or 10⁵; times it as 2000 or 2·10⁵. */
export function powerText(times, power) {
  if (power >= -3 && power < 5) return plain(Number(`${times}e${power}`), Math.max(0, -power));
  return `${times === 1 ? '' : `${times}·`}10${raised(power)}`;
}

/* A tick's number with as many digits as its step needs, with a true minus and thin spaces in thousands. */
export function tickText(value, step) {
  if (value === 0) return '0';
  const size = Math.floor(Math.log10(Math.abs(value)) + 1e-9);
  const fine = Math.floor(Math.log10(step) + 1e-9);
  if (size >= 7 || size < -4) {
    const mantissa = plain(value / 10 ** size, Math.max(0, size - fine));
    return mantissa === '1' ? `10${raised(size)}` : `${mantissa}·10${raised(size)}`;
  }
  return plain(value, Math.max(0, -fine));
}

function plain(value, digits) {
  const [whole, rest] = Math.abs(value).toFixed(digits).split('.');
  const spaced = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, '\u202f') : whole;
  return `${value < 0 ? '\u2212' : ''}${spaced}${rest ? `.${rest}` : ''}`;
}
