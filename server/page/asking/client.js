/* Requests and their answers: GET or POST, what is shared and kept, how it fails. Touches no document: ask.js gives it
 * the page's counter and token, tests a fetch of their own. */
import { readNumbers, readRaw } from './answers.js';

const ADDRESS_MAX = 4096;         /* proxies and logs cut longer ones */
const CACHE_ANSWERS = 64;
const CACHE_BYTES = 32 * 2 ** 20;
const RETRY_AFTER_MAX = 3600;     /* seconds */
const TIMER_MAX_MS = 2 ** 31 - 1; /* a longer setTimeout ends at once */
const WHOLE_BYTES = 16384;        /* that the service sends at once: nothing is computed between them */
const WHOLE_SILENCE = 4;          /* seconds: three retransmissions of TCP fit */

/* An answer of 400 and above, or one that is none of this service: a login page, a proxy that drops headers. */
export class Refusal extends Error {
  constructor(status, problem, retryAfter) {
    super(problem.detail || problem.title || String(status));
    Object.assign(this, { name: 'Refusal', status, problem, retryAfter });
  }
}

/* No answer, or one that broke off, of the service at this address. fetch hides the reason behind its own error. */
export class Away extends Error {
  constructor(cause, address) {
    super(`${address} gives no whole answer: ${cause.cause?.message || cause.cause?.code || cause.message}`, { cause });
    this.name = 'Away';
  }
}

/* These answers have sentences that the page shows in both languages, the English one first whatever the page's
 * language, which may change meanwhile. A refusal has one text: there it is asked for once more in the page's
 * language. All others are asked for in that language at once. */
const PAIRED = /^\/(?:diagnose|presets|schemes)(?![^?/])/;
const isMeasured = ({ url, body }) => /^\/analyze(?![^?/])/.test(url) && `${url} ${body}`.includes('properties');
const isPaired = (call) => (call.method === 'GET' || call.method === 'POST')
  && (PAIRED.test(call.url) || isMeasured(call));
const WRONG = [400, 401, 403, 404, 406, 413, 415, 422];

/* ---- requests ---- */

const isPlain = (body) => body !== undefined && body !== null && Object.getPrototypeOf(body) === Object.prototype;

/* In a query "4" is a number and "a,b" a list: only POST can say that they are texts. */
function isAmbiguous(value) {
  if (typeof value !== 'string') return false;
  try {
    return typeof JSON.parse(value) !== 'string';
  } catch {
    return value === '' || value.includes(',');
  }
}

