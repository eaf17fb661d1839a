import { test } from 'node:test';
import assert from 'node:assert/strict';
import {
  catalogue, complete, holds, inherited, learn, loadCatalogue, outputsOf, parametersOf, preset, requestFor, scheme, schemeOf,
} from '../../server/page/catalogue.js';

const attention = {
  parameters: [{ name: 'num_heads', default: 8 }, { name: 'seed', default: null }, { name: 'kernel', default: 'softmax' }],
  inputs: [{ name: 'q', endpoint: '/attention' }, { name: 'k', endpoint: '/attention' }, { name: 'x', endpoint: '/attention' }],
  outputs: [
    { name: 'probs', default: true, when: 'kernel=softmax' },
    { name: 'weights', default: true, when: 'kernel=linear' },
    { name: 'output', default: false },
  ],
};

const answers = {
  '/schemes?view=page': {
    schemes: [
      {
        name: 'turning', family: 'rotary', attention,
        parameters: [
          { name: 'base', aliases: ['rope_theta'], type: 'number', default: 10000 },
          { name: 'channels', type: 'string', default: null, values: ['mrope', 'pixtral'] },
          { name: 'section', type: 'array', default: null, when: 'channels=mrope|' },
          { name: 'form', type: 'string', default: 'pairs', values: ['pairs', 'concat'] },
        ],
        inputs: [{ name: 'q', endpoint: '/rotate' }, { name: 'k', endpoint: '/rotate' }],
        outputs: [
          { name: 'cos', shape: 'n,c', default: true, when: 'form=pairs' },
          { name: 'cos', shape: 'n,r', default: true, when: 'form=expanded' },
          { name: 'cos_sin', shape: 'n,r', default: true, when: 'form=concat' },
          { name: 'inv_freq', shape: 'c', default: false },
        ],
      },
      {
        name: 'table', family: 'bias', attention,
        parameters: [{ name: 'num_heads', default: 8 }, { name: 'seed', default: null }],
        inputs: [{ name: 'table', endpoint: '/encode' }],
        outputs: [{ name: 'bias', default: true, when: 'weights' }, { name: 'buckets', default: false }],
      },
      {
        name: 'waves', family: 'absolute', attention,
        parameters: [{ name: 'dim', default: 512 }],
        inputs: [{ name: 'x', endpoint: '/encode' }],
        outputs: [{ name: 'encoding', default: true }],
      },
    ],
    common: [{ name: 'len', group: 'sequence' }, { name: 'segments', group: 'segments' }, { name: 'dtype', group: 'answer' }],
    families: [{ name: 'rotary' }], groups: [{ name: 'sequence' }],
    metrics: [{ name: 'shift', parameters: [{ name: 'k' }] }, { name: 'wavelengths', parameters: [{ name: 'train_len' }] }],
  },
  '/presets': {
    presets: [{
      name: 'model', aliases: ['model-7b'], config: { scheme: 'turning', base: 5, form: 'concat' },
      layers: [{ layer_type: 'full', config: { scheme: 'turning', base: 5, form: 'concat' } },
        { layer_type: 'local', config: { scheme: 'turning', base: 3 } }],
    }, { name: 'ours', config: { scheme: 'waves' }, note: 'stored', stored_by: null, stored_at: '2026-03-01T12:00:00Z' }],
  },
  '/cmaps': { cmaps: [{ name: 'gray', colors: ['#000000', '#ffffff'] }] },
  '/limits': { max_body: 9 },
};
let asked = [];
await loadCatalogue(async (path) => {
  asked.push(path);
  if (!(path in answers)) throw new Error(path);
  return structuredClone(answers[path]);
});

const names = (rows) => rows.map((row) => row.name);

