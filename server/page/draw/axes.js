/* Axes of line pictures: which pixel a value has, which ticks stand on an axis and what they say. Pure. */
import { multiples, roundStep } from './numbers.js';

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

/* Ticks of an axis, at least `room` pixels apart: [{ value, text }].
 * whole: positions and pairs, which have no ticks between integers. */
export function ticks(line, room, { whole = false } = {}) {
  const length = Math.abs(line.to - line.from);
  if (!(length > 0) || !(line.hi > line.lo)) return [];
  if (line.scale === 'log' && line.hi / line.lo >= 12) return decades(line, room, length);
  const step = Math.max(roundStep((line.hi - line.lo) * room / length), whole ? 1 : 0);
  return multiples(line.lo, line.hi, step).map((value) => ({ value, text: tickText(value, step) }));
}

/* Powers of ten, every one of them or, where they are many, every second, third... */
function decades({ lo, hi }, room, length) {
  const every = Math.max(1, Math.ceil(room * Math.log10(hi / lo) / length));
  const values = multiples(Math.log10(lo), Math.log10(hi), every).map((power) => Number(`1e${power}`));
  return values.map((value) => ({ value, text: tickText(value, value) }));
}

const RAISED = '⁰¹²³⁴⁵⁶⁷⁸⁹';
const raised = (power) => (power < 0 ? '⁻' : '') + String(Math.abs(power)).replace(/\d/g, (digit) => RAISED[digit]);

/* A tick's number with as many digits as its step needs, with a true minus, and thin spaces in thousands; 2·10⁷. */
export function tickText(value, step) {
  if (value === 0) return '0';
  const [size, fine] = [value, step].map((one) => Math.floor(Math.log10(Math.abs(one)) + 1e-9));
  if (size < 6 && size > -5) return plain(value, Math.max(0, -fine));
  const mantissa = plain(value / 10 ** size, Math.max(0, size - fine));
  return `${mantissa === '1' ? '' : `${mantissa}·`}10${raised(size)}`;
}

function plain(value, digits) {
  const text = Math.abs(value).toFixed(digits)
    .replace(/^\d{5,}/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, '\u202f'));
  return value < 0 ? `\u2212${text}` : text;
}
