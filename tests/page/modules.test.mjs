/* The rows of cases/modules.jsonl: what functions of the page's pure modules make of what they are given. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { loadCatalogue } from '../../server/page/catalogue.js';

const ARRAYS = { $f64: Float64Array, $f32: Float32Array, $u8: Uint8Array, $u32: Uint32Array };
const PLAIN = { undefined, NaN, Infinity, '-Infinity': -Infinity, '-0': -0 };

/* A value of a row: {"$": "NaN"} and {"$f64": [1]} are what JSON has no words for. */
function made(value) {
  if (Array.isArray(value)) return value.map(made);
  if (value === null || typeof value !== 'object') return value;
  if ('$' in value) return PLAIN[value.$];
  for (const [name, Type] of Object.entries(ARRAYS)) if (name in value) return Type.from(value[name].map(made));
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, made(one)]));
}

/* What is at a path; * is every item. */
const at = (value, [key, ...rest]) => key === undefined ? value : key === '*' ? value.map((one) => at(one, rest)) : at(value[key], rest);
const text = (name) => readFileSync(new URL(`cases/${name}`, import.meta.url), 'utf8');
const rows = text('modules.jsonl').trim().split('\n').map((line) => JSON.parse(line));

/* Rows with `catalogue` ask functions that look into one. */
const answers = JSON.parse(text('catalogue.json'));
await loadCatalogue(async (path) => structuredClone(answers[path]));

for (const { why, module, call, at: path, text, of } of rows) {
  test(`${module}, ${call}${path ? ` /${path}` : ''}: ${why}`, async () => {
    const { [call]: called } = await import(`../../server/page/${module}`);
    for (const [given, wanted] of of) {
      const found = called(...given.map(made));
      const plain = (value) => value === undefined ? value : structuredClone(value);   /* objects without a prototype too */
      const part = at(found, path ? path.split('/') : []);
      assert.deepEqual(text ? String(part) : plain(part), made(wanted), JSON.stringify(given));
    }
  });
}
