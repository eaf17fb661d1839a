/* The numbers of `scaling`: one configuration under every scaling of the catalogue, with one factor and two lengths. */
import { Refusal } from '../../ask.js';
import { bodyFor } from '../parts.js';

const LENGTHS = ['original_max_position_embeddings', 'max_position_embeddings'];
export const FACTOR = 4;   /* of a configuration that has none */

/* Rules that are lists of a model's own, or another word for one: nothing less can be had of them. */
const HAVE_LISTS = ['longrope', 'su', 'deepseek_yarn'];

/* Fields that the server has asked for or refused, "ntk factor": true or false, and words of rules that are refused
 * without more, "su": false. They depend on the rule alone, so that a slider moved later costs one request. */
const settled = new Map([['default factor', false], ...HAVE_LISTS.map((type) => [type, false])]);

export const scalingRow = (page, config) =>
  page.catalogue.schemeOf(config)?.parameters.find((row) => row.name === 'scaling');

/* The configuration's own scaling; null where it has none. */
export function ownScaling(page, slot, config) {
  const names = ['scaling', ...scalingRow(page, config)?.aliases ?? []];
  const given = names.map((name) => config[name] ?? page.catalogue.inherited(config)[name]).find(Boolean);
  return given ?? (config.hf_config ? page.resolved.get(slot)?.config?.scaling : null) ?? null;
}

/* Those that a factor and two lengths can state. */
const isComparable = (rows, type) =>
  rows.find((row) => row.name === 'factor').used_by.split('|').includes(type) && settled.get(type) !== false;

export const typeOf = (scaling) => scaling?.type ?? scaling?.rope_type ?? null;
export const lengthOf = (scaling) => LENGTHS.map((name) => scaling?.[name]).find((value) => value > 0) ?? null;

/* The length that a model was trained on, where its note in the catalogue states it; null: it does not. */
export function lengthNoted(page, config) {
  const [, length] = /(?:^|[.;] )(\d{3,}) positions/.exec(page.catalogue.preset(config.preset)?.note ?? '') ?? [];
  return length ? Number(length) : null;
}

/* A rule needs more than a factor: the rest is taken from the model that needs the fewest fields. Lists belong to their
 * model alone. */
function donor(page, type) {
  const own = page.catalogue.catalogue().presets.map((preset) => preset.config.scaling)
    .filter((scaling) => typeOf(scaling) === type);
  return own.filter((scaling) => !Object.values(scaling).some(Array.isArray))
    .sort((a, b) => Object.keys(a).length - Object.keys(b).length)[0]
    ?? {};
}

function scalingOf(page, type, own, { factor, train }) {
  const fields = { ...typeOf(own) === type ? own : donor(page, type), type, factor };
  for (const name of LENGTHS) if (name in fields || settled.get(`${type} ${name}`)) fields[name] = train;
  return Object.fromEntries(Object.entries(fields).filter(
    ([name]) => name !== 'rope_type' && settled.get(`${type} ${name}`) !== false
  ));
}

/* Without its sequence and its scaling; the sequence is the last position of the evaluated length. */
function bare(page, config, last) {
  const names = ['scaling', ...scalingRow(page, config)?.aliases ?? []];
  const kept = Object.entries(bodyFor(page.catalogue, '/analyze', config, { sequence: false }))
    .filter(([name]) => !names.includes(name));
  return { ...Object.fromEntries(kept), len: 1, offset: last - 1 };
}

/* The request of the configuration itself. */
export function ownRequest(page, slot, config, lengths) {
  const own = ownScaling(page, slot, config);
  const scaling = own && { scaling: scalingOf(page, typeOf(own) ?? 'default', own, lengths) };
  return {
    metrics: ['wavelengths'], outputs: ['wavelength'], train_len: lengths.train, ...bare(page, config, lengths.eval),
    ...scaling,
  };
}

/* { scheme, own: type, lines: [{ type, place, wavelength, result }] }, the configuration's own first; place: of the
 * type in the catalogue, so that a rule looks the same in all figures. */
export async function askScalings(page, get, slot, config, lengths) {
  const { metrics, outputs, train_len, ...first } = ownRequest(page, slot, config, lengths);
  const own = ownScaling(page, slot, config);
  const rows = scalingRow(page, config)?.parameters ?? [];
  const types = rows.find((row) => row.name === 'type')?.values ?? [];
  const others = types.filter((type) => type !== (typeOf(own) ?? 'default')
    && (type === 'default' || isComparable(rows, type)));
  const most = page.catalogue.catalogue().limits.configs - 1;
  const answers = [];
  for (let i = 0; i === 0 || i < others.length; i += most) {
    answers.push(await askAccepted(
      page, get, { metrics, outputs, train_len }, first, others.slice(i, i + most), own, lengths
    ));
  }
  const [{ configs, lines: [mine] }] = answers;
  const rest = answers.flatMap(({ lines }) => lines.slice(1));
  page.publish?.(slot, { config: configs[0], tensors: {} });
  const ordered = types.map((type) => rest.find((line) => line.type === type)).filter(Boolean);
  const lines = [mine, ...ordered].map((line) => ({ ...line, place: Math.max(0, types.indexOf(line.type)) }));
  return { scheme: configs[0].scheme, own: mine.type, lines };
}

/* Asks for these rules at once; what one of them needs or does not take, or a rule that cannot be had, is settled by
 * the server's refusals. */
async function askAccepted(page, get, request, first, types, own, lengths) {
  const used = new Set(types);
  for (;;) {
    const asked = [...used];
    const configs = [first, ...asked.map((type) => ({ ...first, scaling: scalingOf(page, type, own, lengths) }))];
    try {
      return linesOf(await get({ path: '/analyze', body: { ...request, configs } }, { as: 'json' }), [null, ...asked]);
    } catch (error) {
      const [, , i, ...rest] = error instanceof Refusal ? error.problem.pointer?.split('/') ?? [] : [];
      if (!(i > 0)) throw i === '0' ? withoutIndex(error, rest) : error;
      settle(asked[i - 1], configs[i].scaling, rest[1], used);
    }
  }
}

/* The refusal as if the configuration had been asked for alone. */
function withoutIndex(error, rest) {
  error.problem = { ...error.problem, pointer: `/${rest.join('/')}` };
  return error;
}

/* A field that is missing and is no length cannot be had, whatever the configuration. */
function settle(type, scaling, field, used) {
  const key = `${type} ${field}`;
  const fresh = field && field !== 'type' && !settled.has(key);
  if (fresh && field in scaling) settled.set(key, false);
  else if (fresh && LENGTHS.includes(field)) settled.set(key, true);
  else {
    if (fresh) settled.set(type, false);
    used.delete(type);
  }
}

/* A type that the server resolves to another one is only another word for it. */
function linesOf({ configs, results, tensors }, types) {
  const lines = results.map((result, i) => ({
    type: configs[i].scaling?.type ?? 'default', asked: types[i], result: result.wavelengths,
    wavelength: Float64Array.from(tensors[`wavelength.${i}`]?.data ?? [], Number),
  }));
  for (const { type, asked } of lines) if (asked && asked !== type) settled.set(asked, false);
  return { configs, lines: lines.filter(({ type, asked, result }) => result && (!asked || asked === type)) };
}
