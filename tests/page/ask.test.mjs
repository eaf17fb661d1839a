/* Asking: raw answers, number texts, addresses, sharing, the cache, and the order in which a figure asks. */
import assert from 'node:assert';
import { mock, test } from 'node:test';
import { readRaw } from '../../server/page/asking/answers.js';
import { busy } from '../../server/page/ask.js';
import { Asker } from '../../server/page/asking/asker.js';
import { Away, Client, Refusal, bodyOf, queryOf } from '../../server/page/asking/client.js';

/* ---- answers ---- */

test('tensors of each dtype, aligned or not', () => {
  const bytes = new DataView(new ArrayBuffer(40));
  bytes.setFloat32(0, 0.1, true);
  bytes.setFloat64(4, -2.5, true);
  bytes.setBigInt64(12, -3n, true);
  bytes.setInt32(20, -4, true);
  bytes.setUint16(24, 0x3fc0, true);
  bytes.setUint16(26, 0xc100, true);
  const header = 'a;dtype="f32";shape="1";offset=0, b;dtype="f64";shape="1,1";offset=4, c;dtype="i64";shape="1";offset=12, '
    + 'd;dtype="i32";shape="";offset=20, e;dtype="bf16";shape="1";offset=24, f;dtype="f16";shape="1";offset=26';
  const values = readRaw(bytes.buffer, header).map((tensor) => [...tensor.values]);
  assert.deepEqual(values, [[Math.fround(0.1)], [-2.5], [-3n], [-4], [1.5], [-2.5]]);
  assert.throws(() => readRaw(bytes.buffer, 'a;dtype="f64";shape="6";offset=0'), RangeError);
});

test('every f16 widens to its value', () => {
  const halves = Uint16Array.from({ length: 65536 }, (_, i) => i);
  const [{ values }] = readRaw(halves.buffer, 'x;dtype="f16";shape="65536";offset=0');
  for (let i = 0; i < 65536; i++) {
    const exponent = i >> 10 & 31;
    const size = exponent === 31 ? (i & 1023 ? NaN : Infinity)
      : exponent ? (1 + (i & 1023) / 1024) * 2 ** (exponent - 15) : (i & 1023) * 2 ** -24;
    const isSame = Object.is(values[i], i >> 15 ? -size : size) || (Number.isNaN(size) && Number.isNaN(values[i]));
    assert.ok(isSame, `half ${i}: ${values[i]}`);
  }
});

test('every f8 widens to its value', () => {
  const types = { f8_e4m3: [3, 4, false], f8_e5m2: [2, 5, true] };   /* bits of fraction and exponent, infinities */
  for (const [dtype, [fraction, exponent, infinite]] of Object.entries(types)) {
    const codes = Uint8Array.from({ length: 256 }, (_, i) => i);
    const [{ values }] = readRaw(codes.buffer, `x;dtype="${dtype}";shape="256";offset=0`);
    const parts = 2 ** fraction;
    const last = infinite ? (2 ** exponent - 1) * parts : 127;   /* its code is infinity, or NaN */
    for (let i = 0; i < 256; i++) {
      const code = i % 128;
      const field = Math.floor(code / parts);
      const finite = ((field ? parts : 0) + code % parts) * 2 ** (Math.max(field, 1) - 2 ** (exponent - 1) + 1 - fraction);
      const size = code < last ? finite : infinite && code === last ? Infinity : NaN;
      assert.ok(Object.is(values[i], i > 127 && !Number.isNaN(size) ? -size : size), `${dtype} ${i}: ${values[i]}`);
    }
  }
});

/* ---- requests ---- */

function answerOf(body, { status = 200, headers = {} } = {}) {
  return new Response(body, { status, headers: { 'Content-Length': String(body.length), ...headers } });
}

/* A client whose fetch is `serve`, and the calls it made. */
function clientOf(serve, options) {
  const calls = [];
  const fetch = async (url, init) => {
    calls.push({ url, ...init });
    return serve(url, init);
  };
  const busy = { begin() {}, end() {} };
  return { calls, client: new Client({ fetch, origin: 'http://localhost', bearer: () => '', busy, ...options }) };
}

