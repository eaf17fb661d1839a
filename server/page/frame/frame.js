/* The frame around the view: banner, navigation, title, notices, places for configurations, view and inspector,
 * footer. */
import { action, make } from '../dom.js';
import { icon, tool } from '../icons.js';
import { print } from '../state.js';
import { bind, label, language, live, rewrite, summary, word } from '../words.js';
import { stories } from '../stories/list.js';
import { groups, viewNamed, views } from '../views/list.js';
import { startOf } from '../views/gallery/starts.js';

const WIDE = matchMedia('(min-width: 1080px)');

/* Offered when no configuration is left: one or two of each family. */
const EXAMPLES = ['sinusoidal', 'rope', 'alibi', 't5', 'shaw'];

/* The button at the corner of a dialog or notice; in a form it closes its dialog. */
export const closer = (onclick) =>
  tool('close', word('notice.close'), { type: onclick ? 'button' : 'submit', onclick });

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
    this.tools = this.makeTools(acts);
    this.add = action('add', word('page.add'), acts.add, { class: 'quiet' });
    this.add.prepend(icon('add'));
    this.reset = tool('reset', word('page.reset'), { 'data-action': 'reset', onclick: acts.reset });
    this.makeMain();
    document.body.append(this.skip(), this.banner(), this.main, this.footer(), this.live);
    WIDE.addEventListener('change', () => this.arrange());
    this.arrange();
  }

  makeTools(acts) {
    const names = ['undo', 'redo', 'paste', 'lang', 'theme', 'help'];
    const tools = Object.fromEntries(names.map((name) => [name,
      tool(name === 'lang' ? otherLanguage() : name, word(`page.${name}`), {
        'data-action': name, onclick: acts[name],
        /* its name is what is seen of it: who speaks to the computer can say that */
        ...name === 'lang' && { 'aria-label': null },
      })]));
    const showTheme = () =>
      tools.theme.replaceChildren(icon(document.documentElement.dataset.theme === 'dark' ? 'sun' : 'theme'));
    document.addEventListener('posenc:theme', showTheme);
    showTheme();
    return tools;
  }

  makeMain() {
    this.title = make('h1');
    this.lead = make('p', { class: 'lead' });
    this.explained = make('a', { class: 'explained', hidden: true });
    this.live = make('p', { class: 'visually-hidden', 'data-live': '', 'aria-live': 'polite' });
    /* it is in the old language */
    rewrite(this.live, (line) => { clearTimeout(this.saying); line.textContent = ''; });
    this.notices = make('div', { class: 'notices' });
    this.forms = make('div');
    this.side = make('section',
      { class: 'side', id: 'side', 'aria-labelledby': 'side-title', 'data-sheet': 'tray' },
      make('div', { class: 'side-head' }, make('h2', { id: 'side-title' }, word('page.configs')), this.reset, this.add,
        this.makeSheetButton()),
      this.forms);
    this.side.addEventListener('pointerdown', ({ target }) => target.type === 'range' && this.showPicture());
    this.side.addEventListener('focusin', ({ target }) => target.type === 'range' && this.showPicture());
    new ResizeObserver(() => this.measureTray()).observe(this.side);
    this.stage = make('div', { class: 'view' });
    this.panel = make('section', { class: 'inspector', 'aria-label': word('page.inspector') });
    this.work = make('div', { class: 'work' });
    this.head = make('div');
    this.main = make('main', { id: 'main', tabindex: -1 },
      make('div', { class: 'heading' }, this.title, this.lead, this.explained),
      this.notices, this.head, this.work);
  }

  /* ---- the tray: below a narrow page's figure, always on the screen, the first sliders of the configuration in front;
   * as a sheet, all of it ---- */

  makeSheetButton() {
    const text = make('span');
    this.sheet = make('button', { type: 'button', class: 'sheet', 'aria-controls': 'side', 'aria-expanded': 'false',
      onclick: () => this.openSheet(!this.isSheet) }, text);
    this.writeSheet = () => { text.textContent = word(this.isSheet ? 'page.tray' : 'page.sheet'); };
    rewrite(text, this.writeSheet);
    return this.sheet;
  }

  get isSheet() { return this.side?.dataset.sheet === 'all'; }

  openSheet(isOpen) {
    this.side.dataset.sheet = isOpen ? 'all' : 'tray';
    this.sheet.setAttribute('aria-expanded', isOpen);
    this.writeSheet();
    this.side.scrollTop = 0;
  }

  get isTray() { return getComputedStyle(this.side).position === 'fixed'; }

  /* What is behind it must know its height. */
  measureTray() {
    const height = this.isTray && !this.isSheet ? this.side.offsetHeight : 0;
    document.documentElement.style.setProperty('--tray', `${height}px`);
  }

  /* The picture that a slider of the tray changes is wholly on the screen while it moves. */
  showPicture() {
    if (!this.isTray || this.isSheet) return;
    const figures = [...this.stage.querySelectorAll('figure[data-figure]')];
    const front = figures.find((one) => one.dataset.config === this.front) ?? figures[0];
    const box = front?.querySelector('.stage')?.getBoundingClientRect();
    if (!box?.height) return;
    const top = Math.max(0, this.main.previousElementSibling.getBoundingClientRect().bottom) + 8;
    const bottom = this.side.getBoundingClientRect().top - 8;
    if (box.top >= top && box.bottom <= bottom) return;
    const isHigh = box.height > bottom - top;
    window.scrollBy({ top: box.top < top || isHigh ? box.top - top : box.bottom - bottom, behavior: 'instant' });
  }

  /* Marks the figure of a slot, else the first, as the one that an embedding page shows. */
  single(slot) {
    const all = [...this.stage.querySelectorAll('figure[data-figure]')];
    const front = all.find((one) => one.dataset.config === slot) ?? all[0];
    for (const one of all) one.toggleAttribute('data-single', one === front);
  }

  /* Not an address: the hash is the page's state. */
  skip() {
    const toMain = (event) => { event.preventDefault(); this.main.focus(); };
    return make('a', { class: 'skip', href: '#main', onclick: toMain }, word('page.skip'));
  }

  banner() {
    this.groups = groups.map((group) => make('a', { 'data-group': group }, word(`group.${group}`)));
    this.links = views.filter(({ name }) => name !== 'story')
      .map(({ name, group }) => make('a', { 'data-view': name, 'data-in': group }, word(`view.${name}`)));
    this.stories = stories.map(({ name }) =>
      make('a', { 'data-story': name, 'data-in': 'learn' }, word(`story.${name}.short`)));
    const [gallery, walk, ...others] = this.links;
    this.brand = make('a', { class: 'brand', translate: 'no' },
      make('span', { class: 'brand-mark', 'aria-hidden': 'true' }), make('span', { class: 'brand-name' }, 'posenc'));
    /* Not under a pointer: its click would miss what moves away. */
    const onfocusin = ({ target }) => target.matches(':focus-visible') && this.bring(target);
    this.nav = make('div', { class: 'nav-views', onscroll: () => this.fade(), onfocusin },
      gallery, walk, this.stories, others);
    const nav = make('nav', { 'aria-label': word('page.views') }, make('div', { class: 'nav-groups' }, this.groups),
      this.nav);
    const banner = make('header', { class: 'banner' }, this.brand, nav,
      make('div', { class: 'toolbar tools' }, ...Object.values(this.tools)));
    const watch = new ResizeObserver(() => this.measure(banner));
    for (const one of [banner, this.nav, ...this.nav.children]) watch.observe(one);
    return banner;
  }

  /* What sticks below the banner must know its height: its links take two lines where they do not fit on one. */
  measure(banner) {
    const isSticky = getComputedStyle(banner).position === 'sticky';
    document.documentElement.style.setProperty('--banner', `${isSticky ? banner.offsetHeight : 0}px`);
    this.showCurrent();
    this.fade();
  }

  /* At which ends more links are. */
  fade() {
    const { scrollLeft, scrollWidth, clientWidth } = this.nav;
    this.nav.toggleAttribute('data-before', scrollLeft > 1);
    this.nav.toggleAttribute('data-after', scrollLeft + clientWidth < scrollWidth - 1);
  }

  /* Along the row of links alone: the page stays where it is. */
  bring(link) {
    if (link) {
      this.nav.scrollTo({
        left: link.offsetLeft - this.nav.offsetLeft - (this.nav.clientWidth - link.offsetWidth) / 2,
        behavior: 'instant',
      });
    }
  }

  showCurrent() { this.bring([...this.nav.children].find((one) => one.ariaCurrent)); }

  footer() {
    this.address = make('p', { class: 'address', translate: 'no' });
    const links = ['/schemes', '/presets', '/openapi.json', '/metrics']
      .map((path) => make('a', { href: path }, make('code', null, path)));
    return make('footer', null, make('p', null, word('page.law')), make('p', { class: 'footer-links' }, ...links),
      this.address);
  }

  /* The order of reading and of Tab is the order seen: wide, configurations stand at the left; else the figure is
   * first. */
  arrange() {
    const order = WIDE.matches ? [this.side, this.stage, this.panel] : [this.stage, this.side, this.panel];
    this.work.replaceChildren(...order);
  }

  /* ---- what it has to say ---- */

  /* One notice for each name; content: text or node, null takes it away. */
  notice(name, content) {
    for (const old of this.notices.querySelectorAll(`:scope > [data-notice="${name}"]`)) old.remove();
    if (content) this.notices.append(make('div', { class: 'notice', 'data-notice': name, role: 'status' },
      make('div', null, content), closer(() => this.notice(name, null))));
  }

  /* To screen readers; the same text twice is said twice only if the line was empty between. */
  announce(text) {
    this.live.textContent = '';
    clearTimeout(this.saying);
    this.saying = setTimeout(() => { this.live.textContent = text; }, 50);
  }

  /* ---- the state ---- */

  update(page) {
    const { view, story, emptied } = page.store.state;
    const { alone } = views.find((row) => row.name === view);
    const text = view === 'story' ? `story.${story ?? stories[0].name}` : `view.${view}`;
    if (text !== this.text) this.showView(view, text, view === 'story' ? story ?? stories[0].name : null);
    for (const link of this.links) link.href = page.href(link.dataset.view);
    for (const link of this.groups) {
      link.href = page.href(views.find(({ group }) => group === link.dataset.group).name);
    }
    for (const link of this.stories) link.href = page.href('story', { story: link.dataset.story });
    this.explain(page, viewNamed(view).story);
    this.brand.href = page.href('gallery');
    this.tools.undo.disabled = !page.store.canUndo;
    this.tools.redo.disabled = !page.store.canRedo;
    this.reset.disabled = page.isExample();
    this.add.disabled = page.configs().length >= 4;
    this.work.dataset.forms = alone ? 'none' : 'shown';
    this.front = page.front();
    this.address.textContent = location.href.replace(/#.*|$/, print(page.store.state));
    this.showEmpty(page, emptied && !alone);
  }

  /* The story that explains the view in front. */
  explain(page, story) {
    this.explained.hidden = !story;
    if (!story) return this.explained.removeAttribute('data-story');
    this.explained.href = page.href('story', { story });
    if (story === this.explained.dataset.story) return;
    this.explained.dataset.story = story;
    bind(this.explained, null, live(() => String(word('page.explained', { story: word(`story.${story}`) }))));
  }

  /* text: the key of its title; story: its name where one is in front. */
  showView(view, text, story) {
    Object.assign(this, { shown: view, text });
    this.main.dataset.open = view;
    const { group } = viewNamed(view);
    const mark = (link, isCurrent, how) =>
      isCurrent ? link.setAttribute('aria-current', how) : link.removeAttribute('aria-current');
    for (const link of this.groups) mark(link, link.dataset.group === group, 'true');
    for (const link of this.links) mark(link, link.dataset.view === view, 'page');
    for (const link of this.stories) mark(link, link.dataset.story === story, 'page');
    for (const link of this.nav.children) link.hidden = link.dataset.in !== group;
    this.titles ??= this.keepTitles();
    this.titles();
    this.showCurrent();
  }

  /* Title, lead and document.title follow view and language. */
  keepTitles() {
    const write = () => {
      const title = String(word(this.text));
      this.title.textContent = title;
      this.lead.textContent = word(`${this.text}.lead`);
      document.title = this.shown === 'gallery' ? word('site.title') : `${title} · posenc`;
    };
    rewrite(this.title, write);
    return write;
  }

  /* The state `empty`: the last configuration was removed. */
  showEmpty(page, empty) {
    this.stage.classList.toggle('emptied', empty);
    this.stage.querySelector('figure.empty')?.remove();
    if (!empty) return;
    this.stage.prepend(make('figure', { class: 'empty', 'data-figure': this.shown, 'data-state': 'empty' },
      make('figcaption', { 'data-caption': '' }, make('h2', null, word('empty.title')),
        make('p', null, word('empty.try'))),
      make('div', { class: 'cards' },
        ...EXAMPLES.map(page.catalogue.scheme).filter(Boolean).map((row) => example(page, row)))));
  }
}

function example(page, row) {
  const { view, configs } = startOf(row);
  return make('a',
    { class: 'card', href: page.href(view, { configs, emptied: false, on: 'a' }), 'data-scheme': row.name },
    make('strong', { class: 'capital' }, label(row)), make('p', { class: 'hint' }, summary(row)));
}
