/* Every route and parameter of this server, to read and to try: what /openapi.json and /schemes say. */
import { ask, Away, busy, token } from '../../ask.js';
import { whenBack } from '../../asking/away.js';
import { action, code, copyText, english, make, name, served } from '../../dom.js';
import { addWords, label, language, phrase, summary, word } from '../../words.js';
import {
  curlOf, exampleFor, exampleOf, fieldRows, groupsOf, hasExample, keyed, requestOf, responsesOf, schemeRows, searchRows,
  stepsOf,
} from './openapi.js';
import { rowOf, rowTable } from '../parts.js';

const SHOWN_ROWS = 150;
const SHOWN_BYTES = 4096;
const HEX_BYTES = 512;
const SHOWN_HEADERS = ['content-type', 'content-length', 'posenc-tensors', 'etag', 'cache-control', 'server-timing',
  'x-request-id', 'retry-after'];

/* ---- parameters ---- */

const PARAMETER_HEADS = ['docs.name', 'docs.of', 'docs.type', 'docs.default', 'docs.range', 'docs.meaning'];

function parameterRow({ row, owner, type, fallback, range }) {
  const title = row.label ? [name(label(row)), ' ', code(row.name)] : code(row.name);
  const meaning = name(row.summary ? summary(row) : row.key && word(row.key));
  const condition = row.when && [' ', phrase('docs.when', { condition: code(row.when) })];
  const value = code(JSON.stringify(fallback ?? undefined) ?? '');
  const of = owner ? code(owner) : word('docs.every');
  return rowOf([title, of, code(type), value, code(range ?? ''), [meaning, ...condition || []]],
    { 'data-parameter': row.name });
}

const parameterTable = (rows) => rowTable(word('docs.parameters'), PARAMETER_HEADS, rows.map(parameterRow));

/* A field that searches names and descriptions in both languages. */
function searchSection(rows) {
  const found = make('p', { class: 'hint', role: 'status', 'data-found': '' });
  const place = make('div');
  const show = () => {
    const all = searchRows(rows, field.value.trim(), word);
    found.replaceChildren(make(
      'span', null, word('docs.found', { found: all.length, all: rows.length, most: SHOWN_ROWS })
    ));
    place.replaceChildren(parameterTable(all.slice(0, SHOWN_ROWS)));
  };
  const field = make('input', { type: 'search', autocomplete: 'off', spellcheck: 'false', oninput: show });
  show();
  return make('section', { id: 'parameters' }, make('h2', null, word('docs.parameters')),
    labelled('docs.search', field, 'field'), found, place);
}

/* ---- trying: asking ---- */

