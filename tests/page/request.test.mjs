/* Copies of a request: quoting that a shell and Python agree with, one file, differences, tokens. */
import assert from 'node:assert';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { json, python, shell, texts } from '../../server/page/copying/request.js';

const ODD = ["it's", 'a "b"', 'line\nline', '$HOME `id` \\ !', '中文 Ω', '', '-o', '*?[a]', '\u0000', '\u2028',
  'é\ud83d\ude00', "'''", '%s'];
const about = { origin: 'http://localhost:8080', token: false, output: 'cos', scheme: 'rope' };

test('a shell reads back what was quoted', () => {
  for (const text of ODD.filter((one) => !one.includes('\0'))) {
    assert.equal(execFileSync('sh', ['-c', `printf %s ${shell(text)}`]).toString(), text);
  }
});

test('Python reads back what was written', () => {
  const deep = { list: [[1, -2.5e-7], [1e21, 0]], no: null, yes: true, not: false, none: {}, empty: [] };
  const value = { odd: ODD, deep, long: Array(40).fill(0.125) };
  const program = `import json, sys\nprint(json.dumps(${python(value)}))`;
  assert.deepEqual(JSON.parse(execFileSync('python3', ['-c', program]).toString()), value);
});

test('JSON is pretty and the same value', () => {
  const value = { scheme: 'rope', positions: [1, 2.5], scaling: { type: 'yarn', factor: 4, text: 'x'.repeat(60) }, odd: ODD };
  assert.deepEqual(JSON.parse(json(value)), value);
});

test('curl sends the whole body and writes one file', () => {
  const body = { scheme: 'rope', tokens: ODD };
  const { curl } = texts({ path: '/encode', body }, about);
  const words = shellWords(curl);
  assert.deepEqual(words.slice(0, 3), ['curl', '-f', 'http://localhost:8080/encode']);
  assert.deepEqual(JSON.parse(words[words.indexOf('-d') + 1]), { ...body, outputs: ['cos'], format: 'npy' });
  assert.equal(words[words.indexOf('-o') + 1], 'rope-cos.npy');
});

test('a body too long for one argument goes through a here-document', () => {
  const body = { scheme: 'rope', note: "it's ".repeat(20000) };
  const { curl } = texts({ path: '/encode', body }, about);
  const read = execFileSync('sh', ['-c', `curl() { cat; }\n${curl}`]).toString();
  assert.deepEqual(JSON.parse(read), { ...body, outputs: ['cos'], format: 'npy' });
});

test('a token is named, never written', () => {
  const { curl, python: code } = texts({ path: '/encode', body: { scheme: 'rope' } }, { ...about, token: true });
  assert.match(curl, /-H "Authorization: Bearer \$TOKEN"/);
  assert.match(code, /os\.environ\["TOKEN"\]/);
  assert.doesNotMatch(texts({ path: '/encode', body: { scheme: 'rope' } }, about).python, /TOKEN|import os/);
});

test('a difference is computed in Python, in f64', () => {
  const [a, b] = [{ scheme: 'rope', dtype: 'bf16' }, { scheme: 'rope', base: 5e5 }].map((body) => ({ path: '/encode', body }));
  const { curl, python: code } = texts(b, { ...about, minus: a });
  assert.match(code, /x = b - a/);
  assert.equal(code.match(/"dtype": "f64"/g).length, 2);
  assert.match(curl, /"base": 500000/);
});

test('bf16, which NumPy does not have, is saved as safetensors', () => {
  const body = { scheme: 'rope', dtype: 'bf16' };
  assert.match(texts({ path: '/encode', body }, about).python, /"format": "raw"/);
});

function shellWords(command) {
  const program = `set -- ${command}\nfor word; do printf '%s\\0' "$word"; done`;
  return execFileSync('sh', ['-c', program]).toString().split('\0').slice(0, -1);
}
