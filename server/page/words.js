/* The page's texts in the language of its user. A text on the page is a Live value: when the language changes, every
 * place that shows one is rewritten, and nothing else is drawn again.
 *
 *   word('table.fit')                       a text of text/LANG.json
 *   word('table.cells', { n: 133 })         {n} in it is replaced; a value may be Live itself
 *   label(row), summary(row)                both texts of a row of the catalogue
 *   phrase('table.shows', { scheme: node }) an element: {scheme} in the text becomes this node */

const LANGUAGES = { en: 'en', zh: 'zh-CN' };
const places = new Set();        /* of WeakRef to nodes */
const writesOf = new WeakMap();  /* node: Map of attribute to write */
let current = 'en';
let texts = {};
/* what gives texts: a function of the language, which asks for them */
const sources = new Map([['page', pageTexts]]);

export const language = () => current;

class Live {
  constructor(read) { this.read = read; }
  toString() { return this.read(); }
}

/* A computed text; read() is called again when the language changes. */
export const live = (read) => new Live(read);

function fill(template, values) {
  return template.replace(/\{(\w+)\}/g, (whole, name) => name in values ? String(values[name]) : whole);
}

export const word = (key, values = {}) => live(() => fill(texts[key] ?? key, values));
export const label = (row) => live(() => (current === 'zh' && row.label_zh) || row.label || row.name);
export const summary = (row) => live(() => (current === 'zh' && row.summary_zh) || row.summary || '');

/* Writes a text now and again at each change of language: into an attribute, or as text where attribute is null.
 * Another text for the same place takes its place. */
export function bind(node, attribute, value) {
  const write = (target) => {
    if (attribute) target.setAttribute(attribute, value);
    else target.textContent = value;
  };
  write(node);
  if (value instanceof Live) keep(node, attribute, write);
  else writesOf.get(node)?.delete(attribute);
  return node;
}

/* Calls write(node) now and at each change of language, as long as the node lives. */
export function rewrite(node, write) {
  write(node);
  keep(node, write, write);
  return node;
}

function keep(node, place, write) {
  const writes = writesOf.get(node);
  if (writes) return void writes.set(place, write);
  writesOf.set(node, new Map([[place, write]]));
  places.add(new WeakRef(node));
}

/* Between two sentences: Chinese ones stand close. */
export const gap = () => bind(document.createTextNode(''), null, live(() => current === 'zh' ? '' : ' '));

/* An element that holds a text with nodes in it. */
export function phrase(key, nodes) {
  return rewrite(document.createElement('span'), (span) => {
    const parts = (texts[key] ?? key).split(/\{(\w+)\}/);
    span.replaceChildren(...parts.map((part, i) => i % 2 ? nodes[part] ?? `{${part}}` : part)
      .map((part) => part instanceof Live ? String(part) : part));
  });
}

async function pageTexts(lang) {
  const answer = await fetch(new URL(`text/${lang}.json`, import.meta.url));
  if (!answer.ok) throw new Error(`text/${lang}.json: ${answer.status}`);
  return answer.json();
}

/* Adds the texts of a source, once, in the language that the page has when they are there; read(lang) asks for them. */
export async function addWords(name, read) {
  if (sources.has(name)) return;
  const lang = current;
  const words = await read(lang);
  if (lang !== current) return addWords(name, read);
  sources.set(name, read);
  Object.assign(texts, words);
}

export async function setLanguage(lang) {
  const all = [];
  while (all.length < sources.size) {
    all.push(...await Promise.all([...sources.values()].slice(all.length).map((read) => read(lang))));
  }
  texts = Object.assign({}, ...all);
  current = lang;
  document.documentElement.lang = LANGUAGES[lang];
  renew();
}

/* Writes all texts again: those of the catalogue have come, or the language has changed. */
export function renew() {
  for (const place of places) {
    const node = place.deref();
    if (!node) places.delete(place);
    else for (const write of writesOf.get(node).values()) write(node);
  }
}
