import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { print, read, sentence, slider, words } from '../../server/page/forms/fields.js';
import { loadCatalogue } from '../../server/page/catalogue.js';
import {
  applies, goesWith, inside, isInUse, kindsFor, unfolded, withField, withInnerField, withKind, withPreset, withScheme, withSequence,
} from '../../server/page/forms/edits.js';

/* ---- Values as text ---- */

test('tokens become the sentence that gives them back', () => {
  const cases = [['The', 'dog', '.'], [...'狗追狗。'], ['GPT', '会', '说', 'hi'], ['<s>', 'new york', ''], ['a b'],
    ['[', 'CLS', ']'], [], ['don’t'], ['1', '2']];
  for (const tokens of cases) assert.deepEqual(words(sentence(tokens)), tokens, JSON.stringify(tokens));
});

test('texts are read by the type of their row', () => {
  assert.ok(read({ type: 'number' }, '1,5').isWrong);
  assert.ok(read({ type: 'array' }, '[1,').isWrong);
  assert.ok(read({ type: 'any' }, '[c2p').isWrong);
});

test('what is printed reads back', () => {
  const cases = [['array', [1, [2, 3]]], ['array', ['a,b']], ['any', { type: 'text', len: 4 }], ['number', 1e-7],
    ['any', 'sqrt_dim']];
  for (const [type, value] of cases) {
    assert.deepEqual(read({ type }, print({ type }, value)), { value });
  }
});

/* ---- Sliders ---- */

const stops = (usual, spacing, type = 'integer') => slider({ usual, spacing, type }).values;

