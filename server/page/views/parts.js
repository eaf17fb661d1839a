/* What several views need: a configuration as they ask with it, why they cannot show one, a small table of numbers, the
 * card of a story, what is in the place of a part that could not be loaded, and a fetch that counts what is sent. */
import { reloadWhenBack } from '../asking/away.js';
import { cell, code, columns, make, row, scrolling, table } from '../dom.js';
import { label, phrase, word } from '../words.js';

const namesOf = (rows) => rows.map((row) => row.name);

/* The configuration as a path takes it, without what says how to answer; sequence: whether its own sequence stays. */
export function bodyFor(catalogue, path, config, { sequence = true } = {}) {
  const { common } = catalogue.catalogue();
  const out = new Set(namesOf(
    [...common.filter((row) => ['answer', 'picture'].includes(row.group) && row.name !== 'dtype'),
      ...sequence ? [] : catalogue.sequenceRows()]
  ));
  return Object.fromEntries(Object.entries(catalogue.requestFor(path, config)).filter(([name]) => !out.has(name)));
}

/* What a configuration is called: its scheme, or its letter while the server has not read it. */
export const nameOf = (catalogue, config, slot) => label(config && catalogue.schemeOf(config) || { name: slot });

/* The text `key`: which {scheme} cannot be shown here, and which {schemes} can. */
export function cannot(catalogue, key, scheme, able, more) {
  const schemes = make('span', null,
    catalogue.catalogue().schemes.filter(able).flatMap((row, i) => [i ? ', ' : '', code(row.name)]));
  return phrase(key, { scheme: code(scheme), schemes, ...more });
}

/* Stands in the place of a part that could not be loaded. */
export function partFailed() {
  reloadWhenBack();
  return make('p', { class: 'notice', 'data-notice': 'view' }, word('page.partFailed'));
}

/* Into a figure's details: rows [[row number, title, [texts]]]; cols: their column numbers, if not 0, 1, 2... */
export function fillTable(figure, title, names, rows, cols) {
  const body = rows.map(([i, text, cells]) => row(
    text, cells.map((one, col) => cell(one, { row: i, col: cols?.[col] ?? col }))
  ));
  const caption = make('caption', { class: 'visually-hidden' }, title);
  figure.showTable(scrolling(title, table(null, [make('td'), ...columns(names)], body, caption)));
}

/* Of the views that list: heads are keys of texts; rows are of rowOf(), whose cells are a child or a list of them
 * each. */
export const rowTable = (title, heads, rows) =>
  scrolling(title, table({ class: 'rows' }, columns(heads.map((key) => word(key))), rows));
export const rowOf = ([head, ...cells], attributes) => row(head, cells.map((one) => cell(one)), attributes);

/* What a story that compares versions calls the one of this slot; null: elsewhere. */
export const versionOf = (page, slot) => page.story?.versions ? `${slot} ${page.calledBy(slot).label}` : null;

/* Leads to a story; its address is set by its owner. */
export const storyCard = (name) => make('a', { class: 'card', 'data-story': name },
  make('strong', null, word(`story.${name}`)), make('span', { class: 'hint capital' }, word(`story.${name}.lead`)));

/* fetch for `send` that tells how much was sent: only XMLHttpRequest knows. onSent(bytes, of how many) */
export const sending = (onSent) => (url, { method, headers, body, signal }) => new Promise((resolve, reject) => {
  const call = new XMLHttpRequest();
  call.open(method, url);
  for (const [key, value] of Object.entries(headers)) call.setRequestHeader(key, value);
  call.responseType = 'arraybuffer';
  call.upload.onprogress = ({ loaded, total }) => onSent(loaded, total);
  const retry = () => call.getResponseHeader('Retry-After');
  call.onload = () => resolve(new Response(
    call.response,
    { status: call.status, statusText: call.statusText, headers: retry() ? { 'Retry-After': retry() } : {} }
  ));
  call.onerror = call.onabort = () => reject(new TypeError('no answer'));
  signal.addEventListener('abort', () => call.abort());
  call.send(body);
});
