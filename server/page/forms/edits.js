/* What a form shows of a configuration, and does to it. Pure: rows of the catalogue, a configuration and what the
 * server made of it become values and the next configuration.
 *
 * A context { config, inherited, resolved, answered, isRead } is a configuration, the parameters that its preset
 * brings, those of the server's last answer and the configuration that it answered, and whether a model's config.json
 * brings some that only the server can read. */
import { common, holds, scheme, sequenceRows } from '../catalogue.js';
import { isGiven, isObject, same, slider } from './fields.js';

const namesOf = (row) => [row.name, ...row.aliases ?? []];

/* ---- Values ---- */

/* The value under the row's name or another accepted one. */
export function given(config, row) {
  return namesOf(row).map((name) => config[name]).find(isGiven);
}

/* { value, isOwn }: the request's own, else what a preset, the server's answer or the row's default has instead. */
export function shown(context, row) {
  const own = given(context.config, row);
  if (isGiven(own)) return { value: own, isOwn: true };
  const value = [given(context.inherited, row), resolvedOf(context, row), row.default].find(isGiven);
  return { value, isOwn: false };
}

/* What the answer says, unless it only repeats what was then given and is so no longer. */
function resolvedOf({ config, resolved, answered }, row) {
  const isLeft = !isGiven(given(config, row)) && isGiven(given(answered ?? {}, row));
  return isLeft ? undefined : resolved[row.name];
}

/* Is the row of use here? Where the answer is known, a word that it has not stated is not given. */
export function applies(context, rows, row) {
  if (!row.when) return true;
  const words = { ...context.inherited, ...context.config };
  const [field] = row.when.split('=');
  const isKnown = !isGiven(words[field]) && context.resolved.scheme;
  return holds(row.when, rows, isKnown ? { ...words, [field]: context.resolved[field] ?? '' } : words);
}

/* The first row of an object chooses its kind, if it is a choice. */
export const isChooser = (row, inner) => inner === row.parameters[0] && Boolean(inner.values);

/* A request may have anything in place of an object; the server says what is wrong with it. */
function objectIn(config, row) {
  const value = given(config, row);
  return isObject(value) ? value : undefined;
}

/* The context of an object's own fields. The answer's object counts only while it is of the chosen kind. */
export function inside(context, row) {
  const own = objectIn(context.config, row);
  const inherited = own ? {} : objectIn(context.inherited, row) ?? {};
  const resolved = resolvedOf(context, row) ?? {};
  const [chooser] = row.parameters;
  const kind = isChooser(row, chooser) && given(own ?? inherited, chooser);
  const answered = objectIn(context.answered ?? {}, row);
  return { config: own ?? {}, inherited, resolved: !kind || kind === resolved[chooser.name] ? resolved : {}, answered };
}

/* ---- Changes ---- */

const without = (config, names) => Object.fromEntries(Object.entries(config).filter(([name]) => !names.includes(name)));

/* What would hold if the field were not given? Unknown where a config.json may have it. */
function fallback({ inherited, isRead }, row) {
  return given(inherited, row) ?? (isRead ? undefined : row.default);
}

/* The configuration with that value; without the field if the value is what would hold anyway, or undefined. */
export function withField(context, rows, row, value) {
  const isLeft = !isGiven(value) || same(value, fallback(context, row));
  const others = without(context.config, isLeft ? namesOf(row) : row.aliases ?? []);
  const next = isLeft ? others : { ...others, [row.name]: value };
  return withoutUnused(without(next, isLeft ? [] : rivals(rows, row)), { ...context.inherited, ...next }, rows,
    row.name);
}

/* Fields that may not stand beside this one. */
function rivals(rows, row) {
  const excludes = (one, other) => one.excludes?.split('|').includes(other.name);
  return rows.filter((other) => excludes(row, other) || excludes(other, row)).flatMap(namesOf);
}

/* Fields whose condition is a changed word, and no longer holds. */
function withoutUnused(config, words, rows, changed) {
  const unused = rows.filter((row) => row.when?.split('=')[0] === changed && !holds(row.when, rows, words));
  return without(config, unused.flatMap(namesOf));
}

/* The same for a field of an object. The object as a whole is the request's or the preset's, so an inherited one is
 * copied before it is changed. */
