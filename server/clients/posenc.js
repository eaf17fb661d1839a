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

export default Posenc;
