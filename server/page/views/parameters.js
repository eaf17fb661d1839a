/* Tables of parameters, and the search through all of them. */
import { code, make } from '../dom.js';
import { label, phrase, summary, word } from '../words.js';
import { searchRows } from './openapi.js';

const SHOWN_ROWS = 150;
const HEADS = ['name', 'of', 'type', 'default', 'range', 'meaning'];

const shown = (value) => value === undefined || value === null ? null : code(JSON.stringify(value));

/* What only OpenAPI describes stands in English, and says so. */
function meaning(row) {
  if (!row.summary) return make('span', { lang: 'en', translate: 'no' }, row.english);
  return make('span', { translate: 'no' }, summary(row));
}

function rowElement({ row, owner, type, fallback, range }) {
  const title = row.label ? [make('span', { translate: 'no' }, label(row)), ' ', code(row.name)] : code(row.name);
  return make('tr', { 'data-parameter': row.name }, make('th', { scope: 'row' }, title), make('td', null, owner ? code(owner) : word('docs.every')), make('td', null, code(type)),
    make('td', null, shown(fallback)), make('td', { class: 'range' }, range && code(range)),
    make('td', { class: 'meaning' }, meaning(row), row.when && [' ', phrase('docs.when', { condition: code(row.when) })]));
}

/* title: an element or a text, as the name of the region that scrolls. */
export function rowsRegion(rows, title) {
  const table = make('table', { class: 'rows' }, make('thead', null, make('tr', null, HEADS.map((key) => make('th', { scope: 'col' }, word(`docs.${key}`))))),
    make('tbody', null, rows.map(rowElement)));
  const caption = make('caption', { class: 'visually-hidden' }, title);
  table.prepend(caption);
  return make('div', { class: 'scroll rows-region', tabindex: 0, role: 'region', 'aria-label': word('docs.parameters') }, table);
}

/* A field that searches names and descriptions in both languages. */
export function searchSection(rows) {
  const found = make('p', { class: 'hint', role: 'status', 'data-found': '' });
  const place = make('div');
  const show = () => {
    const all = searchRows(rows, field.value.trim());
    found.replaceChildren(make('span', null, word(all.length > SHOWN_ROWS ? 'docs.foundFirst' : 'docs.found', { found: all.length, all: rows.length, first: SHOWN_ROWS })));
    place.replaceChildren(rowsRegion(all.slice(0, SHOWN_ROWS), word('docs.parameters')));
  };
  const field = make('input', { type: 'search', autocomplete: 'off', spellcheck: 'false', class: 'docs-search', oninput: show });
  show();
  return make('section', { class: 'docs-parameters', id: 'parameters' }, make('h2', null, word('docs.parameters')),
    make('label', { class: 'field' }, make('span', null, word('docs.search')), field), found, place);
}
