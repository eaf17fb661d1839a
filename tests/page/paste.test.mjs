import { test } from 'node:test';
import assert from 'node:assert/strict';
import { recognise } from '../../server/page/forms/paste.js';
import { texts } from '../../server/page/copying/request.js';

const rope = { scheme: 'rope', len: 128 };
const is = (text, expected) => assert.deepEqual(recognise(text), expected, text);
const isUnknown = (text, why) => {
  const found = recognise(text);
  assert.equal(found.kind, 'unknown', text);
  assert.equal(String(found.why), `paste.why.${why}`, text);
};

test('links of this page, of any host', () => {
  const hash = '#view=table&a={"scheme":"rope","len":128}&cur=37,12';
  is(`http://localhost:8080/${hash}`, { kind: 'link', hash });
  is(`https://elsewhere.example/prefix/${hash}`, { kind: 'link', hash });
  is(` ${hash}\n`, { kind: 'link', hash });
  const escaped = '#a=%7B%22scheme%22%3A%22rope%22%7D';
  is(`http://host/${escaped}`, { kind: 'link', hash: escaped });
});

test('other addresses are no links', () => {
  isUnknown('https://example.com/page#section', 'nothing');
  isUnknown('https://example.com/', 'nothing');
  isUnknown('some words # view=table', 'nothing');
});

test('requests', () => {
  is('{"scheme":"rope","len":128}', { kind: 'request', config: rope });
  is('{"preset":"llama-3.1","positions":[0,1]}', { kind: 'request', config: { preset: 'llama-3.1', positions: [0, 1] } });
  is('{"len":4}', { kind: 'request', config: { len: 4 } });
  is('{"hf_config":{"model_type":"llama"},"len":4}', { kind: 'request', config: { hf_config: { model_type: 'llama' }, len: 4 } });
});

test('the keys of a GGUF file', () => {
  const gguf = { 'general.architecture': 'llama', 'llama.attention.key_length': 8 };
  is(JSON.stringify(gguf), { kind: 'gguf', config: { gguf, len: 128 } });
  is(JSON.stringify({ gguf, len: 4 }), { kind: 'request', config: { gguf, len: 4 } });
});

test('the form of an answer is not part of a configuration', () => {
  is('{"scheme":"rope","len":128,"outputs":["cos"],"format":"npy","slice":[0],"dtype":"f64"}',
    { kind: 'request', config: { ...rope, dtype: 'f64' } });
});

test('an answer and a preset have a configuration, but no sequence', () => {
  const answer = { scheme: 'rope', config: { scheme: 'rope', base: 10000 }, tensors: {} };
  is(JSON.stringify(answer), { kind: 'request', config: { scheme: 'rope', base: 10000, len: 128 } });
  is('{"name":"llama","config":{"scheme":"rope"}}', { kind: 'request', config: { scheme: 'rope', len: 128 } });
});

test('several configurations take the slots in turn', () => {
  is('{"configs":[{"scheme":"rope"},{"scheme":"alibi","len":9}],"len":4,"metrics":["unique"]}',
    { kind: 'link', state: { configs: { a: { scheme: 'rope', len: 4 }, b: { scheme: 'alibi', len: 9 } }, emptied: false } });
});

test('a config.json of a model', () => {
  const files = [{ model_type: 'llama', vocab_size: 3 }, { architectures: ['BertModel'] }, { rope_theta: 5, hidden_size: 64 }];
  for (const file of files) {
    is(JSON.stringify(file, null, 2), { kind: 'hf_config', config: { hf_config: file, len: 128 } });
  }
  isUnknown('{"hidden_size":64}', 'scheme');
  isUnknown('{"a":1}', 'scheme');
});

test('what is not JSON, and what is no object', () => {
  isUnknown('{"scheme":"rope"', 'json');
  isUnknown('{scheme: rope}', 'json');
  for (const text of ['', '[1,2]', '"rope"', '17', 'null', 'hello']) isUnknown(text, 'nothing');
});

test('addresses of a GET', () => {
  const expected = { kind: 'request', config: { scheme: 'rope', len: 8, positions: [0, 0.5], layout: 'half' }, path: '/encode' };
  is('http://localhost:8080/encode?scheme=rope&len=8&positions=0,0.5&layout=half&format=png&cmap=gray', expected);
  is('localhost:8080/encode?scheme=rope&len=8&positions=[0,0.5]&layout=half', expected);
  is('/encode?scheme=rope&len=8&positions=0,0.5&layout=half', expected);
  const nested = encodeURIComponent('{"type":"linear","factor":2}');
  assert.deepEqual(recognise(`/encode?scheme=rope&len=8&scaling=${nested}`).config.scaling, { type: 'linear', factor: 2 });
  assert.deepEqual(recognise('/encode?scheme=rope&tokens=the,dog').config.tokens, ['the', 'dog']);
  isUnknown('http://localhost:8080/schemes?lang=zh', 'nothing');
});

