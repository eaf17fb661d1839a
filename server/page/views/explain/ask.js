/* What the view `explain` asks, and what it reads of the answers. Pure. */
import { bodyFor } from '../parts.js';

export const PATH = '/explain';
export const SEEN = 0.01;       /* cosines further apart than this are another rotation */
const SAMPLES = 120;            /* positions of a curve */
const NEITHER = ['layer_type', 'dtype'];   /* all kinds are explained, and no table is computed */

/* ---- /explain ---- */

/* The configuration alone, of every kind of layers. */
export function bare(catalogue, config) {
  const body = bodyFor(catalogue, '/encode', config, { sequence: false });
  return Object.fromEntries(Object.entries(body).filter(([name]) => !NEITHER.includes(name)));
}

export const explained = (catalogue, config, lang) => ({ path: PATH, body: { ...bare(catalogue, config), lang } });

/* ---- kinds of layers ---- */

/* Strips of layers, a part of the model each: { part, layers: [index of the entry of each layer], kinds: [[index,
 * entry]] }. A part whose number of layers is not known has none. */
export function strips({ layers: entries }) {
  const parts = [...new Set(entries.map((one) => one.part))];
  return parts.map((part) => {
    const kinds = [...entries.entries()].filter(([, one]) => one.part === part);
    const layers = [];
    for (const [i, one] of kinds) for (const layer of one.layers ?? []) layers[layer] = i;
    return { part, layers, kinds };
  });
}

/* ---- who takes what ---- */

export const textOf = (value) => typeof value === 'string' ? value : JSON.stringify(value);

/* { text, from, differs } of a cell: what a tool takes where the field has a value. */
export function taken({ value, readers }, reader) {
  const { reads, takes, from } = readers[reader];
  if (takes === null) return { text: '–', from: reads ? from : 'unread', differs: false };
  return { text: textOf(takes), from, differs: textOf(takes) !== textOf(value) };
}

/* ---- curves ---- */

/* Whole positions below the length, evenly on a log axis, with those that are named. */
export function positionsOf(length, ...named) {
  const last = Math.max(1, length - 1);
  const even = Array.from({ length: SAMPLES }, (_, i) => Math.round(last ** (i / (SAMPLES - 1))));
  const all = [...even, ...named.filter((one) => Number.isInteger(one) && one > 0 && one <= last)];
  return [...new Set(all)].sort((one, other) => one - other);
}

/* The two configurations whose numbers a finding is about: ours and the tool's; null where the answer has not both. */
export function sidesOf({ layers, readers }, finding) {
  const theirs = readers[finding.reader]?.configs;
  if (!theirs || finding.before || !finding.consequence) return null;
  const k = layers.findIndex((one, i) => finding.layers.includes(one.layer_type) && one.config && theirs[i]
    && textOf(one.config) !== textOf(theirs[i]));
  return k < 0 ? null : [layers[k].config, theirs[k]];
}

export const cosines = (config, positions) =>
  ({ path: '/encode', body: { ...config, positions, outputs: ['cos'], dtype: 'f64' } });

/* The largest |Δ| of each row of two tables; null where they have not the same shape. */
export function gaps([one], [other]) {
  const [rows, cols] = one.shape;
  if (textOf(one.shape) !== textOf(other.shape)) return null;
  return Array.from({ length: rows }, (_, row) => {
    let most = 0;
    for (let i = row * cols; i < (row + 1) * cols; i++) {
      most = Math.max(most, Math.abs(one.values[i] - other.values[i]));
    }
    return most;
  });
}

/* ---- two configurations ---- */

/* Kinds of the language model by name; one kind alone has the name of none. */
const namesOf = ({ layers }) => {
  const names = layers.filter((one) => one.part === 'text').map((one) => one.layer_type);
  return names.length > 1 ? names : [];
};

/* [{ name, alone: 'a' | 'b' | null, types: [layer_type or null of each side] }]: kinds that have one name belong
 * together; where all layers of a side are alike, it is compared with each kind of the other. */
export function pairsOf(answers) {
  const names = answers.map(namesOf);
  const all = [...new Set(names.flat())];
  return (all.length ? all : [null]).map((name) => {
    const [mine, theirs] = names.map((own) => !own.length || own.includes(name));
    const types = names.map((own) => own.length ? name : null);
    return { name, alone: mine && theirs ? null : mine ? 'a' : 'b', types };
  });
}

export const METRIC = 'difference';

export function compared(bodies, { types }, positions) {
  const configs = bodies.map((body, i) => types[i] ? { ...body, layer_type: types[i] } : body);
  return { path: '/analyze',
    body: { configs, positions, metrics: [METRIC], outputs: [METRIC], tolerance: SEEN } };
}

const RANK = ['same', 'rounding', 'differs'];
const largest = ({ result }) => result?.value ?? Infinity;

/* The worst first: [{ pair, result, ... }], result null where only one side has the kind. */
export const worstFirst = (found) => [...found].sort((one, other) =>
  RANK.indexOf(verdictOf(other)) - RANK.indexOf(verdictOf(one)) || largest(other) - largest(one));
export const verdictOf = ({ result }) => result?.verdict ?? 'differs';