test('the answers are kept by name', () => {
  assert.equal(scheme('turning').family, 'rotary');
  assert.equal(preset('model-7b').name, 'model');
  assert.deepEqual(catalogue().cmaps, { gray: ['#000000', '#ffffff'] });
  assert.equal(catalogue().limits.max_body, 9);
  assert.equal(scheme('nobody'), undefined);
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

test('a stored preset is called by its name in both languages', () => {
  const { label, label_zh, note_zh } = preset('ours');
  assert.deepEqual([label, label_zh, note_zh], ['ours', 'ours', 'stored']);
  assert.equal(schemeOf({ preset: 'ours' }).name, 'waves');
});

test('the scheme is named, inherited from a preset, or learned from an answer', () => {
  assert.equal(schemeOf({ scheme: 'waves' }).name, 'waves');
  assert.equal(schemeOf({ preset: 'model' }).name, 'turning');
  const config = { hf_config: { model_type: 'some' }, len: 3 };
  assert.equal(schemeOf(config), undefined);
  assert.deepEqual(outputsOf(config, '/encode'), []);
  learn(config, { scheme: 'turning' });
  assert.equal(schemeOf({ hf_config: { model_type: 'some' }, len: 9 }).name, 'turning');
});

test('a layer type chooses among a preset’s layers', () => {
  assert.equal(inherited({ preset: 'model' }).base, 5);
  assert.equal(inherited({ preset: 'model', layer_type: 'local' }).base, 3);
  assert.deepEqual(inherited({ scheme: 'waves' }), {});
});

test('conditions', () => {
  const rows = scheme('turning').parameters;
  assert.ok(holds(undefined, rows, {}));
  assert.ok(holds('form=pairs|concat', rows, { form: 'concat' }));
  assert.ok(!holds('form=pairs', rows, { form: 'concat' }));
  assert.ok(holds('form=pairs', rows, {}), 'a word that is not given is its default');
  assert.ok(holds('channels=mrope|', rows, {}), 'an empty alternative: not given');
  assert.ok(!holds('channels=mrope', rows, {}));
  assert.ok(!holds('channels=mrope|', rows, { channels: 'pixtral' }));
  assert.ok(holds('channels=mrope|', rows, { channels: null }), 'null means not given');
  assert.ok(holds('form=concat', rows, { preset: 'model' }), 'a preset gives words too');
});

test('outputs are those of the configuration', () => {
  const outputs = outputsOf({ scheme: 'turning' }, '/encode');
  assert.deepEqual(outputs.map((row) => [row.name, row.shape]), [['cos', 'n,c'], ['inv_freq', 'c']]);
  assert.deepEqual(names(outputsOf({ scheme: 'turning', form: 'concat' }, '/encode')), ['cos_sin', 'inv_freq']);
  assert.deepEqual(names(outputsOf({ preset: 'model' }, '/encode')), ['cos_sin', 'inv_freq']);
  assert.deepEqual(names(outputsOf({ scheme: 'turning' }, '/attention')), ['probs', 'output']);
  assert.deepEqual(names(outputsOf({ scheme: 'turning', kernel: 'linear' }, '/attention')), ['weights', 'output']);
});

test('without weights the outputs on request become the default', () => {
  assert.deepEqual(outputsOf({ scheme: 'table', len: 4 }, '/encode'), [{ name: 'buckets', default: true }]);
  assert.deepEqual(names(outputsOf({ scheme: 'table', len: 4, seed: 0 }, '/encode')), ['bias', 'buckets']);
  assert.deepEqual(names(outputsOf({ scheme: 'table', len: 4, table: [[1]] }, '/encode')), ['bias', 'buckets']);
});

test('parameters are the scheme’s, those of attention once, then the sequence’s', () => {
  assert.deepEqual(names(parametersOf({ scheme: 'table' }, '/encode')), ['num_heads', 'seed', 'len', 'segments']);
  assert.deepEqual(names(parametersOf({ scheme: 'table' }, '/attention')), ['num_heads', 'seed', 'kernel', 'len', 'segments']);
  assert.deepEqual(names(parametersOf({}, '/encode')), ['len', 'segments']);
});

test('a request leaves out what belongs to another endpoint only', () => {
  const config = { scheme: 'waves', len: 4, num_heads: 2, seed: 1, kernel: 'linear', dtype: 'f64', wrong: 1 };
  assert.deepEqual(requestFor('/encode', config), { scheme: 'waves', len: 4, dtype: 'f64', wrong: 1 });
  assert.deepEqual(requestFor('/attention', config), config);
  assert.deepEqual(requestFor('/encode', { scheme: 'table', num_heads: 2, seed: 1 }), { scheme: 'table', num_heads: 2, seed: 1 });
  const vectors = { scheme: 'turning', q: [[1, 0]], k: [[1, 0]], rope_theta: 5, train_len: 9 };
  assert.deepEqual(requestFor('/rotate', vectors), { scheme: 'turning', q: [[1, 0]], k: [[1, 0]], rope_theta: 5 });
  assert.deepEqual(requestFor('/encode', vectors), { scheme: 'turning', rope_theta: 5 });
  assert.deepEqual(requestFor('/analyze', vectors), { scheme: 'turning', rope_theta: 5 });
  assert.deepEqual(requestFor('/attention', { scheme: 'table', table: [[1]] }), { scheme: 'table', table: [[1]] });
  assert.deepEqual(requestFor('/attention', { scheme: 'waves', x: [[1]] }), { scheme: 'waves', x: [[1]] });
});

test('a configuration whose scheme is not known stays whole, and is never changed in place', () => {
  const config = Object.freeze({ hf_config: { model_type: 'other' }, len: 3, seed: 1 });
  assert.deepEqual(requestFor('/encode', config), config);
  assert.notEqual(requestFor('/encode', config), config);
});