export function withInnerField(context, rows, row, inner, value) {
  const { config, inherited } = inside(context, row);
  const object = withField({ config: { ...inherited, ...config }, inherited: {} }, row.parameters, inner, value);
  return withField(context, rows, row, Object.keys(object).length ? object : undefined);
}

/* ---- An object of several kinds, e.g. a rule of scaling ----
 *
 * The first kind is what holds without the object. Which fields a kind uses, its rows need not say; so another kind
 * starts with what a preset of that kind has. */

export function withKind(context, rows, row, kind, presets) {
  const [chooser] = row.parameters;
  const isNone = kind === chooser.values[0] && !given(context.inherited, row) && !context.isRead;
  if (!isGiven(kind) || isNone) return withField(context, rows, row, undefined);
  const { config, inherited } = inside(context, row);
  const before = { ...inherited, ...config };
  const example = exampleOf(row, kind, presets);
  const start = example?.object ?? basics(row, kind, before);
  const isKept = ([name, value]) => name !== chooser.name && name in start && !Array.isArray(value);
  const kept = Object.entries(before).filter(isKept);
  const next = withField(context, rows, row, { [chooser.name]: kind, ...start, ...Object.fromEntries(kept) });
  return { ...next, ...example?.sizes };
}

/* The plainest object of that kind among the presets. Lists in it fit the sizes of its model only, so these come
 * too. */
function exampleOf(row, kind, presets) {
  const [chooser] = row.parameters;
  const isDefault = ([name, value]) => row.parameters.some((one) => one.name === name && same(one.default, value));
  const plain = (object) => Object.fromEntries(Object.entries(object).filter((entry) => !isDefault(entry)));
  const examples = presets.map(({ config }) => ({ config, object: given(config, row) }))
    .filter(({ object }) => object?.[chooser.name] === kind)
    .map(({ config, object }) => ({ config, object: plain(object) }));
  const [best] = examples.sort((one, other) => Object.keys(one.object).length - Object.keys(other.object).length);
  return best
    && { object: best.object, sizes: Object.values(best.object).some(Array.isArray) ? sizesOf(best.config) : {} };
}

function sizesOf(config) {
  const sizes = scheme(config.scheme)?.parameters.filter((one) => one.group === 'size').map((one) => one.name) ?? [];
  return Object.fromEntries(Object.entries(config).filter(([name]) => sizes.includes(name)));
}

/* No preset has this kind: the basic fields that it uses and those of its own, as they are or in the middle of what is
 * usual. */
function basics(row, kind, before) {
  const uses = (one) => !one.used_by || one.used_by.split('|').includes(kind);
  const basic = row.parameters.slice(1)
    .filter((one) => one.usual && uses(one) && (one.level === 'basic' || one.used_by));
  return Object.fromEntries(basic.map((one) => [one.name, before[one.name] ?? one.default ?? middle(one)]));
}

function middle(row) {
  const { values } = slider(row);
  return values[values.length >> 1];
}

/* Which inner fields are shown at once: the chooser, and what the request, the preset or the answer has. */
export function isInUse(context, row, inner) {
  return isChooser(row, inner) || inner.name in context.config || inner.name in context.inherited
    || inner.name in context.resolved;
}

/* ---- The sequence: exactly one of these (API §2.2), and what goes with each ---- */

const KINDS = {
  len: ['len', 'offset'],
  positions: ['positions'],
  grid: ['grid', 'order', 'spatial_merge_size'],
  grid_coords: ['grid_coords', 'order'],
  lens: ['lens', 'offset'],
  segments: ['segments', 'position_style', 'id_rules', 'spatial_merge_size', 'tokens_per_second', 'position_id_per_seconds',
    'seconds_per_chunk', 'temporal_scale'],
  tokens: ['tokens'],
  q_len: ['q_len', 'k_len', 'q_offset', 'offset'],
  q_positions: ['q_positions', 'k_positions'],
};
const START_LEN = 32;

/* What an empty field of the sequence may hold; of offset what holds without it. */
export const EXAMPLES = {
  len: START_LEN, offset: 0, positions: [0, 1, 2, 8192], grid: [8, 8], grid_coords: [[0, 1], [0, 1, 2]], lens: [16, 16], q_len: 1, k_len: START_LEN,
  q_positions: [31], k_positions: [0, 16, 31],
};

