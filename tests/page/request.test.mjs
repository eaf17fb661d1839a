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

test('a body too long for one argument goes through a here-document', () => {
  const body = { scheme: 'rope', note: "it's ".repeat(20000) };
  const { curl } = texts({ path: '/encode', body }, about);
  const read = execFileSync('sh', ['-c', `curl() { cat; }\n${curl}`]).toString();
  assert.deepEqual(JSON.parse(read), { ...body, outputs: ['cos'], format: 'npy' });
});