/* Unlike ask.js: any status is an answer, and only the first bytes are fetched. */
async function run({ method, target, body }) {
  const headers = {
    'Accept-Language': language(), ...(body && { 'Content-Type': 'application/json' }),
    ...(token() && { Authorization: `Bearer ${token()}` }),
  };
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

/* ---- trying: an answer on the page ---- */

const block = (text, key, attributes) => make('pre', { tabindex: 0, 'aria-label': word(key), ...attributes }, text);

function answerParts({ answer, bytes, isCut }) {
  const { headers } = answer;
  const head = SHOWN_HEADERS.filter((one) => headers.has(one)).map((one) => `${one}: ${headers.get(one)}`).join('\n');
  const body = asText(bytes, headers.get('content-type'));
  const status = name(`${answer.status} ${answer.statusText}`);
  return [make('p', { class: answer.ok ? 'good' : 'bad', 'data-status': answer.status }, status),
    block(head, 'docs.head', { 'data-answer': 'head' }), block(body, 'docs.answer', { 'data-answer': 'body' }),
    isCut ? make('p', { class: 'hint' }, word('docs.cut')) : null].filter(Boolean);
}

/* ---- trying: the fields ---- */

class Trial {
  constructor(route, data) {
    Object.assign(this, { route, data, more: null });
    this.text = make('textarea', { rows: 4, spellcheck: 'false', translate: 'no', oninput: () => this.changed() });
    this.text.value = exampleOf(route.operation);
    this.method = select(route.runs.map((one) => [one, one]), () => this.changed());
    this.steps = Object.fromEntries(stepsOf(route.operation).map((step) => [step.name, this.step(step)]));
    this.curl = block('', 'paste.line', { 'data-curl': '' });
    this.result = make('div', { class: 'trial-result', 'aria-live': 'polite' });
    this.element = make('div', { class: 'trial' }, this.schemePart(), this.fields(), this.buttons(), this.curl,
      this.result, this.filesPart(), this.more);
    this.changed();
  }

  step({ example }) {
    const field = make('input', { spellcheck: 'false', translate: 'no', oninput: () => this.changed() });
    field.value = example;
    return field;
  }

  request() {
    const steps = Object.fromEntries(Object.entries(this.steps).map(([step, field]) => [step, field.value]));
    return requestOf(this.method.value, this.route.path, steps, this.text.value);
  }

  changed() {
    try {
      const named = Boolean(this.route.operation.requestBody?.required);
      this.curl.textContent = curlOf(this.request(), { origin: location.origin, token: Boolean(token()), named });
    } catch (error) {
      this.curl.textContent = String(error.message);
    }
  }

  fields() {
    const steps = Object.entries(this.steps)
      .map(([step, field]) => make('label', { class: 'field' }, code(step), field));
    return this.text.value ? [...steps, labelled('docs.request', this.text, 'field')] : steps;
  }

  buttons() {
    const methods = this.route.runs.length > 1 && labelled('docs.method', this.method, 'trial-method');
    this.copied = make('span', { class: 'hint', role: 'status' });
    return make('div', { class: 'toolbar' }, methods,
      action('start', word('docs.run'), () => this.run(), { class: 'primary' }),
      action('copy', word('docs.copy'), () => this.copy()), this.copied);
  }

  async run() {
    this.result.replaceChildren(make('p', { class: 'hint' }, word('docs.asking')));
    try {
      this.result.replaceChildren(...answerParts(await run(this.request())));
    } catch (error) {
      this.result.replaceChildren(served(error.message, 'p', { class: 'bad' }));
    }
  }

  async copy() {
    const copied = await copyText(this.curl.textContent);
    this.copied.replaceChildren(make('span', null, word(copied ? 'panel.copied' : 'docs.uncopied')));
  }

  /* What a scheme decides: the example and the table of parameters. */
  schemePart() {
    const { route: { path, item, operation }, data } = this;
    if (!item.post || operation.tags[0] !== 'compute') return [];
    const schemes = data.schemes.filter((row) => hasExample(path, row));
    const options = [['', word('docs.anyScheme')], ...schemes.map((row) => [row.name, label(row)])];
    const choice = select(options, () => this.choose(schemes, choice.value));
    this.about = make('p', { class: 'hint' });
    this.rows = make('div');
    this.choose(schemes, '');
    this.more = make('details', null, make('summary', null, word('docs.parameters')), this.rows);
    return [labelled('docs.scheme', choice, 'field trial-scheme'), this.about];
  }

  choose(schemes, chosen) {
    const scheme = schemes.find((row) => row.name === chosen);
    const about = make('span', null, scheme ? summary(scheme) : word('docs.chooseScheme'));
    this.about.replaceChildren(about, ' ', scheme ? make('span', english, scheme.paper) : '');
    this.rows.replaceChildren(this.data.tableOf(this.route.path, scheme));
    if (scheme) this.text.value = JSON.stringify(exampleFor(this.route.path, scheme));
    if (this.curl) this.changed();
  }

  /* What changes the server is not run from here; how to do it is said. */
  filesPart() {
    if (!this.route.item.put) return null;
    const url = `'${location.origin}${this.route.path.replace('{name}', 'NAME')}'`;
    const who = token() ? '-H "Authorization: Bearer $TOKEN" ' : '';
    const commands = `curl ${who}-T FILE.safetensors ${url}\ncurl ${who}-X DELETE ${url}`;
    return make('div', null, make('p', null, word('docs.files')), block(commands, 'paste.line'));
  }
}

const labelled = (key, control, className) =>
  make('label', { class: className }, make('span', null, word(key)), control);

function select(options, onchange) {
  return make('select', { onchange, translate: 'no' }, options.map(([value, text]) => make('option', { value }, text)));
}

/* ---- routes ---- */

/* What the parts of the view share. */
function gathered(description, { schemes, ...catalogue }) {
  const fields = fieldRows(description, { schemes, ...catalogue });
  return {
    schemes,
    responses: description.components.responses,
    tableOf: (path, scheme) => parameterTable(
      [...scheme ? schemeRows(scheme) : [], ...fields.filter(({ owner }) => ['', path].includes(owner))]),
    rows: [...fields, ...schemes.flatMap(schemeRows)],
  };
}

function responseTable(operation, shared) {
  const rows = responsesOf(operation, shared).map(([status, { description, content = {} }]) => {
    const types = Object.keys(content).flatMap((type) => [code(type), ' ']);
    return rowOf([status === 'default' ? word('docs.other') : code(status), name(word(description)), types]);
  });
  return rowTable(word('docs.responses'), ['docs.status', 'docs.answer', 'docs.types'], rows);
}

/* Filled when first opened: the tables of all routes together would be thousands of rows. */
function routeElement(route, data) {
  const methods = make('span', { class: 'methods', translate: 'no' }, route.methods.join(' '));
  const element = make('details', { class: 'route', 'data-route': route.path },
    make('summary', null, methods, code(route.path), name(word(route.operation.summary))));
  element.addEventListener('toggle', () => {
    if (!element.open || element.children.length > 1) return;
    element.append(new Trial(route, data).element,
      make('details', null, make('summary', null, word('docs.responses')),
        responseTable(route.operation, data.responses)));
  });
  return element;
}

function groupElement([tag, routes], data) {
  const title = make('h2', null, word(`docs.tag.${tag}`));
  return make('section', { 'data-tag': tag }, title, routes.map((route) => routeElement(route, data)));
}

/* ---- the view ---- */

class Docs {
  #closed = false;
  #unwait = () => {};

  constructor(page, root) {
    this.page = page;
    this.body = make('div', { class: 'docs' });
    root.append(this.body);
    this.load();
  }

  async load() {
    try {
      const read = async (lang) => keyed(await ask(`/openapi.json?lang=${lang}`, { cached: true }));
      await addWords('docs', async (lang) => (await read(lang)).texts);
      const [{ description }] = await Promise.all([read(language()), this.page.catalogue.complete()]);
      if (!this.#closed) this.fill(description);
    } catch (error) {
      if (!this.#closed) this.failed(error);
    }
  }

  /* The page has its token by now: it has read the catalogue. */
  failed(error) {
    const isAway = error instanceof Away;
    if (isAway) this.#unwait = whenBack(() => this.load());
    const text = isAway ? word('figure.away') : error.message;
    this.body.replaceChildren(served(text, 'p', { class: 'notice', role: 'alert' }));
  }

  fill(description) {
    const data = gathered(description, this.page.catalogue.catalogue());
    this.body.replaceChildren(...groupsOf(description).map((group) => groupElement(group, data)),
      searchSection(data.rows));
  }

  close() {
    this.#closed = true;
    this.#unwait();
  }
}

export default { name: 'docs', forms: false, open: (page, root) => new Docs(page, root) };
