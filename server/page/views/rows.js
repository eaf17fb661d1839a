/* Tables of the views that list: server and docs. */
import { make } from '../dom.js';
import { word } from '../words.js';

/* 1000000 with thin spaces, so in any language. */
export const grouped = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, '\u2009');

const cells = (row) => row.map((cell, i) => i ? make('td', null, cell) : make('th', { scope: 'row' }, cell));

/* A row is a list of cells, each a child or a list of them, with an attribute of its own at will. */
export function rowOf(row, attributes) { return make('tr', attributes, cells(row)); }

/* title: a Live; heads: keys of texts; rows: elements of rowOf(). It scrolls by itself. */
export function rowTable(title, heads, rows) {
  const head = make('tr', null, heads.map((key) => make('th', { scope: 'col' }, word(key))));
  return make('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': title },
    make('table', { class: 'rows' }, make('thead', null, head), make('tbody', null, rows)));
}
