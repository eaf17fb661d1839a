/* What several views need: a configuration as they ask with it, why they cannot show one, a small table of numbers. */
import { code, make } from '../dom.js';
import { label, phrase } from '../words.js';

const namesOf = (rows) => rows.map((row) => row.name);

/* The configuration as a path takes it, without what says how to answer; sequence: whether its own sequence stays. */
export function bodyFor(catalogue, path, config, { sequence = true } = {}) {
  const { common } = catalogue.catalogue();
  const out = new Set(namesOf([...common.filter((row) => ['answer', 'picture'].includes(row.group) && row.name !== 'dtype'),
    ...sequence ? [] : catalogue.sequenceRows()]));
  return Object.fromEntries(Object.entries(catalogue.requestFor(path, config)).filter(([name]) => !out.has(name)));
}

/* What a configuration is called: its scheme, or its letter while the server has not read it. */
export const nameOf = (catalogue, config, slot) => label(config && catalogue.schemeOf(config) || { name: slot });

/* The text `key`: which {scheme} cannot be shown here, and which {schemes} can. */
export function cannot(catalogue, key, scheme, able, more) {
  const schemes = make('span', null, catalogue.catalogue().schemes.filter(able).flatMap((row, i) => [i ? ', ' : '', code(row.name)]));
  return phrase(key, { scheme: code(scheme), schemes, ...more });
}

/* Into a figure's details: rows [[row number, title, [texts]]]. */
export function fillTable(figure, title, columns, rows) {
  const head = make('tr', null, make('td'), columns.map((text) => make('th', { scope: 'col' }, text)));
  const body = rows.map(([row, text, cells]) => make('tr', null, make('th', { scope: 'row' }, text),
    cells.map((cell, col) => make('td', { 'data-row': row, 'data-col': col }, cell))));
  figure.table.querySelector('.scroll')?.remove();
  figure.table.append(make('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': title },
    make('table', null, make('caption', { class: 'visually-hidden' }, title), make('thead', null, head), make('tbody', null, body))));
}
