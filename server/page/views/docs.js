/* Every route and parameter of this server, to read and to try: what /openapi.json and /schemes say. */
import { ask, Away } from '../ask.js';
import { whenBack } from '../away.js';
import { code, make } from '../dom.js';
import { label, phrase, summary, word } from '../words.js';
import { fieldRows, groupsOf, responsesOf, schemeRows, searchRows } from './openapi.js';
import { rowOf, rowTable } from './rows.js';
import { trialOf } from './trying.js';

const SHOWN_ROWS = 150;

/* OpenAPI's own texts are English in any language of the page. */
const english = (text) => make('span', { class: 'english', lang: 'en', translate: 'no' }, text);

/* ---- parameters ---- */

const PARAMETER_HEADS = ['docs.name', 'docs.of', 'docs.type', 'docs.default', 'docs.range', 'docs.meaning'];

function parameterRow({ row, owner, type, fallback, range }) {
  const meaning = row.summary ? make('span', { translate: 'no' }, summary(row)) : english(row.english);
  return rowOf([row.label ? [make('span', { translate: 'no' }, label(row)), ' ', code(row.name)] : code(row.name), owner ? code(owner) : word('docs.every'), code(type),
    fallback === undefined || fallback === null ? null : code(JSON.stringify(fallback)), code(range ?? ''),
    [meaning, row.when && ' ', row.when && phrase('docs.when', { condition: code(row.when) })]], { 'data-parameter': row.name });
}

const parameterTable = (rows) => rowTable(word('docs.parameters'), PARAMETER_HEADS, rows.map(parameterRow));

/* A field that searches names and descriptions in both languages. */
function searchSection(rows) {
  const found = make('p', { class: 'hint', role: 'status', 'data-found': '' });
  const place = make('div');
  const show = () => {
    const all = searchRows(rows, field.value.trim());
    found.replaceChildren(make('span', null, word('docs.found', { found: all.length, all: rows.length, most: SHOWN_ROWS })));
    place.replaceChildren(parameterTable(all.slice(0, SHOWN_ROWS)));
  };
  const field = make('input', { type: 'search', autocomplete: 'off', spellcheck: 'false', oninput: show });
  show();
  return make('section', { id: 'parameters' }, make('h2', null, word('docs.parameters')),
    make('label', { class: 'field' }, make('span', null, word('docs.search')), field), found, place);
}

/* ---- routes ---- */

/* What the parts of the view share. */
function gathered(description, { schemes, ...catalogue }) {
  const fields = fieldRows(description, { schemes, ...catalogue });
  return {
    schemes,
    responses: description.components.responses,
    tableOf: (path, scheme) => parameterTable([...(scheme ? schemeRows(scheme) : []), ...fields.filter(({ owner }) => !owner || owner === path)]),
    rows: [...fields, ...schemes.flatMap(schemeRows)],
  };
}

function responseTable(operation, shared) {
  return rowTable(word('docs.responses'), ['docs.status', 'docs.answer', 'docs.types'], responsesOf(operation, shared).map(([status, { description, content }]) =>
    rowOf([status === 'default' ? word('docs.other') : code(status), english(description), Object.keys(content ?? {}).flatMap((type) => [code(type), ' '])])));
}

/* Filled when first opened: the tables of all routes together would be thousands of rows. */
function routeElement(route, data) {
  const element = make('details', { class: 'route', 'data-route': route.path },
    make('summary', null, make('span', { class: 'methods', translate: 'no' }, route.methods.join(' ')), code(route.path), english(route.operation.summary)));
  element.addEventListener('toggle', () => {
    if (!element.open || element.children.length > 1) return;
    element.append(trialOf(route, data), make('details', null, make('summary', null, word('docs.responses')), responseTable(route.operation, data.responses)));
  });
  return element;
}

function groupElement([tag, routes], data) {
  return make('section', { 'data-tag': tag }, make('h2', null, word(`docs.tag.${tag}`)), routes.map((route) => routeElement(route, data)));
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
      const description = await ask('/openapi.json', { cached: true });
      if (!this.#closed) this.fill(description);
    } catch (error) {
      if (!this.#closed) this.failed(error);
    }
  }

  /* The page has its token by now: it has read the catalogue. */
  failed(error) {
    const isAway = error instanceof Away;
    if (isAway) this.#unwait = whenBack(() => this.load());
    this.body.replaceChildren(make('p', { class: 'notice', role: 'alert' }, isAway ? word('figure.away') : english(error.message)));
  }

  fill(description) {
    const data = gathered(description, this.page.catalogue.catalogue());
    this.body.replaceChildren(...groupsOf(description).map((group) => groupElement(group, data)), searchSection(data.rows));
  }

  close() {
    this.#closed = true;
    this.#unwait();
  }
}

export default {
  name: 'docs',
  forms: false,
  open(page, root) {
    const docs = new Docs(page, root);
    return { update() {}, request: () => null, close: () => docs.close() };
  },
};
