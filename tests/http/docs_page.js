// Runs the script of GET /docs in node, over a document of a few dozen lines, against a real server: opens every route,
// chooses every scheme and method, presses every "Run", searches. Prints what came of it as one JSON object.
//   node docs_page.js http://127.0.0.1:PORT [TOKEN] <page.html
// With a token: enters a wrong one first, then that one.
'use strict';
const fs = require('fs');
const vm = require('vm');

const base = process.argv[2];
const html = fs.readFileSync(0, 'utf8');
const script = html.split('<script>')[1].split('</script>')[0];

class Element {
  constructor(tag) { Object.assign(this, { tag, attributes: {}, childNodes: [], listeners: {}, chosen: null }); }
  get children() { return this.childNodes.filter((c) => c instanceof Element); }
  setAttribute(name, value) {
    if (/^on|^style$|^srcdoc$/.test(name)) throw new Error('the policy forbids the attribute ' + name);
    this.attributes[name] = String(value);
  }
  append(...nodes) { this.childNodes.push(...nodes.map((n) => n instanceof Element ? n : String(n))); }
  replaceChildren(...nodes) { this.childNodes = []; this.append(...nodes); }
  addEventListener(name, f) { (this.listeners[name] ||= []).push(f); }
  fire(name) { return Promise.all((this.listeners[name] || []).map((f) => f())); }
  get textContent() { return this.childNodes.map((c) => c instanceof Element ? c.textContent : c).join(''); }
  set textContent(text) { this.childNodes = text ? [String(text)] : []; }
  set innerHTML(text) { throw new Error('innerHTML is not to be used'); }
  get value() { return this.tag === 'select' && this.chosen === null ? this.options()[0] : this.chosen ?? ''; }
  set value(text) { this.chosen = text; }
  options() { return this.children.map((c) => c.attributes.value); }
  all(test) { return this.children.flatMap((c) => [...(test(c) ? [c] : []), ...c.all(test)]); }
}

const byId = {};
for (const [, tag, id] of html.split('<script>')[0].matchAll(/<(\w+)[^>]*\bid="([^"]+)"/g))
  byId[id] = Object.assign(new Element(tag), { id, hidden: id === 'door' });
const copied = [];
const context = vm.createContext({
  document: { createElement: (tag) => new Element(tag), getElementById: (id) => byId[id] },
  navigator: { clipboard: { writeText: (text) => { copied.push(text); } } },
  location: { origin: base }, fetch: (path, options) => fetch(base + path, options),
  performance, TextDecoder, Uint8Array, console, encodeURIComponent,
});

const of = (element, tag) => element.all((e) => e.tag === tag);
const results = [];

async function press(route, path) {
  const [runs, copies] = of(route, 'button');
  await runs.fire('click');
  await copies.fire('click');
  const result = route.all((e) => e.attributes['aria-live'] === 'polite')[0];
  const pres = of(result, 'pre').map((e) => e.textContent);
  const choice = (suffix) => (route.all((e) => e.attributes.id && e.attributes.id.endsWith(suffix))[0] || {}).value || '';
  results.push({ path, scheme: choice('-scheme'), method: choice('-method'), status: of(result, 'p')[0].textContent, headers: pres[0], answer: pres[1], curl: copied.at(-1),
    rows: of(route, 'tr').length, methods: of(route, 'span').filter((e) => e.attributes.class === 'method').map((e) => e.textContent), text: route.textContent });
}

async function tryRoute(route) {
  const path = of(route, 'code')[0].textContent;
  route.open = true;
  await route.fire('toggle');
  await route.fire('toggle');
  await press(route, path);
  const selects = of(route, 'select');
  for (const select of selects.slice().reverse())
    for (const option of select.options().slice(1)) {
      select.value = option;
      await select.fire('change');
      await press(route, path);
    }
}

async function main() {
  vm.runInContext(script, context);
  for (let i = 0; i < 200 && !byId.version.textContent && !byId.status.textContent; i++)
    await new Promise((done) => setTimeout(done, 25));
  await new Promise((done) => setTimeout(done, 50));
  const doors = [];
  for (const entered of process.argv[3] ? [process.argv[3] + 'x', process.argv[3]] : []) {
    doors.push({ hidden: byId.door.hidden, status: byId.status.textContent });
    byId.token.value = entered;
    await byId.enter.fire('click');
  }
  doors.push({ hidden: byId.door.hidden, left: byId.token.value });
  const found = {};
  for (const text of ['', 'rotary_dim', 'window seen left', 'nothing-like-this']) {
    byId.search.value = text;
    await byId.search.fire('input');
    found[text] = { said: byId.found.textContent, names: of(byId.table, 'tr').slice(1).map((row) => row.children[0].textContent) };
  }
  for (const route of byId.routes.children.filter((e) => e.tag === 'details'))
    await tryRoute(route);
  const groups = byId.routes.children.filter((e) => e.tag === 'h2').map((e) => e.textContent);
  console.log(JSON.stringify({ doors, status: byId.status.textContent, version: byId.version.textContent, groups, found, results }));
}

main().catch((error) => { console.error(error); process.exit(1); });
