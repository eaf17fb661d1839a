/* Values of single fields. Pure: what a slider stops at, how a value is written in a control and read from it, and how
 * a sentence becomes tokens. */
import { roundStep } from '../draw/numbers.js';

export const isGiven = (value) => value !== undefined && value !== null;
export const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
export const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/* ---- Sliders ---- */

const STEPS = 200;
const STOPS_MAX = 4096;
const sliders = new WeakMap();   /* row: what its slider stops at, the same in every card */

/* To so many digits; the text settles 0.30000000000000004. */
const rounded = (value, digits) => Number(value.toPrecision(digits));

/* The step is the largest of 1, 2, 5, 10, … that makes at least STEPS of them. */
function linearValues(lo, hi, quantum) {
  const step = quantum && (hi - lo) / quantum <= STOPS_MAX
    ? quantum
    : Math.max(quantum ?? 0, 1 / roundStep(STEPS / (hi - lo)));
  const count = Math.floor((hi - lo) / step + 1e-9);
  return Array.from({ length: count + 1 }, (_, i) => rounded(lo + i * step, 12));
}

/* Even factors, rounded to two digits and to whole quanta. */
function logValues(lo, hi, quantum) {
  const values = Array.from({ length: 4 * STEPS + 1 }, (_, i) => rounded(lo * (hi / lo) ** (i / (4 * STEPS)), 2));
  const whole = quantum
    ? [...values.map((value) => Math.round(value / quantum) * quantum), ...powersOfTwo(lo, hi)]
    : values;
  return [...new Set([lo, ...whole.filter((value) => value > lo && value < hi), hi])].sort((one, other) => one - other);
}

const powersOfTwo = (lo, hi) =>
  Array.from({ length: 53 }, (_, i) => 2 ** i).filter((value) => value >= lo && value <= hi);

/* The values that a slider stops at. Sizes whose usual range begins at 8 go in eights, so that no stop is refused for
 * being odd. */
export function slider(row) {
  if (!sliders.has(row)) sliders.set(row, stopsOf(row));
  const values = sliders.get(row);
  return { values, nearest: (value) => nearest(values, value) };
}

function stopsOf({ usual: [lo, hi], type, spacing }) {
  if (!(lo < hi)) return [lo];
  const eights = lo > 1 && Number.isInteger(lo) && hi % lo === 0 ? lo : null;
  const quantum = eights ?? (type === 'integer' ? 1 : null);
  return spacing === 'log' && lo > 0 ? logValues(lo, hi, quantum) : linearValues(lo, hi, quantum);
}

function nearest(values, value) {
  const above = values.findIndex((one) => one >= value);
  if (above < 0) return values.length - 1;
  return above > 0 && value - values[above - 1] < values[above] - value ? above - 1 : above;
}

/* ---- Texts ---- */

/* A value as text, for a control that is typed into. */
export function print(row, value) {
  if (!isGiven(value)) return '';
  if (row.name === 'tokens' && Array.isArray(value)) return sentence(value);
  return typeof value === 'string' ? value : listed(value);
}

const listed = (value) => Array.isArray(value) ? `[${value.map(listed).join(', ')}]` : JSON.stringify(value);

/* { value }, undefined if the text is empty; or { isWrong: true } for what no request can hold. */
export function read(row, text) {
  const trimmed = text.trim();
  if (!trimmed) return { value: undefined };
  if (row.name === 'tokens') return { value: words(trimmed) };
  return readers[row.type]?.(trimmed) ?? { value: text };
}

const parsed = (text) => {
  try { return { value: JSON.parse(text) }; } catch { return null; }
};

const readers = {
  integer: readNumber,
  number: readNumber,
  /* A list may be typed without its brackets. */
  array: (text) => [parsed(text), parsed(`[${text}]`)].find((one) => Array.isArray(one?.value)) ?? { isWrong: true },
  object: (text) => parsed(text) ?? { isWrong: true },
  /* A word needs no quotes. */
  any: (text) => parsed(text) ?? (/^\w+$/.test(text) ? { value: text } : { isWrong: true }),
};

function readNumber(text) {
  const value = Number(text);
  return Number.isFinite(value) ? { value } : { isWrong: true };
}

/* ---- Sentences ---- */

const CHARACTER = '\\p{Script=Han}|\\p{Script=Hiragana}|\\p{Script=Katakana}';
const LETTER = `(?:(?!${CHARACTER})[\\p{L}\\p{M}\\p{N}_])`;
const TOKEN = new RegExp(`${CHARACTER}|${LETTER}+(?:['’\\-]${LETTER}+)*|\\S`, 'gu');
const IS_CHARACTER = new RegExp(`^(?:${CHARACTER})$`, 'u');
const IS_MARK = /^[^\p{L}\p{M}\p{N}_]$/u;

/* The tokens of a sentence: words of letters and digits (with ' and - inside), each Chinese or Japanese character, each
 * other mark. A JSON list is taken as it stands. */
export function words(text) {
  const list = text.startsWith('[') ? parsed(text)?.value : null;
  return Array.isArray(list) ? list : text.match(TOKEN) ?? [];
}

/* The text of which words() makes these tokens: a sentence, or a list if no sentence does. */
export function sentence(tokens) {
  const isClose = (one, next) => IS_MARK.test(next) || (IS_CHARACTER.test(one) && IS_CHARACTER.test(next));
  const text = tokens.every((one) => typeof one === 'string')
    ? tokens.map((one, i) => i && !isClose(tokens[i - 1], one) ? ` ${one}` : one).join('') : '';
  return same(words(text), tokens) ? text : JSON.stringify(tokens);
}
