/* The rows of cases/modules.jsonl: what functions of the page's pure modules make of what they are given. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { loadCatalogue } from '../../server/page/catalogue.js';

const ARRAYS = { $f64: Float64Array, $f32: Float32Array, $u8: Uint8Array, $u32: Uint32Array };
const PLAIN = { undefined, NaN, Infinity, '-Infinity': -Infinity, '-0': -0 };

/* Of a list the item of this name. */
const named = (from, key) => Array.isArray(from) ? from.find((one) => one.name === key) : from[key];

/* A value of a row, as cases/README.md has them; of: the functions of its module. */
function made(value, of) {
  if (Array.isArray(value)) return value.map((one) => made(one, of));
  if (value === null || typeof value !== 'object') return value;
  if ('$' in value) return PLAIN[value.$];
  if ('$field' in value) return value.$field.split('/').reduce(named, fields);
  if ('$call' in value) return of[value.$call](...made(value.of, of));
  for (const [name, Type] of Object.entries(ARRAYS)) if (name in value) return Type.from(value[name].map((one) => made(one)));
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, made(one, of)]));
}

/* What is at a path; * is every item. */
const at = (value, [key, ...rest]) => {
  if (key === undefined) return value;
  return key === '*' ? value.map((one) => at(one, rest)) : at(value instanceof Map ? value.get(key) : value[key], rest);
};
const text = (name) => readFileSync(new URL(`cases/${name}`, import.meta.url), 'utf8');
const rows = text('modules.jsonl').trim().split('\n').map((line) => JSON.parse(line));

/* Rows with `catalogue` ask functions that look into one: that of catalogue.json, or one of the schemes and presets of fields.json. */
const fields = { ...JSON.parse(text('fields.json')), openapi: JSON.parse(text('openapi.json')), metrics: text('metrics.txt') };
const answers = {
  true: JSON.parse(text('catalogue.json')),
  fields: { '/schemes?view=page': { schemes: [fields.turning, fields.drawn], common: fields.common, families: [], groups: [], metrics: [] },
    '/presets': { presets: fields.presets }, '/cmaps': { cmaps: [] }, '/limits': {} },
};
fields.rows = [...fields.turning.parameters, ...fields.common];

for (const { why, module, call, at: path, text, throws, of, catalogue = true } of rows) {
  test(`${module}, ${call}${path ? ` /${path}` : ''}: ${why}`, async () => {
    await loadCatalogue(async (path) => structuredClone(answers[catalogue][path]));
    const functions = await import(`../../server/page/${module}`);
    const { [call]: called } = functions;
    for (const [given, wanted] of of) {
      if (throws) {
        assert.throws(() => called(...made(given, functions)), { name: wanted }, JSON.stringify(given));
        continue;
      }
      const found = called(...made(given, functions));
      const plain = (value) => value === undefined ? value : structuredClone(value);   /* objects without a prototype too */
      const part = at(found, path ? path.split('/') : []);
      assert.deepEqual(text ? String(part) : plain(part), made(wanted), JSON.stringify(given));
    }
  });
}