test('a query reads back', () => {
  const body = { scheme: 'rope', len: 8, outputs: ['cos', 'sin'], scaling: { type: 'yarn' }, data: false };
  assert.deepEqual(bodyOf(new URLSearchParams(queryOf(body))), body);
});

test('GET while the whole address is under 4 KiB, else POST', () => {
  const { client } = clientOf(() => {});
  const body = (count) => ({ scheme: 'rope', name: 'x'.repeat(count) });
  const spare = 4095 - 'http://localhost/encode?scheme=rope&name='.length;
  assert.equal(client.write({ path: '/encode', body: body(spare) }).method, 'GET');
  assert.equal(client.write({ path: '/encode', body: body(spare + 1) }).method, 'POST');
  assert.equal(client.write({ path: '/attention', body: body(1) }).method, 'POST');
  for (const text of ['4', 'true', 'cos,sin', '']) {   /* texts that a query would make something else */
    assert.equal(client.write({ path: '/encode', body: { scheme: 'rope', len: text } }).method, 'POST', text);
  }
  client.learn({ '/attention': ['GET', 'POST'], '/encode': ['POST'] });
  assert.equal(client.write({ path: '/attention', body: body(1) }).method, 'GET');
});

test('equal asks share one fetch, then the cache', async () => {
  const { client, calls } = clientOf(() => answerOf('{"n":1}'));
  const request = { path: '/encode', body: { scheme: 'rope' } };
  const [one, other] = await Promise.all([client.ask(request), client.ask(request)]);
  assert.equal(one, other);
  assert.equal(await client.ask(request), one);
  assert.equal(calls.length, 1);
  await client.ask(request, { cached: false });
  assert.equal(calls.length, 2);
  client.forget();
  await client.ask(request);
  assert.equal(calls.length, 3);
});

test('one of two that share may leave; the last one ends the fetch', async () => {
  const aborted = [];
  const { client, calls } = clientOf((url, { signal }) => new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => {
      aborted.push(url);
      reject(signal.reason);
    });
  }));
  const [first, second] = [new AbortController(), new AbortController()];
  const request = { path: '/encode', body: { scheme: 'rope' } };
  const asks = [first, second].map(({ signal }) => client.ask(request, { signal }));
  first.abort();
  await assert.rejects(asks[0], { name: 'AbortError' });
  assert.equal(aborted.length, 0);
  second.abort();
  await assert.rejects(asks[1], { name: 'AbortError' });
  assert.equal(aborted.length, 1);
  const third = new AbortController();
  const again = client.ask(request, { signal: third.signal });
  assert.equal(calls.length, 2, 'an ended fetch is not shared');
  third.abort();
  await assert.rejects(again, { name: 'AbortError' });
});

test('what was under way when all was forgotten is neither shared nor kept', async () => {
  const resolvers = [];
  const { client, calls } = clientOf(() => new Promise((resolve) => resolvers.push(resolve)));
  const request = { path: '/encode', body: { scheme: 'rope' } };
  const before = client.ask(request);
  client.forget();
  const after = client.ask(request);
  resolvers[0](answerOf('"before"'));
  assert.equal(await before, 'before');
  resolvers[1](answerOf('"after"'));
  assert.equal(await after, 'after');
  assert.equal(await client.ask(request), 'after');
  assert.equal(calls.length, 2);
});

test('the cache keeps 64 answers and 32 MiB', async () => {
  const { client, calls } = clientOf(() => answerOf('{}'));
  const request = (len) => ({ path: '/encode', body: { scheme: 'rope', len } });
  for (let len = 1; len <= 65; len++) await client.ask(request(len));
  await client.ask(request(65));
  assert.equal(calls.length, 65);
  await client.ask(request(1));
  assert.equal(calls.length, 66, 'the oldest was dropped');
  const large = clientOf(() => answerOf(new Uint8Array(7 * 2 ** 20)));
  for (let len = 1; len <= 5; len++) await large.client.ask(request(len), { as: 'bytes' });
  await large.client.ask(request(5), { as: 'bytes' });
  assert.equal(large.calls.length, 5);
  await large.client.ask(request(1), { as: 'bytes' });
  assert.equal(large.calls.length, 6);
});

