/* Every route and parameter of this server, to read and to try: what /openapi.json and /schemes say. */
import { ask, Away, Refusal } from '../ask.js';
import { whenBack } from '../away.js';
import { code, make } from '../dom.js';
import { askToken } from '../token.js';
import { live, word } from '../words.js';
import { fieldRows, groupsOf, responsesOf, schemeRows } from './openapi.js';
import { searchSection } from './parameters.js';
import { trialOf } from './trying.js';

const PLAIN = ['/openapi.json', '/schemes', '/presets', '/cmaps', '/weights', '/limits', '/version', '/metrics', '/healthz', '/readyz', '/v2'];

/* OpenAPI's own texts are English in any language of the page. */
const english = (text, attributes) => make('span', { lang: 'en', translate: 'no', ...attributes }, text);

/* Tags that a later server may add are shown as they stand. */
const TAGS = ['compute', 'catalogue', 'weights', 'operation', 'inference'];

function groupTitle(tag) {
  return TAGS.includes(tag) ? make('h2', null, word(`docs.tag.${tag}`)) : make('h2', { lang: 'en', translate: 'no' }, tag);
}

/* What the parts of the view share. */
function gathered(description, catalogue) {
  const fields = fieldRows(description, catalogue);
  return {
    schemes: catalogue.schemes,
    responses: description.components.responses,
    rowsFor: (path, scheme) => [...(scheme ? schemeRows(scheme) : []), ...fields.filter(({ owner }) => !owner || owner === path)],
    rows: [...fields, ...catalogue.schemes.flatMap(schemeRows)],
  };
}

function responseTable(operation, shared) {
  const head = ['status', 'answer', 'types'].map((key) => make('th', { scope: 'col' }, word(`docs.${key}`)));
  const rows = responsesOf(operation, shared).map(([status, { description, content }]) => make('tr', null,
    make('th', { scope: 'row' }, status === 'default' ? word('docs.other') : code(status)), make('td', { class: 'meaning' }, english(description)),
    make('td', null, Object.keys(content ?? {}).flatMap((type) => [code(type), ' ']))));
  return make('div', { class: 'scroll' }, make('table', { class: 'rows' }, make('thead', null, make('tr', null, head)), make('tbody', null, rows)));
}

/* Filled when first opened: the tables of all routes together would be thousands of rows. */
function routeElement(route, data) {
  const methods = route.methods.map((one) => make('span', { class: 'method', translate: 'no' }, one));
  const element = make('details', { class: 'route', 'data-route': route.path }, make('summary', null, make('span', { class: 'methods' }, methods), code(route.path), ' ',
    english(route.operation.summary, { class: 'hint' })));
  element.addEventListener('toggle', () => {
    if (!element.open || element.children.length > 1) return;
    element.append(trialOf(route, data), make('details', { class: 'trial-more' }, make('summary', null, word('docs.responses')), responseTable(route.operation, data.responses)));
  });
  return element;
}

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

  async failed(error) {
    if (error instanceof Away) {
      this.say('away', word('figure.away'));
      this.#unwait = whenBack(() => this.load());
    } else if (error instanceof Refusal && [401, 403].includes(error.status) && await askToken(error.problem.detail)) this.load();
    else this.say('refused', live(() => error.message));
  }

  say(notice, text) { this.body.replaceChildren(make('p', { class: 'notice', role: 'alert', 'data-notice': notice }, text)); }

  fill(description) {
    const data = gathered(description, this.page.catalogue.catalogue());
    const groups = groupsOf(description).map(([tag, routes]) => make('section', { class: 'docs-group', 'data-tag': tag }, groupTitle(tag), routes.map((route) => routeElement(route, data))));
    this.body.replaceChildren(this.intro(), ...groups, searchSection(data.rows));
  }

  intro() {
    const links = PLAIN.map((path) => make('a', { href: path }, code(path)));
    return make('nav', { class: 'docs-links', 'aria-label': word('docs.plain') }, make('span', { class: 'hint' }, word('docs.plain')), links.flatMap((link) => [' ', link]));
  }

  close() {
    this.#closed = true;
    this.#unwait();
  }
}

export default {
  name: 'docs',
  own: [],
  most: 0,
  difference: false,
  forms: false,
  example: () => ({}),
  open(page, root) {
    const docs = new Docs(page, root);
    return { update() {}, request: () => null, close: () => docs.close() };
  },
};
