/* What the server offers, asked for once: schemes, presets, colours and limits, and what follows from their rows. The
 * page knows no scheme by name: forms, captions and figures read these rows. */
import { label, live, renew } from './words.js';

const reference = {
  schemes: [], presets: [], cmaps: {}, limits: {}, common: [], families: [], groups: [], metrics: [], faults: [],
};
const learned = new Map();         /* the text of a config.json: the scheme that the server read from it */
const learnedOf = new WeakMap();   /* the same by the object, which is not turned into text each time */
let asking = null;
let whole = null;
const SEQUENCE_GROUPS = ['sequence', 'segments'];

/* A stored preset has one name and one note, in whatever language they are. */
const named = (row) => ({ label: row.name, label_zh: row.name, note_zh: row.note, ...row });

/* get(path) → the parsed answer. Without what its parameters mean, which is two thirds of the schemes. */
export async function loadCatalogue(get) {
  const paths = ['/schemes?view=page', '/presets', '/cmaps', '/limits'];
  const [schemes, presets, cmaps, limits] = await Promise.all(paths.map((path) => get(path)));
  Object.assign(reference, schemes, { presets: presets.presets.map(named), limits });
  reference.cmaps = Object.fromEntries(cmaps.cmaps.map((map) => [map.name, map.colors]));
  asking = get;
  return reference;
}

/* The rest of it, when a form or a text needs it, once; what is shown already gets its texts. */
export function complete() {
  whole ??= asking('/schemes').then((all) => {
    merge(reference, all);
    renew();
  }, () => { whole = null; });   /* the next who needs it asks again */
  return whole;
}

/* Rows stay the same objects, because controls hold them. */
function merge(into, from) {
  if (into.name !== from.name) return;
  for (const [key, value] of Object.entries(from)) {
    if (value && typeof value === 'object' && into[key]) merge(into[key], value);
    else into[key] = value;
  }
}

export const catalogue = () => reference;
export const scheme = (name) => reference.schemes.find((row) => row.name === name);
export const preset = (name) => reference.presets.find((row) => row.name === name || row.aliases?.includes(name));
/* The labels of schemes by their names, 'rope' or 'rope − alibi'. */
export const labelsOf = (names) =>
  live(() => names.split(' − ').map((name) => label(scheme(name) ?? { name })).join(' − '));
export const metric = (name) => reference.metrics.find((row) => row.name === name);
export const common = (name) => reference.common.find((row) => row.name === name);

/* ---- The scheme of a configuration ---- */

/* A model's own file: its config.json, or the keys of a GGUF file. */
const fileOf = (config) => config.hf_config ?? config.gguf;
const nameIn = (keys) => keys['general.name'] ?? keys['general.architecture'] ?? '.gguf';

/* Remembers what an answer's `config` says about a configuration whose scheme only the server can read, and which
 * models have the same. */
export function learn(config, resolved) {
  const file = fileOf(config);
  if (!file || !resolved?.scheme) return;
  learned.set(JSON.stringify(file), resolved.scheme);
  likes.set(file, modelsLike(resolved, String(file.model_type ?? file['general.architecture'] ?? '')));
}

/* ---- Which model a file is ---- */

const likes = new WeakMap();   /* a config.json, or the keys of a GGUF file: rows of the models that it is like */

const isSame = (one, other) => one && other && typeof one === 'object' && typeof other === 'object'
  ? Object.entries(one).every(([key, value]) => isSame(value, other[key]))
  : (one ?? null) === (other ?? null);

/* What the server derives from other fields where they are not stated. */
const DERIVED = ['rotary_dim', 'partial_rotary_factor', 'attention_factor'];
/* A rule of type default changes nothing. */
const stated = (value) => value?.type === 'default' ? null : value ?? null;

/* Rows of the models with all values of a resolved configuration, those of its kind first. What a model does not state
 * has its default; a head that is turned in part is none that is turned whole. */
export function modelsLike(resolved, kind = '') {
  const rows = (scheme(resolved.scheme)?.parameters ?? []).filter(({ name }) => !DERIVED.includes(name));
  const isWhole = resolved.rotary_dim === undefined || resolved.rotary_dim === resolved.head_dim;
  const has = (config) => config && config.scheme === resolved.scheme && (isWhole || 'rotary_dim' in config)
    && DERIVED.every((name) => !(name in config) || isSame(config[name], resolved[name]))
    && rows.every(({ name, default: usual }) =>
      isSame(stated(resolved[name]) ?? usual, stated(config[name]) ?? usual));
  const isOfKind = ({ name }) => kind !== '' && name.replace(/\W/g, '').startsWith(kind.replace(/[\W_]|vl|text/g, ''));
  const found = reference.presets.filter((row) => [row, ...row.layers ?? []].some(({ config }) => has(config)));
  return [...found.filter(isOfKind), ...found.filter((row) => !isOfKind(row))];
}

/* The same of a configuration that is a file, once the server has read it; null: it is none, or is not read. */
export const modelsOf = (config) => likes.get(fileOf(config) ?? {}) ?? null;