test('what its server wants asked anew is not kept', async () => {
  const { client, calls } = clientOf(() => answerOf('{}', { headers: { 'Cache-Control': 'private, no-cache' } }));
  await client.ask({ path: '/encode', body: { scheme: 'rope' } });
  await client.ask({ path: '/encode', body: { scheme: 'rope' } });
  assert.equal(calls.length, 2);
});

test('refusals, a server that is away, a token', async () => {
  const busy = () => answerOf('{"detail":"too much","pointer":"/len"}', { status: 429, headers: { 'Retry-After': '3' } });
  const refusing = clientOf(busy, { bearer: () => 'secret' });
  const refusal = await refusing.client.ask('/encode').catch((error) => error);
  assert.ok(refusal instanceof Refusal);
  assert.deepEqual([refusal.status, refusal.problem.pointer, refusal.retryAfter, refusal.message], [429, '/len', 3, 'too much']);
  assert.equal(refusing.calls[0].headers.Authorization, 'Bearer secret');
  const away = clientOf(() => { throw new TypeError('failed to fetch'); });
  await assert.rejects(away.client.ask('/encode'), (error) => error instanceof Away && error.message.endsWith('gives no whole answer: failed to fetch'));
  const proxy = clientOf(() => answerOf('<h1>Bad gateway</h1>', { status: 502 }));
  await assert.rejects(proxy.client.ask('/encode'), (error) => error instanceof Away && error.message.endsWith('gives no whole answer: HTTP status 502'));
});

test('a refusal is asked for in Chinese at once, but where the answer would have both languages', async () => {
  const { client, calls } = clientOf(() => answerOf('{"detail":"x"}', { status: 422 }), { language: () => 'zh' });
  for (const [path, metrics, languages] of [
    ['/encode', undefined, ['zh']], ['/attention', undefined, ['zh']], ['/experiments', undefined, ['zh']], ['/analyze', ['similarity'], ['zh']],
    ['/analyze', ['properties', 'unique'], ['en', 'zh']], ['/diagnose', undefined, ['en', 'zh']],
  ]) {
    calls.length = 0;
    await assert.rejects(client.ask({ path, body: { scheme: 'rope', ...metrics && { metrics } } }), Refusal);
    assert.deepEqual(calls.map(({ headers }) => headers['Accept-Language']), languages, `${path} ${metrics}`);
  }
});

test('progress counts bytes of how many', async () => {
  const body = new ReadableStream({
    start(stream) {
      for (const piece of [[1, 2], [3, 4, 5]]) stream.enqueue(Uint8Array.from(piece));
      stream.close();
    },
  });
  const { client } = clientOf(() => new Response(body, { headers: { 'Content-Length': '5' } }));
  const seen = [];
  const bytes = await client.ask('/x', { as: 'bytes', onProgress: (...all) => seen.push(all) });
  assert.deepEqual([...bytes], [1, 2, 3, 4, 5]);
  assert.deepEqual(seen, [[0, 5], [2, 5], [5, 5]]);
});

test('an answer is heard piece by piece, headers and another way to send are the request\'s own', async () => {
  const body = () => new ReadableStream({ start(out) { out.enqueue(new Uint8Array([1, 2])); out.enqueue(new Uint8Array([3])); out.close(); } });
  const { client } = clientOf(() => new Response('{"detail":"full"}', { status: 422 }));
  const pieces = [];
  const sent = [];
  const send = async (url, { method, headers }) => {
    sent.push([method, url, headers]);
    return new Response(body());
  };
  const request = { path: '/x', method: 'PUT', body: new Uint8Array(1), headers: { 'If-None-Match': '*' } };
  const onPiece = (piece) => pieces.push([...piece]);
  await client.ask(request, { as: 'bytes', onPiece, send });
  assert.deepEqual(pieces, [[1, 2], [3]]);
  assert.equal(sent[0][0], 'PUT');
  assert.equal(sent[0][2]['If-None-Match'], '*');
  await assert.rejects(client.ask(request, { as: 'bytes', onPiece }), { status: 422 });
  assert.equal(pieces.length, 2);   /* a refusal is no answer */
});

