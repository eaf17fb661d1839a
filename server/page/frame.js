/* The frame around the view: banner, navigation, title, places for configurations, view and inspector, footer. */
import { action, make } from './dom.js';
import { icon } from './icons.js';
import { print } from './state.js';
import { language, rewrite, word } from './words.js';
import { views } from './views/list.js';

const WIDE = matchMedia('(min-width: 1080px)');

/* A button that shows only a picture. */
function tool(which, picture, onclick) {
  const text = word(`page.${which}`);
  return action(which, icon(picture), onclick, { class: 'icon quiet', 'aria-label': text, title: text });
}

/* The name of the language that the page is not in, in that language. */
function otherLanguage() {
  return rewrite(make('span'), (span) => {
    const chinese = language() === 'en';
    Object.assign(span, { lang: chinese ? 'zh-CN' : 'en', textContent: chinese ? '中文' : 'EN' });
  });
}

export class Frame {
  /* acts: a function for each data-action of the page. */
  constructor(acts) {
    this.makeTools(acts);
    this.makeWork(acts);
    document.body.append(this.skip(), this.banner(), this.main, this.footer());
    WIDE.addEventListener('change', () => this.arrange());
    this.arrange();
  }

  makeTools(acts) {
    const button = (which, picture = which) => tool(which, picture, acts[which]);
    this.tools = { undo: button('undo'), redo: button('redo') };
    this.theme = button('theme', 'moon');
    document.addEventListener('posenc:theme', () => this.showTheme());
    this.showTheme();
    const languageTool = action('lang', otherLanguage(), acts.lang, { class: 'quiet', 'aria-label': word('page.lang'), title: word('page.lang') });
    this.toolbar = make('div', { class: 'toolbar tools' }, this.tools.undo, this.tools.redo, button('paste'),
      languageTool, this.theme, button('help'));
  }

  makeWork(acts) {
    this.title = make('h1', { class: 'title' });
    this.lead = make('p', { class: 'lead' });
    this.notices = make('div', null);
    this.forms = make('div', { class: 'forms' });
    this.add = action('add', word('page.add'), acts.add, { class: 'quiet' });
    this.add.prepend(icon('add'));
    this.side = make('section', { class: 'side', 'aria-labelledby': 'side-title' },
      make('div', { class: 'side-head' }, make('h2', { id: 'side-title' }, word('page.configs')), this.add), this.forms);
    this.stage = make('div', { class: 'view' });
    this.panel = make('section', { class: 'inspector', 'aria-label': word('page.inspector') });
    this.work = make('div', { class: 'work' });
    this.main = make('main', { id: 'main', tabindex: -1 }, make('div', { class: 'heading' }, this.title, this.lead), this.notices, this.work);
  }

  /* Not an address: the hash is the page's state. */
  skip() {
    const toMain = (event) => { event.preventDefault(); this.main.focus(); };
    return make('a', { class: 'skip', href: '#main', onclick: toMain }, word('page.skip'));
  }

  banner() {
    this.links = views.map(({ name: view, text }) => make('a', { 'data-view': view }, word(text)));
    this.nav = make('nav', { 'aria-label': word('page.views') }, ...this.links);
    this.brand = make('a', { class: 'brand', translate: 'no' }, make('span', { class: 'brand-mark', 'aria-hidden': 'true' }), make('span', { class: 'brand-name' }, 'posenc'));
    return make('header', { class: 'banner' }, this.brand, this.nav, this.toolbar);
  }

  footer() {
    this.address = make('p', { class: 'address', translate: 'no' });
    const link = (href) => make('a', { href }, make('code', null, href));
    return make('footer', null, make('p', null, word('page.law')),
      make('p', { class: 'footer-links' }, link('/schemes'), link('/presets'), link('/openapi.json'), link('/metrics')), this.address);
  }

  /* The order of reading and of Tab is the order seen: wide, configurations stand at the left; else the figure is first. */
  arrange() {
    const order = WIDE.matches ? [this.side, this.stage, this.panel] : [this.stage, this.side, this.panel];
    this.work.replaceChildren(...order);
  }

  /* Titles, links and what can be done, of a state. */
  update(page) {
    const { view } = page.store.state;
    const row = views.find((one) => one.name === view);
    if (view !== this.shown) this.showView(row);
    for (const link of this.links) link.href = page.href(link.dataset.view);
    this.brand.href = page.href('gallery');
    this.tools.undo.disabled = !page.store.canUndo;
    this.tools.redo.disabled = !page.store.canRedo;
    this.add.disabled = page.configs().length >= 4;
    this.work.dataset.forms = row.alone ? 'none' : 'shown';
    this.address.textContent = location.href.replace(/#.*|$/, print(page.store.state));
  }

  showView(row) {
    this.shown = row.name;
    this.current = row;
    for (const link of this.links) {
      if (link.dataset.view === row.name) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    this.main.dataset.open = row.name;
    this.titles ??= this.keepTitles();
    this.titles();
    this.nav.querySelector('[aria-current]').scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

  /* Title, lead and document.title follow view and language. */
  keepTitles() {
    const write = () => {
      this.title.textContent = word(this.current.text);
      this.lead.textContent = word(`${this.current.text}.lead`);
      document.title = this.current.name === 'gallery' ? word('site.title') : word('site.view', { view: word(this.current.text) });
    };
    rewrite(this.title, write);
    return write;
  }

  showTheme() {
    this.theme.replaceChildren(icon(document.documentElement.dataset.theme === 'dark' ? 'sun' : 'moon'));
  }
}