/* The parameters that a configuration inherits from its preset, of the layers that it asks for. */
export function inherited(config) {
  const row = preset(config.preset);
  const layer = row?.layers?.find((one) => one.layer_type === config.layer_type);
  return (layer ?? row)?.config ?? {};
}

export function schemeOf(config) {
  return scheme(config.scheme ?? inherited(config).scheme ?? fromFile(fileOf(config)));
}

/* A link may have anything in place of a name. */
const textOf = (value) => typeof value === 'string' ? value : JSON.stringify(value);

/* What a configuration is called by: the row of its model, its file or its scheme; `rule` tells scalings of one model
 * apart. */
export function calledBy(config) {
  const row = config.preset ? preset(config.preset) ?? { name: textOf(config.preset) }
    : modelsOf(config)?.length ? modelsOf(config)[0]
    : config.hf_config ? { name: textOf(config.hf_config.model_type ?? config.hf_config._class_name ?? 'config.json') }
    : config.gguf ? { name: textOf(nameIn(config.gguf)) }
    : schemeOf(config) ?? { name: textOf(config.scheme ?? '?') };
  const kind = config.scaling?.type ?? config.scaling?.rope_type;
  return kind ? { ...row, rule: textOf(kind) } : row;
}

function fromFile(file) {
  if (!file || typeof file !== 'object') return undefined;
  const known = learnedOf.get(file) ?? learned.get(JSON.stringify(file));
  if (known) learnedOf.set(file, known);
  return known;
}

/* ---- Its parameters and outputs ---- */

/* Does a row's condition hold: 'form=asymmetric|key', where an empty alternative means that the word is not given? A
 * word that is not given may stand for its default or, if the row has that alternative, for none. */
export function holds(when, rows, config) {
  if (!when) return true;
  const [field, alternatives] = when.split('=');
  const row = rows.find((one) => one.name === field);
  const words = alternatives?.split('|') ?? [];
  const given = config[field] ?? inherited(config)[field];
  if (given !== undefined && given !== null) return words.includes(given);
  return words.includes('') || words.includes(row?.default);
}

const isAttention = (path) => path === '/attention';

function ownParameters(row, path) {
  const more = isAttention(path) ? row.attention?.parameters ?? [] : [];
  const known = new Set(row.parameters.map((one) => one.name));
  return [...row.parameters, ...more.filter((one) => !known.has(one.name))];
}

export const sequenceRows = () => reference.common.filter((row) => SEQUENCE_GROUPS.includes(row.group));

/* All parameters that the path takes, whether or not their conditions hold. */
export function parametersOf(config, path) {
  const row = schemeOf(config);
  return [...(row ? ownParameters(row, path) : []), ...sequenceRows()];
}

/* Weights are there if they are stored, random, or sent under one of the scheme's names. */
function hasWeights(row, config) {
  const all = { ...inherited(config), ...config };
  const sources = ['weights', 'seed', ...row.inputs.map((input) => input.name)];
  return sources.some((name) => all[name] !== undefined && all[name] !== null);
}

/* The outputs that the path can answer. If none of them is one by default, all are. */
export function outputsOf(config, path) {
  const row = schemeOf(config);
  if (!row) return [];
  const rows = isAttention(path) ? row.attention?.outputs ?? [] : row.outputs;
  const parameters = ownParameters(row, path);
  const there = rows.filter((one) => one.when === 'weights' ? hasWeights(row, config) : holds(
    one.when, parameters, config
  ));
  return there.some((one) => one.default) ? there : there.map((one) => ({ ...one, default: true }));
}

/* ---- A configuration at another endpoint ---- */

const isNamed = (rows, name) => rows.some((row) => row.name === name || row.aliases?.includes(name));

/* Where the catalogue knows a field; nowhere: the name is unknown to it. Parameters of a metric are refused where that
 * metric is not asked for, so it is the view that adds them. */
function endpointsOf(name, row) {
  const endpoints = new Set();
  if (isNamed(row.parameters, name) || isNamed(reference.common, name)) endpoints.add('any');
  if (isNamed(row.attention?.parameters ?? [], name)) endpoints.add('/attention');
  for (const input of [...row.inputs, ...row.attention?.inputs ?? []])
    if (input.name === name) endpoints.add(isTable(input, row) ? 'any' : input.endpoint);
  if (reference.metrics.some((metric) => isNamed(metric.parameters, name))) endpoints.add('a metric');
  return endpoints;
}

/* A table of weights is taken wherever its scheme is used; queries, keys and embeddings only where they are encoded. */
const isTable = (input, row) => input.endpoint === '/encode' && !isNamed(row.attention?.inputs ?? [], input.name);

/* The configuration as that path takes it: without the fields that the catalogue knows to belong to other paths only.
 * So a configuration survives a change of view, and the server still refuses a name that nobody knows. */
export function requestFor(path, config) {
  const row = schemeOf(config);
  if (!row) return { ...config };
  const belongs = ([name]) => {
    const endpoints = endpointsOf(name, row);
    return !endpoints.size || endpoints.has('any') || endpoints.has(path);
  };
  return Object.fromEntries(Object.entries(config).filter(belongs));
}