test('busy returns to zero, whatever happens', async () => {
  let count = 0;
  const counter = { begin() { count += 1; }, end() { count -= 1; } };
  const { client } = clientOf(() => answerOf('no', { status: 500 }), { busy: counter });
  await client.ask('/x').catch(() => {});
  await client.ask('/x', { signal: AbortSignal.abort() }).catch(() => {});
  assert.equal(count, 0);
  busy.begin();
  busy.end();
});

/* ---- the order of asking ---- */

/* Lets promises settle without letting time pass. */
async function settle() {
  for (let i = 0; i < 20; i++) await null;
}

async function pass(ms) {
  for (let i = 0; i < ms; i++) {
    mock.timers.tick(1);
    await settle();
  }
}

/* A server on mocked time that answers after `delay` ms with what it was asked. */
function serverOf(delay) {
  const log = { started: [], aborted: [] };
  const get = (value, { signal }) => new Promise((resolve, reject) => {
    log.started.push(value);
    const timer = setTimeout(() => resolve(value), delay);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      log.aborted.push(value);
      reject(signal.reason);
    });
  });
  return { get, log };
}

test('a slider moved 60 times a second, answers of 100 ms', async (context) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  context.after(() => mock.timers.reset());
  const { get, log } = serverOf(100);
  const asker = new Asker({ get });
  const pictures = [];
  let now = 0;
  for (let value = 0; value < 180; value++) {
    asker.ask(async (ask) => pictures.push([await ask(value), now]));
    const step = value % 3 === 2 ? 18 : 16;   /* 50 ms for three */
    await pass(step);
    now += step;
  }
  assert.ok(log.started.length <= 45, `${log.started.length} requests in 3 s`);
  assert.deepEqual(log.aborted, []);
  const gaps = pictures.map(([, at], i) => at - (pictures[i - 1]?.[1] ?? 0));
  assert.ok(pictures.length >= 25 && Math.max(...gaps) <= 150, `gaps ${gaps}`);
  await pass(250);
  assert.equal(pictures.at(-1)[0], 179);
});

test('what is overtaken for a second is aborted', async (context) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  context.after(() => mock.timers.reset());
  const { get, log } = serverOf(60000);
  const asker = new Asker({ get });
  const first = asker.ask((ask) => ask('first'));
  await pass(5000);
  assert.deepEqual(log.aborted, [], 'nothing newer: it may take its time');
  const second = asker.ask((ask) => ask('second'));
  await pass(600);
  asker.ask((ask) => ask('third'));
  assert.equal(await second, false, 'dropped by the third');
  await pass(399);
  assert.deepEqual(log.aborted, []);
  await pass(2);
  assert.deepEqual(log.aborted, ['first'], 'the second counts from the first overtaker');
  assert.equal(await first, false);
  assert.deepEqual(log.started, ['first', 'third']);
  asker.close();
  assert.deepEqual(log.aborted, ['first', 'third']);
  assert.equal(await asker.ask((ask) => ask('late')), false);
});

test('a job knows that a newer one waits, and errors reach who asked', async () => {
  const asker = new Asker({ get: async (value) => value });
  const seen = [];
  const first = asker.ask(async (ask, stage) => {
    seen.push(stage.over());
    await ask(1);
    seen.push(stage.over());
  });
  const second = asker.ask(async () => { throw new Error('broken'); });
  assert.equal(await first, true);
  await assert.rejects(second, /broken/);
  assert.deepEqual(seen, [false, true]);
  assert.equal(await asker.ask(async () => {}), true, 'the next job runs');
});
