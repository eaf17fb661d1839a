/* What /openapi.json says, as the docs view reads it: groups of routes, rows of parameters, examples, requests.
 * Pure. */
import { queryOf } from '../../asking/client.js';
import { quoted } from '../../copying/request.js';
import { haystack, matches } from '../gallery/starts.js';

const WORDS = ['the', 'cat', 'saw', 'the', 'dog', 'and', 'the', 'bird'];
const RUN_METHODS = { post: 'POST', get: 'GET', 'x-query': 'QUERY' };   /* what can be tried from the page */

/* Whose fields a schema describes: '' all requests, else a path. */
const SHARED_BY = { '': 'Request', '/attention': 'Attention', '/analyze': 'Analysis', '/diagnose': 'Diagnosis' };

/* ---- texts ---- */

/* { description, texts }: a copy with keys in place of summaries and descriptions, and the texts by key. The keys are
 * the same in every language. */
export function keyed(given) {
  const description = structuredClone(given);
  const texts = {};
  const walk = (value, path) => {
    for (const [name, item] of Object.entries(value)) {
      const key = `${path}/${name}`;
      if (item instanceof Object) walk(item, key);
      else if (name === 'summary' || name === 'description') [texts[key], value[name]] = [item, key];
    }
  };
  walk(description, 'openapi');
  return { description, texts };
}

/* ---- routes ---- */

/* [[tag, [{ path, item, operation, methods, runs }]]], in the order of the description. */
export function groupsOf(description) {
  const groups = new Map();
  for (const [path, item] of Object.entries(description.paths)) {
    const operation = item.post ?? item.get;
    const methods = Object.keys(item).filter((name) => name !== 'parameters')
      .map((name) => name.replace('x-', '').toUpperCase());
    const runs = Object.keys(RUN_METHODS).filter((name) => item[name]).map((name) => RUN_METHODS[name]);
    const tag = operation.tags[0];
    groups.set(tag, [...(groups.get(tag) ?? []), { path, item, operation, methods, runs }]);
  }
  return [...groups];
}

/* [{ name, example }] of the {names} in a path. */
export const stepsOf = (operation) => (operation.parameters ?? []).filter((one) => one.in === 'path');

export function exampleOf(operation) {
  const json = operation.requestBody?.content['application/json'];
  return json ? JSON.stringify(json.example ?? {}) : '';
}

/* [[status, { description, content }]]; most are references to those that all routes share. */
export function responsesOf(operation, shared) {
  return Object.entries(operation.responses)
    .map(([status, one]) => [status, one.$ref ? shared[one.$ref.split('/').pop()] : one]);
}

/* ---- examples ---- */

/* What is encoded can be analysed. */
const endpointFor = (path) => path === '/analyze' ? '/encode' : path;

/* A scheme's own example is for its first endpoint; elsewhere it needs something to rotate or to attend to. */
export function exampleFor(path, scheme) {
  const { len, ...rest } = scheme.example;
  if (endpointFor(path) === scheme.endpoints[0]) return scheme.example;
  const n = Math.min(len, WORDS.length);
  if (path !== '/rotate') return { ...rest, tokens: WORDS.slice(0, n), num_heads: rest.num_heads ?? 1 };
  return {
    ...rest, q: Array.from({ length: n }, (_, i) => Array.from({ length: rest.head_dim }, (__, j) => (i + j) % 3 - 1)),
  };
}

/* On a grid, tokens alone would not say where they stand: left to the reader. */
export function hasExample(path, scheme) {
  const endpoint = endpointFor(path);
  return scheme.endpoints.includes(endpoint) && (endpoint === scheme.endpoints[0] || scheme.example.len !== undefined);
}

/* ---- requests ---- */

/* { method, target, body } of what stands in a route's fields; steps: { name: text }. */
export function requestOf(method, path, steps, text) {
  const target = path.replace(/{(\w+)}/g, (_, name) => encodeURIComponent(steps[name]));
  if (method !== 'GET') return { method, target, body: text };
  const query = text && queryOf(JSON.parse(text));
  return { method, target: query ? `${target}?${query}` : target };
}

/* named: the type of the body has to be named, because an endpoint reads no other. */
export function curlOf({ method, target, body }, { origin, token, named }) {
  const who = token ? '-H "Authorization: Bearer $TOKEN" ' : '';
  const how = method === 'GET' || method === 'POST' && body ? '' : `-X ${method} `;
  const what = body ? `${named ? '--json' : '-d'} ${quoted(body)} ` : '';
  return `curl ${who}${how}${what}${quoted(origin + target)}`;
}

/* ---- parameters ---- */

/* { row, owner, type, fallback, range }: row has name and texts, of the catalogue where it knows the name, else the key
 * of its description. */
export function schemeRows(scheme) {
  const owner = scheme.name;
  const parameters = scheme.parameters.map((row) => (
    { row, owner, type: row.type, fallback: row.default, range: rangeOf(row.min, row.max, row.values) }));
  const inputs = scheme.inputs.map((row) => ({ row, owner, type: 'tensor', range: `[${row.shape}]` }));
  return [...parameters, ...inputs];
}

function rangeOf(min, max, values) {
  if (values) return values.join(', ');
  return min === undefined && max === undefined ? '' : `${min ?? ''} … ${max ?? ''}`.trim();
}

/* Fields that all requests share (owner ''), and those of single paths. */
export function fieldRows(description, catalogue) {
  const { schemas } = description.components;
  const places = [...catalogue.metrics, ...catalogue.schemes.map((scheme) => scheme.attention ?? { parameters: [] })];
  const rows = [...places.flatMap(({ parameters }) => parameters), ...catalogue.common];
  const known = new Map(rows.map((row) => [row.name, row]));
  return Object.entries(SHARED_BY)
    .flatMap(([owner, name]) => schemas[name] ? schemaRows(owner, schemas[name], known) : []);
}

function schemaRows(owner, schema, known) {
  return Object.entries(schema.properties).map(([name, one]) => {
    const row = known.get(name) ?? { name, key: one.description };
    const type = one.type ?? row.type ?? (one.$ref ? 'tensor' : '');
    return { row, owner, type, fallback: one.default, range: rangeOf(one.minimum, one.maximum, one.enum) };
  });
}

/* Rows in which every word is found; the one of that very name first. word(key): the text of a key. */
export function searchRows(rows, query, word) {
  const found = rows.filter(({ row, owner }) => (
    matches(haystack(row, { name: owner, label: row.key && String(word(row.key)) }), query)));
  return found.sort((a, b) => (b.row.name === query) - (a.row.name === query));
}
