/* Trying a route: its fields, Run, the head and first bytes of the answer, the same as curl. */
import { busy, token } from '../ask.js';
import { action, code, make } from '../dom.js';
import { label, summary, word } from '../words.js';
import { curlOf, exampleFor, exampleOf, hasExample, requestOf, stepsOf } from './openapi.js';

const SHOWN_BYTES = 4096;
const HEX_BYTES = 512;
const SHOWN_HEADERS = ['content-type', 'content-length', 'posenc-tensors', 'etag', 'cache-control', 'server-timing', 'x-request-id', 'retry-after'];

/* ---- asking ---- */

/* Unlike ask.js: any status is an answer, and only the first bytes are fetched. */
async function run({ method, target, body }) {
  const headers = { ...(body && { 'Content-Type': 'application/json' }), ...(token() && { Authorization: `Bearer ${token()}` }) };
  busy.begin();
  try {
    const answer = await fetch(target, { method, headers, body: body || undefined });
    return { answer, ...await firstBytes(answer) };
  } finally {
    busy.end();
  }
}

async function firstBytes(answer) {
  const bytes = new Uint8Array(SHOWN_BYTES);
  const reader = answer.body?.getReader();
  for (let n = 0; reader;) {
    const { done, value } = await reader.read();
    if (done) return { bytes: bytes.subarray(0, n), isCut: false };
    bytes.set(value.subarray(0, SHOWN_BYTES - n), n);
    n += value.length;
    if (n <= SHOWN_BYTES) continue;
    reader.cancel();
    return { bytes, isCut: true };
  }
  return { bytes: bytes.subarray(0, 0), isCut: false };
}

function asText(bytes, type) {
  if (/json|text/.test(type ?? '')) return new TextDecoder().decode(bytes);
  return Array.from(bytes.subarray(0, HEX_BYTES), (byte) => byte.toString(16).padStart(2, '0')).join(' ');
}

/* ---- an answer on the page ---- */

const block = (text, key, attributes) => make('pre', { tabindex: 0, 'aria-label': word(key), ...attributes }, text);

function answerParts({ answer, bytes, isCut }) {
  const head = SHOWN_HEADERS.filter((one) => answer.headers.has(one)).map((one) => `${one}: ${answer.headers.get(one)}`).join('\n');
  return [make('p', { class: answer.ok ? 'good' : 'bad', 'data-status': answer.status, translate: 'no' }, `${answer.status} ${answer.statusText}`),
    block(head, 'docs.head', { 'data-answer': 'head' }), block(asText(bytes, answer.headers.get('content-type')), 'docs.answer', { 'data-answer': 'body' }),
    isCut ? make('p', { class: 'hint' }, word('docs.cut')) : null].filter(Boolean);
}

/* ---- the fields ---- */

class Trial {
  constructor(route, data) {
    Object.assign(this, { route, data, more: null });
    this.text = make('textarea', { rows: 4, spellcheck: 'false', translate: 'no', oninput: () => this.changed() });
    this.text.value = exampleOf(route.operation);
    this.method = select(route.runs.map((one) => [one, one]), () => this.changed());
    this.steps = Object.fromEntries(stepsOf(route.operation).map((step) => [step.name, this.step(step)]));
    this.curl = block('', 'docs.curl', { 'data-curl': '' });
    this.result = make('div', { class: 'trial-result', 'aria-live': 'polite' });
    this.element = make('div', { class: 'trial' }, this.schemePart(), this.fields(), this.buttons(), this.curl, this.result, this.filesPart(), this.more);
    this.changed();
  }

  step({ example }) {
    const field = make('input', { spellcheck: 'false', translate: 'no', oninput: () => this.changed() });
    field.value = example;
    return field;
  }

  request() {
    const steps = Object.fromEntries(Object.entries(this.steps).map(([name, field]) => [name, field.value]));
    return requestOf(this.method.value, this.route.path, steps, this.text.value);
  }

  changed() {
    try {
      this.curl.textContent = curlOf(this.request(), { origin: location.origin, token: Boolean(token()) });
    } catch (error) {
      this.curl.textContent = String(error.message);
    }
  }

  fields() {
    const steps = Object.entries(this.steps).map(([name, field]) => make('label', { class: 'field' }, code(name), field));
    return [...steps, this.text.value && make('label', { class: 'field' }, make('span', null, word('docs.request')), this.text)].filter(Boolean);
  }

  buttons() {
    const methods = this.route.runs.length > 1 && make('label', { class: 'trial-method' }, make('span', null, word('docs.method')), this.method);
    this.copied = make('span', { class: 'hint', role: 'status' });
    return make('div', { class: 'toolbar' }, methods, action('start', word('docs.run'), () => this.run(), { class: 'primary' }),
      action('copy', word('docs.copy'), () => this.copy()), this.copied);
  }

  async run() {
    this.result.replaceChildren(make('p', { class: 'hint' }, word('docs.asking')));
    try {
      this.result.replaceChildren(...answerParts(await run(this.request())));
    } catch (error) {
      this.result.replaceChildren(make('p', { class: 'bad', lang: 'en', translate: 'no' }, String(error.message)));
    }
  }

  /* Browsers have no clipboard for pages of plain http from other hosts. */
  async copy() {
    const copied = await navigator.clipboard?.writeText(this.curl.textContent).then(() => true, () => false);
    this.copied.replaceChildren(make('span', null, word(copied ? 'docs.copied' : 'docs.uncopied')));
  }

  /* What a scheme decides: the example and the table of parameters. */
  schemePart() {
    const { route: { path, item, operation }, data } = this;
    if (!item.post || operation.tags[0] !== 'compute') return [];
    const schemes = data.schemes.filter((row) => hasExample(path, row));
    const choice = select([['', word('docs.anyScheme')], ...schemes.map((row) => [row.name, label(row)])], () => this.choose(schemes, choice.value));
    this.about = make('p', { class: 'hint' });
    this.rows = make('div');
    this.choose(schemes, '');
    this.more = make('details', null, make('summary', null, word('docs.parameters')), this.rows);
    return [make('label', { class: 'field trial-scheme' }, make('span', null, word('docs.scheme')), choice), this.about];
  }

  choose(schemes, chosen) {
    const scheme = schemes.find((row) => row.name === chosen);
    this.about.replaceChildren(...(scheme ? [make('span', null, summary(scheme)), ' ', make('span', { lang: 'en', translate: 'no' }, scheme.paper)] : [make('span', null, word('docs.chooseScheme'))]));
    this.rows.replaceChildren(this.data.tableOf(this.route.path, scheme));
    if (scheme) this.text.value = JSON.stringify(exampleFor(this.route.path, scheme));
    if (this.curl) this.changed();
  }

  /* What changes the server is not run from here; how to do it is said. */
  filesPart() {
    if (!this.route.item.put) return null;
    const url = `'${location.origin}${this.route.path.replace('{name}', 'NAME')}'`;
    const who = token() ? '-H "Authorization: Bearer $TOKEN" ' : '';
    return make('div', null, make('p', null, word('docs.files')), block(`curl ${who}-T FILE.safetensors ${url}\ncurl ${who}-X DELETE ${url}`, 'docs.curl'));
  }
}

function select(options, onchange) {
  return make('select', { onchange, translate: 'no' }, options.map(([value, text]) => make('option', { value }, text)));
}

export const trialOf = (route, data) => new Trial(route, data).element;
