/* The rows of cases/modules.jsonl: what functions of the page's pure modules make of what they are given. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

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

const at = (value, path) => path.split('/').reduce((found, key) => found[key], value);
const rows = readFileSync(new URL('cases/modules.jsonl', import.meta.url), 'utf8').trim().split('\n').map((line) => JSON.parse(line));

for (const { why, module, call, at: path, text, of } of rows) {
  test(`${module}, ${call}${path ? ` /${path}` : ''}: ${why}`, async () => {
    const { [call]: called } = await import(`../../server/page/${module}`);
    for (const [given, wanted] of of) {
      const found = called(...given.map(made));
      const plain = (value) => value === undefined ? value : structuredClone(value);   /* objects without a prototype too */
      const part = path ? at(found, path) : found;
      assert.deepEqual(text ? String(part) : plain(part), made(wanted), JSON.stringify(given));
    }
  });
}