test('sliders stop at round values within the usual range', () => {
  assert.deepEqual(stops([1, 4], 'linear'), [1, 2, 3, 4]);
  assert.deepEqual(stops([8, 32], 'linear'), [8, 16, 24, 32]);
  assert.deepEqual(stops([1, 8], 'log'), [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.equal(stops([0, 1], 'linear', 'number').length, 201);
  assert.ok(stops([0, 1], 'linear', 'number').includes(0.3));
});

test('logarithmic sliders have both ends, powers of two, and no step that stands still', () => {
  const integers = [[1, 512], [8, 1024]].map((usual) => [usual, 'integer']);
  const numbers = [[256, 262144], [100, 1e7], [0.01, 2]].map((usual) => [usual, 'number']);
  for (const [usual, type] of [...integers, ...numbers]) {
    const values = stops(usual, 'log', type);
    assert.deepEqual([values[0], values.at(-1)], usual);
    assert.ok(values.every((value, i) => !i || value > values[i - 1]), String(usual));
    if (type === 'integer') assert.ok(values.includes(64) && values.every(Number.isInteger));
  }
  assert.ok(stops([8, 1024], 'log').every((value) => value % 8 === 0));
  assert.ok(stops([100, 1e7], 'log', 'number').includes(10000));
});

test('a typed value stands at the nearest stop', () => {
  const { values, nearest } = slider({ usual: [1, 512], spacing: 'log', type: 'integer' });
  assert.equal(values[nearest(100)], 100);
  assert.equal(values[nearest(-5)], 1);
  assert.equal(values[nearest(9999)], 512);
});

/* ---- A small catalogue ---- */

const { scaling, turning, drawn, presets } = JSON.parse(readFileSync(new URL('cases/fields.json', import.meta.url), 'utf8'));
const names = ['len', 'offset', 'positions', 'grid', 'order', 'lens', 'segments', 'tokens', 'q_len', 'k_len', 'q_positions',
  'k_positions', 'extra'];
const common = [...names.map((name) => ({ name, group: 'sequence' })), { name: 'dtype', group: 'answer' }];
await loadCatalogue(async (path) => ({
  '/schemes?view=page': { schemes: [turning, drawn], common, families: [], groups: [], metrics: [] },
  '/presets': { presets }, '/cmaps': { cmaps: [] }, '/limits': {},
})[path]);

const rows = [...turning.parameters, ...common];
const row = (name) => rows.find((one) => one.name === name);
const context = (config, more = {}) => ({ config, inherited: {}, resolved: {}, isRead: false, ...more });
const set = (config, name, value, more) => withField(context(config, more), rows, row(name), value);

/* ---- Values shown ---- */

test('a row whose condition does not hold is not of use', () => {
  assert.ok(applies(context({}), rows, row('base')));
  assert.ok(applies(context({}), rows, row('sections')));
  assert.ok(!applies(context({ style: 'two' }), rows, row('sections')));
  assert.ok(applies(context({ style: 'two' }), rows, row('temperature')));
  assert.ok(!applies(context({}, { resolved: { scheme: 'turning', style: 'two' } }), rows, row('sections')));
  assert.ok(applies(context({}, { resolved: { scheme: 'turning' } }), rows, row('sections')));
});

/* ---- Changes ---- */

test('with a preset, its value is the default', () => {
  const more = { inherited: presets[0].config };
  assert.deepEqual(set({ preset: 'model' }, 'head_dim', 64, more), { preset: 'model', head_dim: 64 });
  assert.deepEqual(set({ preset: 'model', head_dim: 64 }, 'head_dim', 128, more), { preset: 'model' });
  assert.deepEqual(set({ hf_config: {} }, 'head_dim', 64, { isRead: true }), { hf_config: {}, head_dim: 64 });
});

test('rivals and fields without their condition go', () => {
  assert.deepEqual(set({ style: 'two', base: 5 }, 'temperature', 9), { style: 'two', temperature: 9 });
  assert.deepEqual(set({ style: 'two', temperature: 9 }, 'base', 5), { style: 'two', base: 5 });
  assert.deepEqual(set({ style: 'two', temperature: 9 }, 'style', 'one'), { style: 'one' });
  assert.deepEqual(set({ style: 'one', sections: [1] }, 'style', undefined), { sections: [1] });
});

test('a field of an object', () => {
  const inner = (config, name, value, more) =>
    withInnerField(context(config, more), rows, scaling, scaling.parameters.find((one) => one.name === name), value);
  const config = { scaling: { type: 'yarn', factor: 4 } };
  const more = { inherited: presets[0].config };
  const longer = { preset: 'model', scaling: { type: 'yarn', factor: 8, original: 32768 } };
  assert.deepEqual(inner(config, 'factor', 8), { scaling: { type: 'yarn', factor: 8 } });
  assert.deepEqual(inner(config, 'beta', 32), config, 'a default leaves');
  assert.deepEqual(inner({ preset: 'model' }, 'factor', 8, more), longer, 'an inherited object is copied whole');
  assert.deepEqual(inner(longer, 'factor', 4, more), { preset: 'model' });
});

test('another kind of object begins with what a preset of that kind has', () => {
  const kind = (config, value, more) => withKind(context(config, more), rows, scaling, value, presets);
  assert.deepEqual(kind({}, 'yarn').scaling, { type: 'yarn', factor: 4, original: 32768 });
  const linear = { type: 'linear', factor: 2 };
  assert.deepEqual(kind({ scaling: linear }, 'yarn').scaling, { type: 'yarn', factor: 2, original: 32768 });
  assert.deepEqual(kind({}, 'new').scaling.type, 'new');
  assert.ok(kind({}, 'new').scaling.factor > 1);
  assert.deepEqual(kind({ scaling: { type: 'yarn', factor: 3, original: 9 } }, 'linear').scaling, { type: 'linear', factor: 3 });
  assert.deepEqual(kind({ scaling: { type: 'yarn', factor: 3 } }, undefined), {});
  assert.deepEqual(kind({ scaling: { type: 'yarn', factor: 3 } }, 'default'), {}, 'the first kind is none');
  assert.deepEqual(kind({ preset: 'model' }, 'default', { inherited: presets[0].config }).scaling.type, 'default');
  assert.deepEqual(kind({ len: 3 }, 'listed'), { len: 3, head_dim: 4, scaling: { type: 'listed', factors: [1, 2] } },
    'lists bring the sizes that they fit');
});

test('of an object’s fields those are in use that the request or the answer has', () => {
  const inUse = (config, resolved, name) => {
    const own = inside(context({ scaling: config }, { resolved: { scaling: resolved } }), scaling);
    return isInUse(own, scaling, scaling.parameters.find((one) => one.name === name));
  };
  const answer = { type: 'yarn', factor: 4, beta: 32 };
  assert.ok(inUse({ type: 'yarn', factor: 4 }, answer, 'beta'));
  assert.ok(!inUse({ type: 'linear', factor: 4 }, answer, 'beta'), 'an answer of another kind does not count');
  assert.ok(!inUse(undefined, { type: 'default' }, 'factor'));
  assert.ok(inUse(undefined, { type: 'default' }, 'type'));
});

/* ---- Sequences, schemes, presets ---- */

test('exactly one kind of sequence', () => {
  assert.deepEqual(withSequence({ scheme: 's', len: 3, offset: 5 }, 'lens'), { scheme: 's', offset: 5, lens: [2, 1] });
  assert.deepEqual(withSequence({ len: 3, offset: 5 }, 'positions'), { positions: [0, 1, 2] });
  assert.deepEqual(withSequence({ len: 3 }, 'tokens', ['a']), { tokens: ['a'] });
  assert.deepEqual(withSequence({ positions: [[0, 1], [1, 2]] }, 'len'), { len: 2 });
  assert.ok(!kindsFor([{ shape: 'n,dim' }], 'len').includes('q_len'));
  assert.ok(kindsFor([{ shape: 'n,dim' }], 'q_len').includes('q_len'), 'a chosen kind stays');
  assert.ok(kindsFor([{ shape: 'num_heads,q_len,k_len' }], 'len').includes('q_positions'));
  assert.ok(goesWith('grid', { name: 'order' }) && !goesWith('len', { name: 'order' }) && goesWith('len', { name: 'extra' }));
});

test('another scheme keeps what it also has', () => {
  const config = { scheme: 'drawn', len: 9, dtype: 'f64', dim: 8, seed: 3 };
  assert.deepEqual(withScheme(config, turning), { scheme: 'turning', len: 9, dtype: 'f64' });
  assert.deepEqual(withScheme({ scheme: 'turning', len: 9, style: 'one' }, drawn), { scheme: 'drawn', len: 9, seed: 0 },
    'a value that it does not allow goes, and weights are random ones');
  assert.deepEqual(withScheme({ preset: 'model', layer_type: 'x', len: 9 }, turning), { scheme: 'turning', len: 9 });
});

test('a preset takes the parameters’ place, and can be unfolded', () => {
  const config = { scheme: 'turning', base: 5, len: 9, dtype: 'f64' };
  assert.deepEqual(withPreset(config, presets[0]), { preset: 'model', len: 9, dtype: 'f64' });
  assert.deepEqual(withPreset(config, presets[3]), { preset: 'other', len: 9, dtype: 'f64', seed: 0 });
  assert.deepEqual(unfolded(context({ preset: 'model', head_dim: 32, len: 9 }, { inherited: presets[0].config })),
    { ...presets[0].config, head_dim: 32, len: 9 });
  assert.deepEqual(unfolded(context({ hf_config: {}, len: 9 }, { resolved: { scheme: 'turning', base: 7 } })),
    { scheme: 'turning', base: 7, len: 9 });
});
