/* The cells about the cursor as a table, for whom a picture says nothing. */
import { make } from '../dom.js';
import { about as cellsAbout } from '../draw/windows.js';
import { word } from '../words.js';

const MOST = 32;

/* Fills `details` (figure.table) with the exact texts about a cell. */
export async function fillTable(details, get, source, about, [row, col], caption) {
  const rows = cellsAbout(about.rows, row, MOST);
  const cols = cellsAbout(about.cols, col, MOST);
  const key = JSON.stringify([source.key, rows, cols]);
  if (details.shown === key) return;
  const texts = await source.texts(get, about, rows, cols);
  details.shown = key;
  const table = make('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': word('figure.table') }, tableOf(texts, rows[0], cols[0], caption));
  details.replaceChildren(details.querySelector('summary'), table);
}

function tableOf(texts, row0, col0, caption) {
  const head = make('tr', null, make('td'), texts[0].map((_, j) => make('th', { scope: 'col' }, col0 + j)));
  const line = (cells, i) => make('tr', null, make('th', { scope: 'row' }, row0 + i),
    cells.map((text, j) => make('td', { 'data-row': row0 + i, 'data-col': col0 + j }, text)));
  return make('table', { class: 'cells', translate: 'no' }, make('caption', null, caption), make('thead', null, head), make('tbody', null, texts.map(line)));
}
