/* Starts the page and opens the view that the address names. */
import { Page } from './page.js';
import { Store, parse } from './state.js';
import { make } from './dom.js';
import { setLanguage } from './words.js';
import { viewNamed, views } from './views/list.js';

const optional = (path) => import(path).catch((error) => { console.warn(path, error.message); return null; });
const root = make('main', { id: 'main', tabindex: -1 });
const side = make('aside', { class: 'forms' });
const rail = make('aside', { class: 'panel' });
const live = make('p', { 'data-live': '', 'aria-live': 'polite' });
const notices = make('div', { class: 'notices' });
document.body.append(make('header', null, make('h1', null, 'posenc'), make('nav', null)), notices, side, root, rail, live);

async function start() {
  const first = parse(location.hash).state;
  await setLanguage(first.lang ?? 'en');
  document.documentElement.dataset.theme = first.theme ?? 'light';
  const ask = await optional('./ask.js');
  const catalogue = await optional('./catalogue.js');
  const getJson = (path) => ask ? ask.ask({ path }, { as: 'json' }) : fetch(path).then((answer) => answer.json());
  await catalogue?.loadCatalogue(getJson);
  const store = new Store({ window, busy: ask?.busy, known: { view: location.pathname === '/docs' ? 'docs' : undefined } });
  const page = new Page({ store, catalogue,
    announce: (text) => { live.textContent = text; },
    notice: (name, node) => {
      for (const old of notices.querySelectorAll(`[data-notice="${name}"]`)) old.remove();
      if (node) notices.append(make('div', { 'data-notice': name }, node));
    } });
  const form = await optional('./form.js');
  const panel = await optional('./panel.js');
  page.forms = form && new form.Forms(page, side);
  page.panel = panel && new panel.Panel(page, rail);
  let opened = null;
  async function show(state, before) {
    document.querySelector('nav').replaceChildren(...views.map((row) =>
      make('a', { href: page.href(row.name), 'data-view': row.name, 'aria-current': row.name === state.view && 'page' }, row.name, ' ')));
    if (opened?.name !== state.view) {
      opened?.handle?.close();
      root.replaceChildren();
      opened = { name: state.view };
      const mine = opened;
      const module = (await viewNamed(state.view).load()).default;
      if (mine !== opened) return;
      page.view = module;
      opened.handle = module.open(page, root);
    }
    page.forms?.update(store.state, before ?? store.state);
    opened.handle?.update(store.state, before ?? store.state);
    page.panel?.update(opened.handle, store.state);
  }
  store.subscribe(show);
  await show(store.state);
}

start();
