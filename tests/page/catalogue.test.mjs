/* The catalogue as the page keeps it; what its functions answer are rows of cases/modules.jsonl. */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import {
  catalogue, complete, learn, loadCatalogue, outputsOf, requestFor, scheme, schemeOf,
} from '../../server/page/catalogue.js';

const answers = JSON.parse(readFileSync(new URL('cases/catalogue.json', import.meta.url), 'utf8'));
let asked = [];
await loadCatalogue(async (path) => {
  asked.push(path);
  if (!(path in answers)) throw new Error(path);
  return structuredClone(answers[path]);
});

test('what parameters mean is asked for when it is needed, once, and put into the rows that there are', async () => {
  const { parameters: [base], outputs } = scheme('turning');
  assert.ok(!asked.includes('/schemes') && base.summary === undefined);
  asked = [];
  await complete();   /* the server is away */
  answers['/schemes'] = structuredClone(answers['/schemes?view=page']);
  const [row] = answers['/schemes'].schemes;
  row.parameters[0].summary = 'of the slowest wave';
  row.outputs[0].name = 'of another server';
  row.outputs[0].summary = 'not this one';
  answers['/schemes'].faults = [{ code: 'shifted' }];
  await Promise.all([complete(), complete()]);
  await complete();
  assert.deepEqual(asked, ['/schemes', '/schemes']);
  assert.ok(scheme('turning').parameters[0] === base && base.summary === 'of the slowest wave');
  assert.equal(outputs[0].summary, undefined);
  assert.deepEqual(catalogue().faults, [{ code: 'shifted' }]);
});

test('a scheme is learned from an answer', () => {
  const config = { hf_config: { model_type: 'some' }, len: 3 };
  assert.equal(schemeOf(config), undefined);
  assert.deepEqual(outputsOf(config, '/encode'), []);
  learn(config, { scheme: 'turning' });
  assert.equal(schemeOf({ hf_config: { model_type: 'some' }, len: 9 }).name, 'turning');
});

test('a configuration whose scheme is not known stays whole, and is never changed in place', () => {
  const config = Object.freeze({ hf_config: { model_type: 'other' }, len: 3, seed: 1 });
  assert.notEqual(requestFor('/encode', config), config);
});