/* Queries may differ from keys only where an output has both; a kind that is chosen stays. */
export function kindsFor(outputs, chosen) {
  const hasQueries = outputs.some(({ shape }) => shape.includes('q_len'));
  return Object.keys(KINDS).filter((kind) => common(kind) && (hasQueries || !kind.startsWith('q_') || kind === chosen));
}

export function kindOf(config) {
  if (isGiven(config.k_len)) return 'q_len';
  if (isGiven(config.k_positions)) return 'q_positions';
  return Object.keys(KINDS).find((kind) => isGiven(config[kind])) ?? null;
}

/* Does a row of the sequence go with this kind? A row that no kind names goes with all. */
export function goesWith(kind, row) {
  const named = Object.values(KINDS).some((names) => names.includes(row.name));
  return !named || (kind !== null && KINDS[kind].includes(row.name));
}

/* Another kind of sequence, about as long where that is easy; `tokens` are the words to begin with. */
export function withSequence(config, kind, tokens) {
  const n = lengthOf(config);
  const run = Array.from({ length: Math.min(n, 16) }, (_, i) => i);
  const starts = {
    len: { len: n },
    positions: { positions: run },
    grid: { grid: [8, 8] },
    grid_coords: { grid_coords: EXAMPLES.grid_coords },
    lens: { lens: [Math.ceil(n / 2), Math.max(1, Math.floor(n / 2))] },
    segments: { segments: [{ type: 'text', len: 4 }, { type: 'image', grid: [1, 8, 8] }, { type: 'text', len: 4 }] },
    tokens: { tokens },
    q_len: { q_len: n, k_len: n },
    q_positions: { q_positions: run, k_positions: run },
  };
  const old = sequenceRows().map((row) => row.name)
    .filter((name) => !(KINDS[kind].includes(name) && name === 'offset'));
  return { ...without(config, old), ...starts[kind] };
}

function lengthOf({ len, q_len: queries, k_len: keys, tokens, positions }) {
  const list = Array.isArray(positions?.[0]) ? positions[0] : positions;
  return len ?? queries ?? keys ?? tokens?.length ?? list?.length ?? START_LEN;
}

/* ---- Another scheme or preset ---- */

const SOURCES = ['scheme', 'preset', 'hf_config', 'gguf', 'layer_type'];

/* Keeps what the scheme also has: sequence, answer, and parameters whose value it allows. A parameter of the old scheme
 * itself does not become one of attention. */
export function withScheme(config, row, before) {
  const isOwn = (one) => before?.parameters.some((other) => other.name === one.name);
  const rows = [...row.parameters, ...(row.attention?.parameters ?? []).filter((one) => !isOwn(one))];
  const allows = ([name, value]) => {
    const parameter = rows.find((one) => namesOf(one).includes(name));
    return common(name) || (parameter && isAllowed(parameter, value) && holds(parameter.when, rows, config));
  };
  const kept = Object.entries(without(config, SOURCES)).filter(allows);
  return withWeights({ scheme: row.name, ...Object.fromEntries(kept) }, row);
}

function isAllowed(row, value) {
  const types = { integer: Number.isInteger, number: Number.isFinite, array: Array.isArray };
  if (row.values) return row.values.includes(value);
  return (types[row.type] ?? ((one) => row.type === 'any' || typeof one === row.type))(value);
}

/* A scheme of learned weights gets the random ones of its example, else it has nothing to show. */
function withWeights(config, row) {
  const isMissing = ({ name, group }) => group === 'weights' && isGiven(row.example?.[name]) && !isGiven(config[name]);
  const random = row.parameters.filter(isMissing).map(({ name }) => [name, row.example[name]]);
  return { ...config, ...Object.fromEntries(random) };
}

/* The preset's own parameters; of the configuration's fields stay those that say which positions and what answer. */
export function withPreset(config, row) {
  const kept = Object.entries(config).filter(([name]) => common(name));
  const next = { preset: row.name, ...Object.fromEntries(kept) };
  const origin = scheme(row.config.scheme);
  return origin ? withWeights(next, origin) : next;
}

/* The same configuration without its preset or file: what these brought stands in it now. */
export function unfolded({ config, inherited, resolved }) {
  const brought = Object.keys(inherited).length ? inherited : resolved;
  return { ...brought, ...without(config, SOURCES.slice(1)) };
}