/* The query of a GET with this body (API §2). */
export function queryOf(body) {
  const textOf = (value) => typeof value === 'string' ? value : JSON.stringify(value);
  return Object.entries(body).filter(([, value]) => value !== null && value !== undefined)
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(textOf(value))}`)
    .join('&');
}

/* The same the other way: text as it stands, numbers and booleans as JSON, flat lists with commas. */
export function bodyOf(query) {
  return Object.fromEntries(Array.from(query, ([name, text]) => [name, valueOf(text)]));
}

function valueOf(text) {
  for (const json of [text, `[${text}]`]) {
    try { return JSON.parse(json); } catch { /* not this way */ }
  }
  return text.includes(',') ? text.split(',').map((part) => part.trim()) : text;
}

export class Client {
  #cache = new Map();      /* key: { value, bytes }, oldest first */
  #cacheBytes = 0;
  #fetches = new Map();    /* key: SharedFetch */
  #age = 0;                /* counts what was forgotten */
  #gettable = new Set(['/encode', '/analyze']);

  /* origin: of the page; bearer(): the token or ''; language(): of refusals, '' is the browser's; busy: { begin, end }
   * counts what is asked; silence: seconds without a byte after which an answer is given up; where tensors are sent,
   * from its first byte on. */
  constructor({ fetch = (...all) => globalThis.fetch(...all), origin, bearer, busy, language = () => '',
    silence = Infinity }) {
    Object.assign(this, { fetch, origin, bearer, busy, language, silence });
  }

  /* What /limits says of the routes: a path with GET and POST takes its request either way. */
  learn(routes) {
    const both = Object.entries(routes).filter(([, methods]) => methods.includes('GET') && methods.includes('POST'));
    this.#gettable = new Set(both.map(([path]) => path));
  }

  /* Another token, or other stored weights: nothing of before answers what is asked from now on. */
  forget() {
    this.#cache.clear();
    this.#cacheBytes = 0;
    this.#fetches.clear();
    this.#age += 1;
  }

  /* { method, url, body } for fetch. */
  write({ path, body, method, type, headers }) {
    if (!isPlain(body)) return { method: method ?? (body ? 'POST' : 'GET'), url: path, body, type, headers };
    const json = { url: path, body: JSON.stringify(body), type: 'application/json' };
    if (method && method !== 'GET') return { method, ...json };
    const url = this.address(path, body);
    return url ? { method: 'GET', url } : { method: 'POST', ...json };
  }

  /* The address of a GET; null where it would be too long or the path takes none. */
  address(path, body) {
    if (!this.#gettable.has(path) || Object.values(body).some(isAmbiguous)) return null;
    const url = `${path}?${queryOf(body)}`;
    return this.origin.length + url.length < ADDRESS_MAX ? url : null;
  }

  /* Asks; request { path, body, method, type, headers } or only a path. `as` names one of READERS; onPiece(bytes)
   * is given what comes, as it comes, of an answer that is not shared; send stands in place of fetch. */
  async ask(request, { as = 'json', signal, onProgress, cached, tokened = true, onPiece, send } = {}) {
    const { path, body, ...rest } = typeof request === 'string' ? { path: request } : request;
    const format = FORMATS[as];
    const full = isPlain(body) && format && !body.format ? { ...body, format } : body;
    const call = {
      ...this.write({ path, body: full, ...rest }), headers: rest.headers, token: tokened ? this.bearer() : '', onPiece,
      send,
    };
    const keep = cached ?? isPlain(body);
    this.busy.begin();
    try {
      signal?.throwIfAborted();
      return keep
        ? await this.#shared(call, as, signal, onProgress)
        : (await this.#fetch(call, as, signal, onProgress)).value;
    } finally {
      this.busy.end();
    }
  }

  async #shared(call, as, signal, onProgress) {
    const key = `${as} ${call.method} ${call.url} ${call.body ?? ''}`;
    const known = this.#cache.get(key);
    if (known) {
      this.#cache.delete(key);
      this.#cache.set(key, known);
      return known.value;
    }
    let shared = this.#fetches.get(key);
    if (!shared) {
      shared = new SharedFetch((stop, progress) => this.#fetch(call, as, stop, progress), () => {
        if (this.#fetches.get(key) === shared) this.#fetches.delete(key);
      });
      this.#fetches.set(key, shared);
      const age = this.#age;
      shared.answer.then((answer) => age === this.#age && this.#remember(key, answer), () => {});
    }
    return (await shared.join(signal, onProgress)).value;
  }

  #remember(key, { value, bytes, keep }) {
    if (!keep || bytes > CACHE_BYTES / 4) return;
    this.#cache.set(key, { value, bytes });
    this.#cacheBytes += bytes;
    for (const [oldest, entry] of this.#cache) {
      if (this.#cache.size <= CACHE_ANSWERS && this.#cacheBytes <= CACHE_BYTES) break;
      this.#cache.delete(oldest);
      this.#cacheBytes -= entry.bytes;
    }
  }

  async #fetch(call, as, signal, onProgress, words) {
    const { method, url, body, type, headers: more, token: bearer, onPiece, send = this.fetch } = call;
    const headers = { ...more };
    if (type) headers['Content-Type'] = type;
    const language = this.language();
    if (language) headers['Accept-Language'] = words ?? (isPaired(call) ? 'en' : language);
    if (bearer) headers.Authorization = `Bearer ${bearer}`;
    const { answer, buffer } = await reach(this.origin, signal, this.silence, async (stop, heard) => {
      if (!body || typeof body === 'string') heard?.();   /* fetch does not tell how much of a longer one is sent */
      const got = await send(url, { method, headers, body, signal: stop });
      heard?.();
      return { answer: got, buffer: await readBody(got, onProgress, got.ok ? onPiece : undefined, heard) };
    });
    if (WRONG.includes(answer.status) && isPaired(call) && !words && language === 'zh') {
      return this.#fetch(call, as, signal, onProgress, language);
    }
    if (answer.status >= 400) throw refusalOf(answer, buffer, this.origin);
    const isPure = method === 'GET' || method === 'POST';
    if (!isPure) this.forget();   /* stored weights have changed */
    if (isPure && answer.status !== 200) throw foreign(answer, 'not with 200');
    const value = read(as, buffer, answer);
    if (url === '/limits') this.learn(value.routes);
    return {
      value, bytes: buffer.byteLength, keep: !/no-cache|no-store/.test(answer.headers.get('Cache-Control') ?? ''),
    };
  }
}

/* Runs what fetches: a network that fails or is silent is Away, an abort stays one. */
async function reach(origin, signal, silence, fetching) {
  const watch = silence < Infinity ? watchSilence(signal, silence) : { signal, end() {} };
  try {
    return await fetching(watch.signal, watch.heard);
  } catch (error) {
    signal?.throwIfAborted();
    throw new Away(error, origin);
  } finally {
    watch.end();
  }
}

/* A signal that aborts as `signal` does, or when heard() was called and then not again for so many seconds; fewer where
 * the rest of a body, in bytes, is on its way as a whole. */
function watchSilence(signal, seconds) {
  const controller = new AbortController();
  const follow = () => controller.abort(signal.reason);
  let timer;
  const heard = (rest) => {
    clearTimeout(timer);
    const patience = rest <= WHOLE_BYTES ? Math.min(WHOLE_SILENCE, seconds) : seconds;
    timer = setTimeout(() => controller.abort(new Error(`no byte for ${patience} s`)),
      Math.min(1000 * patience, TIMER_MAX_MS));
  };
  if (signal?.aborted) follow();
  signal?.addEventListener('abort', follow);
  return {
    signal: controller.signal, heard, end() { clearTimeout(timer); signal?.removeEventListener('abort', follow); },
  };
}

/* The value of an answer of 200. */
function read(as, buffer, answer) {
  try {
    return READERS[as](buffer, answer.headers);
  } catch (error) {
    throw foreign(answer, error.message);
  }
}

function foreign(answer, why) {
  const type = answer.headers.get('Content-Type');
  return new Refusal(answer.status, {
    title: 'No answer of posenc',
    detail: `an answer with status ${answer.status} that is none of posenc (${type}): ${why}`,
  }, 1);
}

/* The whole body; onProgress(received, total), total null where the answer is chunked; heard(rest) at each piece. */
async function readBody(answer, onProgress, onPiece, heard) {
  const isPacked = answer.headers.get('Content-Encoding');   /* its length is not that of what comes out of it */
  const length = isPacked ? null : answer.headers.get('Content-Length');
  if (!(onProgress || onPiece || heard) || !answer.body) return answer.arrayBuffer();
  const total = length === null ? null : Number(length);
  const pieces = [];
  let received = 0;
  onProgress?.(received, total);
  for (const reader = answer.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    received += value.byteLength;
    heard?.(total === null ? undefined : total - received);
    onProgress?.(received, total);
    onPiece?.(value);
  }
  return join(pieces, received);
}

function join(pieces, length) {
  if (pieces.length === 1 && pieces[0].buffer.byteLength === length) return pieces[0].buffer;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.byteLength;
  }
  return whole.buffer;
}

function refusalOf(answer, buffer, origin) {
  const text = new TextDecoder().decode(buffer);
  const wait = Number(answer.headers.get('Retry-After'));
  let problem = { status: answer.status, title: answer.statusText, detail: text.slice(0, 400) };
  try {
    problem = { ...problem, ...JSON.parse(text) };
  } catch {
    /* A proxy without its server. */
    if (answer.status === 502 || answer.status === 504) {
      return new Away(new Error(`HTTP status ${answer.status}`), origin);
    }
  }
  return new Refusal(answer.status, problem,
    Number.isFinite(wait) && wait > 0 ? Math.min(Math.ceil(wait), RETRY_AFTER_MAX) : 1);
}

/* One fetch for all that ask the same: each may give up, and the last to do so ends it. */
class SharedFetch {
  #controller = new AbortController();
  #listeners = new Set();
  #nWaiting = 0;

  constructor(fetching, over) {
    this.over = over;
    this.answer = fetching(this.#controller.signal,
      (...progress) => this.#listeners.forEach((tell) => tell(...progress)));
    this.answer.then(over, over);
  }

  join(signal, onProgress) {
    this.#nWaiting += 1;
    if (onProgress) this.#listeners.add(onProgress);
    if (!signal) return this.answer;
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#listeners.delete(onProgress);
        this.#nWaiting -= 1;
        if (!this.#nWaiting) this.#abort();
        reject(signal.reason);
      };
      signal.addEventListener('abort', leave, { once: true });
      this.answer.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
    });
  }

  /* No request may join a fetch that is being ended. */
  #abort() {
    this.over();
    this.#controller.abort();
  }
}

/* What `as` asks for and gives. Values are shared between all that asked: read them, never write. */
const FORMATS = { raw: 'raw', json: 'json', numbers: 'json' };
const READERS = {
  raw: (buffer, headers) => ({ tensors: readRaw(buffer, tensorsOf(headers)), headers }),
  json: (buffer) => JSON.parse(decode(buffer)),
  numbers: (buffer) => readNumbers(decode(buffer)),
  text: decode,
  bytes: (buffer) => new Uint8Array(buffer),
};

function tensorsOf(headers) {
  const list = headers.get('Posenc-Tensors');
  if (!list) throw new SyntaxError('it has no header Posenc-Tensors');
  return list;
}

function decode(buffer) {
  return new TextDecoder().decode(buffer);
}
