/* Elements. What a server or a file says is only ever put in as text, so nothing of it becomes markup. */
import { bind } from './words.js';

/* make('button', { type: 'button', 'aria-label': word('fit'), onclick: f, disabled: true, hidden: false }, 'text',
 * node) Attributes: null, undefined and false are left out, true is the empty value, on… a listener. Texts may be
 * Live. */
export function make(tag, attributes, ...children) {
  return dress(document.createElement(tag), attributes, children);
}

/* The same for MathML and SVG. */
const makerIn = (space) =>
  (tag, attributes, ...children) => dress(document.createElementNS(space, tag), attributes, children);
export const math = makerIn('http://www.w3.org/1998/Math/MathML');
export const svg = makerIn('http://www.w3.org/2000/svg');

function dress(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else bind(element, name, value === true ? '' : value);
  }
  element.append(
    ...children.flat().filter((child) => child !== null && child !== undefined && child !== false).map(asNode)
  );
  return element;
}

function asNode(child) {
  return child instanceof Node ? child : bind(document.createTextNode(''), null, child);
}

/* A name of the field (scheme, parameter, model, unit) that no language translates. */
export const name = (text) => make('span', { translate: 'no' }, text);
export const code = (text) => make('code', null, text);

export const english = { lang: 'en', translate: 'no' };

/* A sentence of the server as an element: a string is in the language that the page had when it asked. */
export const served = (text, kind = 'p', more = {}) => make(kind, typeof text === 'string'
  ? { ...more, lang: /[\u3400-\u9fff]/.test(text) ? 'zh-CN' : 'en', translate: 'no' } : more, text);

/* An id that no other element has: a view may stand in a story several times. */
let ids = 0;
export const freshId = (what) => `${what}-${ids += 1}`;

/* A button of the page: data-action is a promise to tests. */
export function action(which, text, onclick, attributes) {
  return make('button', { type: 'button', 'data-action': which, onclick, ...attributes }, text);
}

/* data-… attributes of an element from { 'row-px': 1, x0: 0 }. */
export function mark(element, values) {
  for (const [key, value] of Object.entries(values)) element.setAttribute(`data-${key}`, value);
  return element;
}

/* ---- tables: scrolling('title', table({ class: 'rows' }, columns(['a', 'b']), [row('first', [cell(1, { row: 0 })])]))
 * ---- */

export const columns = (texts) => texts.map((text) => make('th', { scope: 'col' }, text));
export const cell = (text, where = {}) => mark(make('td', null, text), where);
export const row = (head, cells, attributes) => make('tr', attributes, make('th', { scope: 'row' }, head), cells);
export const table = (attributes, heads, rows, caption) => make('table', attributes, caption,
  make('thead', null, make('tr', null, heads)), make('tbody', null, rows));

/* What is wider than its place scrolls there, by keys too. */
export const scrolling = (title, child) =>
  make('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': title }, child);

/* ---- the clipboard ---- */

/* Copies a text; false: the browser does not let us. Without a secure context (a plain address in a network) it only
 * copies what is selected. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* none here, or refused: the old way needs no permission */ }
  const area = make('textarea', { class: 'visually-hidden', 'aria-hidden': 'true' }, text);
  const focused = document.activeElement;
  document.body.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  focused?.focus();
  return copied;
}

/* Does the page share its screen with a tray of sliders? */
export const isNarrow = () => matchMedia('(max-width: 1079px)').matches;

/* How high the style wants a picture of a story in its place, in pixels: --picture of story.css. */
export const pictureHeight = (element) =>
  parseFloat(getComputedStyle(element).getPropertyValue('--picture')) || 320;

/* What a custom property of the style is in the theme of now. */
export const styleOf = (property) => getComputedStyle(document.documentElement).getPropertyValue(property).trim();