test('curl in every usual form', () => {
  const expected = { kind: 'curl', config: rope, path: '/encode' };
  const data = '{"scheme":"rope","len":128}';
  is(`curl -d '${data}' localhost:8080/encode`, expected);
  is(`$ curl -sSf -d'${data}' http://localhost:8080/encode -o x.npy`, expected);
  is(`curl --json '${data}' localhost:8080/encode`, expected);
  is(`curl -X POST "http://h:1/encode" -H 'Content-Type: application/json' --data-raw '${data}' --output x.npy`, expected);
  is(`curl --data-binary '${data}' --max-time 3 --url localhost:8080/encode`, expected);
  is(`curl -d "{\\"scheme\\":\\"rope\\",\\"len\\":128}" localhost:8080/encode`, expected);
  is(`curl -f http://localhost:8080/encode \\\n  -d '${data}' \\\n  -o rope-cos.npy`, expected);
  is(`curl -f http://localhost:8080/encode \\\r\n  -d '${data}'`, expected);
  is(`curl -F request='${data}' -F q=@q.npy localhost:8080/encode -o out.npz`, expected);
  is(`curl -d ${'{\\"scheme\\":\\"rope\\",\\"len\\":128}'} localhost:8080/encode`, expected);
  is(`curl -d $'{"scheme":"rope",\\n"len":128}' localhost:8080/encode`, expected);
  is(`curl -d '{"scheme":"rope",' -d '"len":128}' localhost:8080/encode`.replace("' -d '", ''), expected);
  is(`curl -d '${data}' localhost:8080/encode | python3 -m json.tool`, expected);
  is(`curl -d '${data}' localhost:8080/encode > file`, { ...expected });
});

test('curl with a query', () => {
  const expected = { kind: 'curl', config: rope, path: '/encode' };
  is("curl 'localhost:8080/encode?scheme=rope&len=128&format=npy' -o table.npy", expected);
  is('curl -G localhost:8080/encode -d scheme=rope -d len=128', expected);
  is('curl --get localhost:8080/encode --data-urlencode scheme=rope -d "len=128"', expected);
  is(`curl 'localhost:8080/encode?len=128' -d '{"scheme":"rope"}'`, { ...expected, config: { len: 128, scheme: 'rope' } });
});

test('a heredoc', () => {
  is(`curl -f h:1/encode \\\n  --data-binary @- \\\n  -o x.npy <<'REQUEST'\n{"scheme":"rope","len":128}\nREQUEST`,
    { kind: 'curl', config: rope, path: '/encode' });
});

test('other endpoints', () => {
  assert.equal(recognise(`curl -d '{"scheme":"alibi","tokens":["a","b"]}' localhost:8080/attention`).path, '/attention');
  assert.equal(recognise(`curl -d '{"scheme":"rope","q":[[1,0]]}' localhost:8080/rotate`).path, '/rotate');
  const several = recognise(`curl -d '{"configs":[{"scheme":"rope"},{"scheme":"xpos"}],"len":9}' localhost:8080/analyze`);
  assert.deepEqual(Object.keys(several.state.configs), ['a', 'b']);
});

test('why a command is not recognised', () => {
  isUnknown("curl -d '{\"scheme\":\"rope\"} localhost:8080/encode", 'quote');
  isUnknown('curl -d @request.json localhost:8080/encode', 'file');
  isUnknown('curl -F request=@request.json localhost:8080/encode', 'file');
  isUnknown('curl localhost:8080/schemes', 'path');
  isUnknown('curl localhost:8080/encode', 'nothing');
  isUnknown(`curl -d '{"seed":1}' localhost:8080/encode`, 'scheme');
});

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

test('a request in another program', () => {
  is(`requests.post("http://localhost:8080/attention", json={'scheme': 'alibi', 'causal': True, 'tokens': ["it's"],})`,
    { kind: 'request', config: { scheme: 'alibi', causal: true, tokens: ["it's"] }, path: '/attention' });
  is(`fetch('/encode', { method: 'POST', body: JSON.stringify({"scheme":"rope","len":128}) })`,
    { kind: 'request', config: rope, path: '/encode' });
});
