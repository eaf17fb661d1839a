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

/* A derivation in words: of each number its steps, and what a recipe of rounding makes of them. */
const asSteps = ({ numbers, ...alone }) => (numbers ?? [alone]).map(({ number, steps, recipe, float32, detail }) => [
  `${number.tensor}[${number.index}] = ${number.value}  ${number.bits}`,
  ...steps.map(({ symbol, value, text }) => [symbol, value, text].filter(Boolean).join('  ')),
  ...float32 ? [`${recipe}:`, ...float32.map(({ symbol, value, error }) => [symbol, value, error].filter(Boolean).join('  '))] : [],
  detail,
].join('\n')).join('\n\n');

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

  /* The steps of one number; String(derivation) has one on each line. */
  async derive(request, options) {
    const derivation = await this.#ask('/derive', request, 'json', options);
    return Object.defineProperty(derivation, 'toString', { value: () => asSteps(derivation) });
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
    const passing = ['as_believed', 'undecided', ...(strict ? [] : ['angles_f32', 'coordinates_f32', 'table_dtype'])];
    const hidesAlike = ({ code, found }) => !strict && code === 'mask_value' && found <= -65504;  // as -inf does
    if (diagnosis.explained && diagnosis.findings.every((one) => passing.includes(one.code) || hidesAlike(one))) return diagnosis;
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

const GGUF = { WINDOW: 1 << 20, LONG: 1024, LIST: 65536, NAME: 65535, KEYS: 65536, TENSORS: 1 << 20, OTHERS: 64 };
const GGUF_TYPES = ['u8', 'i8', 'u16', 'i16', 'u32', 'i32', 'f32', 'bool', 'string', 'array', 'u64', 'i64', 'f64']; // by their numbers
const GGUF_NUMBERS = {
  u8: ['getUint8', 1], i8: ['getInt8', 1], u16: ['getUint16', 2], i16: ['getInt16', 2], u32: ['getUint32', 4], i32: ['getInt32', 4],
  f32: ['getFloat32', 4], bool: ['getUint8', 1], u64: ['getBigUint64', 8], i64: ['getBigInt64', 8], f64: ['getFloat64', 8],
};
/* The keys that are read, behind the architecture's name and a dot, by the types as which llama.cpp reads them. */
const GGUF_STORED = {
  u32: 'block_count nextn_predict_layers leading_dense_block_count context_length embedding_length attention.key_length '
    + 'attention.key_length_swa attention.key_length_mla rope.dimension_count rope.dimension_count_swa attention.sliding_window '
    + 'rope.scaling.original_context_length attention.relative_buckets_count attention.temperature_length',
  f32: 'rope.freq_base rope.freq_base_swa rope.scaling.factor rope.scale_linear rope.scaling.attn_factor rope.scaling.alpha '
    + 'rope.scaling.yarn_log_multiplier rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow rope.scaling.yarn_ext_factor '
    + 'rope.scaling.yarn_attn_factor attention.compress_rope_freq_base attention.max_alibi_bias attention.temperature_scale attention.scale attention.output_scale attn_logit_softcapping',
  bool: 'rope.scaling.finetuned',
  string: 'rope.scaling.type',
  'u32, u32[], i32[]': 'attention.head_count',
  'u32[], i32[]': 'rope.dimension_sections attention.compress_ratios',
  'u32, u32[], i32[], bool[]': 'attention.sliding_window_pattern',
};
const GGUF_KEYS = new Map(Object.entries(GGUF_STORED).flatMap(([types, keys]) => keys.split(' ').map((key) => [key, types])));
const GGUF_TENSORS = ['rope_freqs.weight', 'rope_factors_long.weight', 'rope_factors_short.weight'];

/* A number as JSON has it: in words if it is not finite. */
const spelled = (x) => (Number.isFinite(x) ? x : String(x));

/* Before the first dot, and behind it. */
const parted = (name) => { const dot = name.indexOf('.'); return dot < 0 ? [name, ''] : [name.slice(0, dot), name.slice(dot + 1)]; };

/* Reads a Blob by slices, with the refusals of the service. What is passed over is not read, unless it is in the slice at hand. */
class Gguf {
  #blob; #view = new DataView(new ArrayBuffer(0)); #start = 0; #at = 0;

  constructor(blob) { this.#blob = blob; }

  refuse(what) { throw new Error(`no GGUF file that can be read: ${what}`); }

  has(n) { return n <= this.#blob.size - this.#at; }

  need(n) { if (!this.has(n)) this.refuse(`it ends at byte ${this.#blob.size}, ${n} more are needed at byte ${this.#at}`); }

  pass(n) {
    this.need(n);
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

  async bytes(n) { return new Uint8Array(this.#view.buffer, await this.take(n), n); }

  async numbers(type, n, key) {
    const [get, size] = GGUF_NUMBERS[type];
    const at = await this.take(n * size);
    const list = Array.from({ length: n }, (_, i) => Number(this.#view[get](at + size * i, true)));
    if (type !== 'bool') return list.map(spelled);
    if (list.some((x) => x > 1)) this.refuse(`${key} has a boolean other than 0 and 1`);
    return list.map((x) => x !== 0);
  }

  async number(type) { return (await this.numbers(type, 1))[0]; }

  text(bytes, what) {
    if (bytes.includes(0)) this.refuse(`${what} is not UTF-8`);
    try { return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes); } catch { return this.refuse(`${what} is not UTF-8`); }
  }

  async string(key, kept) {
    const n = await this.number('u64');
    if (!kept && (key !== 'general.name' || n > GGUF.LONG)) return void this.pass(n);
    this.need(n);
    if (!kept) return new TextDecoder('utf-8', { ignoreBOM: true }).decode(await this.bytes(n)).replaceAll('\0', '');
    if (n > GGUF.LONG) this.refuse(`${key} is a string of more than ${GGUF.LONG} bytes`);
    return this.text(await this.bytes(n), key);
  }

  async type(key) {
    const number = await this.number('u32');
    return GGUF_TYPES[number] ?? this.refuse(`${key} has the type ${number}; allowed: at most 12`);
  }

  async array(key, kept) {
    const [type, n] = [await this.type(key), await this.number('u64')];
    if (type === 'array') this.refuse(`${key} is an array of arrays`);
    if (type === 'string') {
      this.need(8 * n);
      for (let i = 0; i < n; i += 1) this.pass(await this.number('u64'));
      return ['string[]', null];
    }
    this.need(n * GGUF_NUMBERS[type][1]);
    if (kept && n > GGUF.LIST) this.refuse(`${key} has more than ${GGUF.LIST} elements`);
    return [`${type}[]`, kept ? await this.numbers(type, n, key) : void this.pass(n * GGUF_NUMBERS[type][1])];
  }

  /* Its type and itself. Undefined: it is not kept; null: an integer beyond those that every reader of JSON takes. */
  async value(key, kept) {
    const type = await this.type(key);
    if (type === 'array') return this.array(key, kept);
    if (type === 'string') return [type, await this.string(key, kept)];
    const [x] = await this.numbers(type, 1, key);
    return [type, ['u64', 'i64'].includes(type) && Math.abs(x) > 2 ** 53 ? null : x];
  }

  /* Those about positions, whatever the architecture, with their types; and the alignment. */
  async keys(n) {
    const keys = new Map();
    for (let i = 0; i < n; i += 1) {
      const length = await this.number('u64');
      this.need(length);
      if (!length || length > GGUF.NAME) this.refuse(`a key without a name, or with one of more than ${GGUF.NAME} bytes`);
      const bytes = await this.bytes(length);
      const name = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
      const [, rest] = parted(name);
      const kept = ['general.architecture', 'general.alignment'].includes(name) || GGUF_KEYS.has(rest) || (rest.startsWith('rope.') && rest !== 'rope.');
      if (kept) this.text(bytes, 'a key');
      if (kept && keys.has(name)) this.refuse(`${name} is there twice`);
      const value = await this.value(name, kept);
      if (kept || (name === 'general.name' && value[1] != null)) keys.set(name, value);
    }
    return keys;
  }

  alignment(keys) {
    const [type, n] = keys.get('general.alignment') ?? ['u32', 32];
    keys.delete('general.alignment');
    if (type !== 'u32' || !Number.isInteger(Math.log2(n))) this.refuse(`general.alignment is ${n} as ${type}; allowed: a power of two as u32`);
    return n;
  }

  /* The keys of the architecture, with their types checked, and some others, which have no effect. */
  chosen(keys) {
    if (!keys.has('general.architecture')) return {};
    const [type, architecture] = keys.get('general.architecture');
    if (type !== 'string') this.refuse(`general.architecture is stored as ${type}; llama.cpp reads string and refuses the file`);
    const chosen = [];
    let others = 0;
    for (const [name, [is, value]] of keys) {
      const [before, rest] = parted(name);
      const types = before === architecture ? GGUF_KEYS.get(rest) : undefined;
      if (types && !types.split(', ').includes(is)) this.refuse(`${name} is stored as ${is}; llama.cpp reads ${types} and refuses the file`);
      const isNamed = types || ['general.architecture', 'general.name'].includes(name);
      if (!isNamed) others += 1;
      if (isNamed || others <= GGUF.OTHERS) chosen.push([name, value]);
    }
    return Object.fromEntries(chosen);
  }

  /* Its name, without that of the first block, its shape, type and place. Undefined: the file ends before that. */
  async tensor() {
    const n = this.has(8) ? await this.number('u64') : this.#blob.size;
    if (!this.has(n + 4)) return undefined;
    const name = new TextDecoder().decode(await this.bytes(n));
    const axes = await this.number('u32');
    if (axes > 4) this.refuse(`${name.slice(0, 64)} has more than 4 dimensions`);
    if (!this.has(8 * axes + 12)) return undefined;
    return { name: name.replace(/^blk\.0\./, ''), shape: await this.numbers('u64', axes), type: await this.number('u32'), offset: await this.number('u64') };
  }

  /* Those that divide frequencies; null: in the table, but not in this file. Of a table that is cut, none is known. */
  async tensors(n, alignment) {
    const places = {};
    for (let i = 0; i < n; i += 1) {
      const tensor = await this.tensor();
      if (!tensor) return Object.fromEntries(GGUF_TENSORS.map((name) => [name, { needs: null }]));
      const { name, shape, type, offset } = tensor;
      if (!GGUF_TENSORS.includes(name)) continue;
      if (places[name]) this.refuse(`${name} is there twice`);
      if (type !== 0 || shape.length !== 1 || shape[0] > GGUF.LIST) this.refuse(`${name} is no short list of f32`);
      places[name] = { offset, n: shape[0] };
    }
    const start = Math.ceil(this.#at / alignment) * alignment;
    const lists = {};
    for (const [name, place] of Object.entries(places)) {
      this.#at = start + place.offset;
      lists[name] = this.has(4 * place.n) ? await this.numbers('f32', place.n) : null;
    }
    return lists;
  }

  async head() {
    if (this.#blob.size < 4 || await this.number('u32') !== 0x46554747) this.refuse('it does not begin with GGUF');
    this.need(20);
    const version = await this.number('u32');
    const [tensors, count] = await this.numbers('u64', 2);
    if (version !== 2 && version !== 3) this.refuse(version && !(version & 0xffff) ? 'it was written big-endian' : `version ${version}; 2 and 3 are read`);
    if (count > GGUF.KEYS || tensors > GGUF.TENSORS) this.refuse(`it has more than ${GGUF.KEYS} keys or ${GGUF.TENSORS} tensors`);
    const keys = await this.keys(count);
    const lists = await this.tensors(tensors, this.alignment(keys));
    return { ...this.chosen(keys), ...Object.keys(lists).length ? { tensors: lists } : {} };
  }
}

/* The keys about positions of a .gguf file (a File or Blob), as every request takes them: encode({ gguf: await readGguf(file), len: 16 }).
 * Of a file of gigabytes only its head is read, and of that only the keys are kept. Throws for a file that the service would refuse. */
export const readGguf = (blob) => new Gguf(blob).head();

export default Posenc;
