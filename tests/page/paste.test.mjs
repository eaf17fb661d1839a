import { test } from 'node:test';
import assert from 'node:assert/strict';
import { recognise } from '../../server/page/forms/paste.js';
import { texts } from '../../server/page/copying/request.js';

const rope = { scheme: 'rope', len: 128 };
const odd = { scheme: 'rope', tokens: ["it's", 'a "word"', '$HOME \\ `x`', '狗'], channels_first: true, weights: null };

test('whatever the request panel writes comes back', () => {
  for (const body of [rope, odd, { scheme: 'rope', positions: Array.from({ length: 9000 }, (_, i) => i + 0.5) }]) {
    const whole = JSON.parse(JSON.stringify(body));
    const about = { origin: 'http://localhost:8080', token: true, output: 'cos' };
    const all = texts({ path: '/encode', body: whole }, about);
    assert.deepEqual(recognise(all.curl), { kind: 'curl', config: whole, path: '/encode' });
    assert.deepEqual(recognise(all.python), { kind: 'request', config: whole, path: '/encode' });
    assert.deepEqual(recognise(all.json), { kind: 'request', config: whole });
  }
});

test('a difference has two configurations', () => {
  const minus = { path: '/encode', body: { ...rope, base: 5 } };
  const { python } = texts({ path: '/encode', body: rope }, { origin: 'http://h', token: false, output: 'cos', minus });
  const { state } = recognise(python);
  assert.deepEqual(state.configs, { a: { ...rope, base: 5, dtype: 'f64' }, b: { ...rope, dtype: 'f64' } });
});
