/* Short texts of numbers for captions, ticks and scales; exact texts come from the server. Pure. */

const MINUS = '\u2212';

/* A number, or its exact text, as it is read: with a minus sign. What is copied or sent keeps its hyphen. */
export const printed = (number) => String(number).replaceAll('-', MINUS);

/* The same of the numbers in a sentence: hyphens between words or letters stay. */
export const printedIn = (text) => text.replace(/(?<![\w)\]])-(?=\d)|(?<=\de)-(?=\d)|(?<= )-(?= )/g, MINUS);

/* Back to what programs read. */
export const hyphened = (text) => text.replace(/\u2212(?=[\d.\u221eI])/g, '-');

/* About `digits` significant digits: 57.3, 0.0001, 1.2e-7, 131072. */
export function short(value, digits = 4) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value < 0 ? `${MINUS}\u221e` : '\u221e';
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return printed(value);
  if (size >= 1e7 || size < 1e-4) return printed(trim(value.toExponential(digits - 1)));
  return printed(trim(value.toPrecision(Math.max(digits, size >= 1 ? Math.floor(Math.log10(size)) + 1 : 0))));
}

const trim = (text) => text.replace(/(\.\d*?)0+(?=e|$)/, '$1').replace(/\.(?=e|$)/, '').replace('e+', 'e');

/* A double as the API's JSON writes it: reals have a point or an exponent, exponents two digits or more. */
export function jsonText(value) {
  if (!Number.isFinite(value)) return String(value);
  if (Object.is(value, -0)) return '-0.0';
  const size = Math.abs(value);
  if (size && (size < 1e-4 || size >= 1e16)) return value.toExponential().replace(/([+-])(\d)$/, '$10$2');
  return Number.isInteger(value) ? `${value}.0` : String(value);
}

/* The same of a number that was an f32 or narrower: the fewest digits that give it back. */
export function singleText(value) {
  if (!value) return jsonText(value);
  const digits = [1, 2, 3, 4, 5, 6, 7, 8].find((count) => Math.fround(Number(value.toPrecision(count))) === value);
  return jsonText(digits ? Number(value.toPrecision(digits)) : Number(value.toPrecision(9)));
}

/* 1, 2 or 5 times a power of ten, at least `least`. */
export function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= least * (1 - 1e-9));
}

/* At most `most` round values within [min, max]. */
export function ticks(min, max, most) {
  if (!(max > min) || !Number.isFinite(max - min)) return [min];
  return multiples(min, max, roundStep((max - min) / most));
}

/* Those of a step within [min, max]; the digits settle 0.30000000000000004. */
export function multiples(min, max, step) {
  const first = Math.ceil(min / step - 1e-9);
  const last = Math.floor(max / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/* Cells of an axis (windows.js) that get a tick: multiples of a round step, `apart` pixels or more from each other;
 * shift: what is counted begins with so much at cell 0. */
export function cellTicks({ cells, first, step, px, count }, apart, shift = 0) {
  const every = Math.max(1, roundStep(Math.max(1, apart * step / px)));
  const end = Math.min(cells, first + count * step);
  const marks = [];
  for (let cell = Math.ceil((first + shift) / every) * every - shift; cell < end; cell += every) marks.push(cell);
  return marks;
}
