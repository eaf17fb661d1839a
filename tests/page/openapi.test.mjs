/* What the docs view reads in a description such as ours; single calls are rows of cases/modules.jsonl. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import {
  fieldRows, groupsOf, keyed, responsesOf, schemeRows, searchRows, stepsOf,
} from '../../server/page/views/docs/openapi.js';

const { description, scheme, common } = JSON.parse(readFileSync(new URL('cases/openapi.json', import.meta.url), 'utf8'));
const catalogue = { common, metrics: [{ parameters: [] }], schemes: [scheme] };

test('steps and answers of a route', () => {
  const [, [, [weights]]] = groupsOf(description);
  assert.deepEqual(stepsOf(weights.operation).map(({ name }) => name), ['name']);
  const answers = responsesOf(weights.operation, description.components.responses);
  assert.deepEqual(answers.map(([, { description: text }]) => text), ['the answer', 'nothing of this name']);
});

test('texts by keys that are the same in every language', () => {
  const before = JSON.stringify(description);
  const { description: document, texts } = keyed(description);
  assert.equal(JSON.stringify(description), before);
  const { get, post } = document.paths['/encode'];
  assert.equal(texts[get.summary], 'compute');
  assert.notEqual(get.summary, post.summary);
  assert.equal(texts[document.components.responses[404].description], 'nothing of this name');
  const chinese = keyed(JSON.parse(before.replaceAll('"compute"', '"计算"')));
  assert.equal(chinese.description.paths['/encode'].get.summary, get.summary);
  assert.equal(chinese.texts[get.summary], '计算');
});

test('rows of parameters keep both languages where there are two', () => {
  const rows = [...fieldRows(description, catalogue), ...schemeRows(scheme)];
  const named = (name, owner) => rows.find((one) => one.row.name === name && one.owner === owner);
  assert.deepEqual([named('len', '').row.label, named('len', '').range], ['length', '1 …']);
  assert.deepEqual(named('preset', '').row, { name: 'preset', key: 'a model' });
  assert.equal(named('q', '/attention').type, 'tensor');
  assert.deepEqual([named('base', 'waves').fallback, named('q', 'waves').range], [10, '[n,dim]']);
});

test('search', () => {
  const rows = [...fieldRows(description, catalogue), ...schemeRows(scheme)];
  const names = (query) => searchRows(rows, query, (key) => `text of ${key}`).map(({ row }) => row.name);
  assert.equal(names('').length, rows.length);
  for (const query of ['rope_theta', '底数', 'WAVES base']) assert.deepEqual(names(query), ['base'], query);
  assert.equal(names('q')[0], 'q');
  assert.deepEqual(names('text a model'), ['preset']);
  assert.deepEqual(names('nothing-like-this'), []);
});
