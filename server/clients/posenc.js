/* ---- the service ---- */

const DTYPES = { F64: Float64Array, F32: Float32Array, I64: BigInt64Array, I32: Int32Array, I16: Int16Array, I8: Int8Array, U8: Uint8Array };

/* Ends early, with its reason, when the signal aborts. */
const pause = (seconds, signal) => new Promise((over, fail) => {
  const stop = () => { clearTimeout(timer); fail(signal.reason); };
  const timer = setTimeout(() => { signal?.removeEventListener('abort', stop); over(); }, 1000 * seconds);
  signal?.addEventListener('abort', stop, { once: true });
});

/* Where this file came from: its service. */
const here = () => /^https?:/.test(import.meta.url) ? import.meta.url.replace(/\/clients\/[^/]*$/, '') : 'http://localhost:8080';

/* { dtype, shape, data } with a typed array, or a typed array alone: a tensor of one axis. */
const isTensor = (value) => ArrayBuffer.isView(value) || ArrayBuffer.isView(value?.data);

/* A safetensors file of these tensors, with the request in it. */
function packed(tensors, fields) {
  const head = { __metadata__: { request: JSON.stringify(fields) } };
  const pieces = [];
  let at = 0;
  for (const [name, value] of Object.entries(tensors)) {
    const { data, shape = [data.length] } = ArrayBuffer.isView(value) ? { data: value } : value;
    const [dtype] = Object.entries(DTYPES).find(([, type]) => data instanceof type) ?? [];
    if (!dtype) throw new TypeError(`${name}: a ${data.constructor.name} cannot be sent`);
    head[name] = { dtype, shape, data_offsets: [at, at + data.byteLength] };
    at += data.byteLength;
    pieces.push(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  }
  const text = new TextEncoder().encode(JSON.stringify(head));
  const size = new Uint8Array(8);
  new DataView(size.buffer).setBigUint64(0, BigInt(text.length), true);
  return new Blob([size, text, ...pieces]);
}

/* A diagnosis in words: its findings, and the mistakes that the tensors could not have shown. */
const inWords = ({ findings, unseen = [] }) => [
  ...findings.map(({ detail }) => detail),
  ...unseen.length ? [`These mistakes would not show in these tensors: ${unseen.join(', ')}.`] : [],
].join('\n');

/* A translation in words: a line for each target, exact or what it loses, and below it what to paste. */
const asTable = ({ targets, detail }) => [
  ...targets.flatMap(({ to, text, layer_type: kind, exact, loses }) => [
    `${to}${kind ? ` (${kind})` : ''}: ${exact ? 'exact' : loses.map((loss) => loss.detail).join(' ')}`,
    ...text === null ? [] : text.split('\n').map((line) => `    ${line}`),
  ]),
  detail,
].join('\n');

/* localhost:8080 as http://localhost:8080; a path of the page's own server begins with / or a dot. */
const complete = (url) => (/^([/.]|$)|:\/\//.test(url) ? url : `http://${url}`).replace(/\/$/, '');

/* url: of the service, else the one that this file came from; token: sent to it only; retries: how often a busy or restarting
 * service (429, 503) is asked again, after as long as it says, patience at most seconds in all; timeout: seconds without a byte of
 * an answer (of one to tensors, once it has begun; at most 4 where its last 16 KiB are missing); fetch: another one, with certificates of one's own. */
export class Posenc {
  #client;

  constructor(url = here(), { token = '', retries = 5, patience = 60, timeout = 300, fetch = (...all) => globalThis.fetch(...all) } = {}) {
    Object.assign(this, { url: complete(url), retries, patience });
    const busy = { begin() {}, end() {} };
    this.#client = new Client({ fetch: (path, options) => fetch(this.url + path, options), origin: this.url, bearer: () => token, busy, silence: timeout });
  }

  /* { name: { dtype, shape, data } }; options: { signal, onProgress(received, total) }. */
  encode(request, options) { return this.#tensors('/encode', request, options); }
  rotate(request, options) { return this.#tensors('/rotate', request, options); }
  attention(request, options) { return this.#tensors('/attention', request, options); }

  /* Objects, as the service's JSON; String(diagnosis) is in words. */
  analyze(request, options) { return this.#ask('/analyze', request, 'json', options); }
  async diagnose(request, options) {
    const diagnosis = await this.#ask('/diagnose', request, 'json', options);
    return Object.defineProperty(diagnosis, 'toString', { value: () => inWords(diagnosis) });
  }

  explain(request, options) { return this.#ask('/explain', request, 'json', options); }
  /* to: a target, a list of them, or 'all'; String(translation) is a table. */
  async translate(request, to = 'all', options) {
    const translation = await this.#ask('/translate', { ...request, to }, 'json', options);
    return Object.defineProperty(translation, 'toString', { value: () => asTable(translation) });
  }

  schemes(name) { return this.#again(() => this.#client.ask(name ? `/schemes/${encodeURIComponent(name)}` : '/schemes')); }
  presets(name) { return this.#again(() => this.#client.ask(name ? `/presets/${encodeURIComponent(name)}` : '/presets')); }

  /* The first tensor of an /encode as png: bytes. */
  picture(request, options) { return this.#ask('/encode', { ...request, format: 'png' }, 'bytes', options); }

  /* Throws an Error in words unless the tensors are what the request gives. Numbers that float32 code may have pass; with
   * strict only those that are right to the last rounding. Gives the diagnosis, which as a string also says what these
   * tensors could not have shown. */
  async check(request, { strict = false, ...options } = {}) {
    const diagnosis = await this.diagnose(request, options);
    const passing = ['as_believed', 'undecided', ...(strict ? [] : ['angles_f32', 'table_dtype'])];
    if (diagnosis.explained && diagnosis.findings.every(({ code }) => passing.includes(code))) return diagnosis;
    throw Object.assign(new Error(String(diagnosis)), { name: 'Mismatch', diagnosis });
  }

  async #tensors(path, request, options) {
    const { tensors } = await this.#ask(path, request, 'raw', options);
    return Object.fromEntries(tensors.map(({ name, dtype, shape, values }) => [name, { dtype, shape, data: values }]));
  }

  #ask(path, request, as, options) {
    const all = Object.entries(request);
    const tensors = Object.fromEntries(all.filter(([, value]) => isTensor(value)));
    const fields = Object.fromEntries(all.filter(([, value]) => !isTensor(value) && value !== undefined));
    if (!Object.keys(tensors).length) return this.#again(() => this.#client.ask({ path, body: fields }, { as, cached: false, ...options }), options?.signal);
    const body = packed(tensors, as === 'raw' ? { ...fields, format: 'raw' } : fields);
    return this.#again(() => this.#client.ask({ path, body, method: 'POST', type: 'application/vnd.safetensors' }, { as, ...options }), options?.signal);
  }

  async #again(asking, signal) {
    const until = Date.now() + 1000 * this.patience;
    for (let left = this.retries; ; left -= 1) {
      try {
        return await asking();
      } catch (error) {
        if (!(error instanceof Refusal) || ![429, 503].includes(error.status) || left <= 0 || Date.now() + 1000 * error.retryAfter > until) throw error;
        await pause(error.retryAfter, signal);
      }
    }
  }
}

/* ---- the head of a GGUF file ---- */

const GGUF = { STRING: 8, ARRAY: 9, FLAG: 7, F32: 0, WINDOW: 1 << 20, LONG: 1024, LIST: 65536, NAME: 65535 };
const GGUF_NUMBERS = {
  0: ['getUint8', 1], 1: ['getInt8', 1], 2: ['getUint16', 2], 3: ['getInt16', 2], 4: ['getUint32', 4], 5: ['getInt32', 4],
  6: ['getFloat32', 4], 7: ['getUint8', 1], 10: ['getBigUint64', 8], 11: ['getBigInt64', 8], 12: ['getFloat64', 8],
};
const GGUF_TENSORS = ['rope_freqs.weight', 'rope_factors_long.weight', 'rope_factors_short.weight'];
const GGUF_GENERAL = ['general.architecture', 'general.alignment', 'general.name'];

/* Reads a Blob by slices. What is passed over is not read, unless it is in the slice at hand. */
class Gguf {
  #blob; #view = new DataView(new ArrayBuffer(0)); #start = 0; #at = 0;

  constructor(blob) { this.#blob = blob; }

  refuse(what) { throw new Error(`no GGUF file that can be read: ${what}`); }

  pass(n) {
    if (n > this.#blob.size - this.#at) this.refuse(`it ends at byte ${this.#blob.size}, ${n} more are needed at byte ${this.#at}`);
    this.#at += n;
    return this.#at - n;
  }

  /* The place of the next n bytes in the view, which then has them. */
  async take(n) {
    const at = this.pass(n);
    if (at < this.#start || at + n > this.#start + this.#view.byteLength) {
      this.#view = new DataView(await this.#blob.slice(at, at + Math.max(n, GGUF.WINDOW)).arrayBuffer());
      this.#start = at;
    }
    return at - this.#start;
  }

  async numbers(type, n) {
    const [get, size] = GGUF_NUMBERS[type] ?? this.refuse(`type ${type}`);
    const at = await this.take(n * size);
    return Array.from({ length: n }, (_, i) => (type === GGUF.FLAG ? this.#view[get](at + i) !== 0 : Number(this.#view[get](at + size * i, true))));
  }

  async number(type) { return (await this.numbers(type, 1))[0]; }

  /* Undefined: longer than is kept. */
  async string(most = GGUF.NAME) {
    const n = await this.number(10);
    if (n > most) return void this.pass(n);
    const at = await this.take(n);
    return new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array(this.#view.buffer, at, n));
  }

  async array(kept) {
    const [type, n] = [await this.number(4), await this.number(10)];
    if (type === GGUF.STRING) {
      for (let i = 0; i < n; i += 1) this.pass(await this.number(10));
      return undefined;
    }
    const [, size] = GGUF_NUMBERS[type] ?? this.refuse(`an array of type ${type}`);
    return kept && n <= GGUF.LIST ? this.numbers(type, n) : void this.pass(n * size);
  }

  async value(kept) {
    const type = await this.number(4);
    if (type === GGUF.STRING) return this.string(GGUF.LONG);
    return type === GGUF.ARRAY ? this.array(kept) : this.number(type);
  }

  async keys(n) {
    const keys = {};
    for (let i = 0; i < n; i += 1) {
      const name = await this.string();
      if (!name) this.refuse('a key without a name, or with one of more than 65535 bytes');
      const kept = GGUF_GENERAL.includes(name) || !/^(general|tokenizer)\./.test(name);
      const value = await this.value(kept);
      if (kept && value !== undefined) keys[name] = value;
    }
    return keys;
  }

  /* Those that divide frequencies; null: in the table, but not in this file. */
  async tensors(n, alignment) {
    const places = {};
    for (let i = 0; i < n; i += 1) {
      const name = (await this.string() ?? '').replace(/^blk\.0\./, '');
      const shape = await this.numbers(10, await this.number(4));
      const [type, offset] = [await this.number(4), await this.number(10)];
      if (!GGUF_TENSORS.includes(name)) continue;
      if (type !== GGUF.F32 || shape.length !== 1 || shape[0] > GGUF.LIST) this.refuse(`${name} is no short list of f32`);
      places[name] = { offset, n: shape[0] };
    }
    const start = Math.ceil(this.#at / alignment) * alignment;
    const lists = {};
    for (const [name, place] of Object.entries(places)) {
      this.#at = start + place.offset;
      lists[name] = this.#at + 4 * place.n > this.#blob.size ? null : await this.numbers(6, place.n);
    }
    return lists;
  }

  async head() {
    if (this.#blob.size < 4 || await this.number(4) !== 0x46554747) this.refuse('it does not begin with GGUF');
    const version = await this.number(4);
    if (version !== 2 && version !== 3) this.refuse(`version ${version}; 2 and 3 are read`);
    const [tensors, count] = await this.numbers(10, 2);
    const { 'general.alignment': alignment = 32, ...keys } = await this.keys(count);
    if (!(alignment >= 1)) this.refuse(`general.alignment is ${alignment}`);
    const lists = await this.tensors(tensors, alignment);
    return Object.keys(lists).length ? { ...keys, tensors: lists } : keys;
  }
}

/* The keys about positions of a .gguf file (a File or Blob), as every request takes them: encode({ gguf: await readGguf(file), len: 16 }).
 * Of a file of gigabytes only its head is read, and of that only the keys are kept. */
export const readGguf = (blob) => new Gguf(blob).head();

export default Posenc;
