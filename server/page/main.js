/* Starts the page: settings, catalogue, frame; then opens the view that the address names and keeps all parts up to
 * date. */
import { Drop, listenForUndo } from './frame/anywhere.js';
import { Away, Refusal, busy, get } from './ask.js';
import { reloadWhenBack, whenBack } from './asking/away.js';
import * as catalogue from './catalogue.js';
import { action, code, make, name } from './dom.js';
import { Frame } from './frame/frame.js';
import { Page } from './page.js';
import { change, settle } from './frame/settings.js';
import { Store, parse } from './state.js';
import { askToken } from './asking/token.js';
import { language, live, phrase, word } from './words.js';
import { viewNamed, views } from './views/list.js';

const home = { view: location.pathname === '/docs' ? 'docs' : undefined };

/* ---- the start ---- */

async function start() {
  busy.begin();
  const { state } = parse(location.hash, home);
  viewNamed(state.view).load().catch(() => {});   /* on its way while the rest is asked */
  const offered = catalogue.loadCatalogue(get);   /* so is this, for which no text is needed unless it fails */
  offered.catch(() => {});
  await settled(state);
  await loaded(offered);
  const workbench = new Workbench();
  await workbench.show();
  busy.end();
}

const pause = (seconds) => new Promise((over) => setTimeout(over, 1000 * seconds));

/* Without texts nothing can be said, so this only tries again. */
async function settled(state) {
  for (let wait = 1; ; wait = Math.min(2 * wait, 8)) {
    try {
      return await settle(state);
    } catch {
      await pause(wait);
    }
  }
}

/* The catalogue, however long the server takes. Then the frame replaces what index.html or foreword() shows. */
async function loaded(offered) {
  for (;;) {
    try {
      await offered;
      for (const one of document.querySelectorAll('.start')) one.remove();
      return;
    } catch (error) {
      busy.end();   /* nothing is asked until there is hope */
      await mended(error);
      busy.begin();
    }
    offered = catalogue.loadCatalogue(get);
  }
}

function mended(error) {
  if (error instanceof Refusal && [401, 403].includes(error.status)) return authorized(error.message);
  if (!(error instanceof Away || error instanceof Refusal)) throw error;
  foreword('away', word('page.away'));
  return error instanceof Away ? new Promise(whenBack) : pause(error.retryAfter);
}

/* Until a token was given; who closes the dialog finds a button that opens it again. */
async function authorized(detail) {
  for (let byUser = false; !await askToken(detail, { byUser }); byUser = true) {
    await new Promise((wanted) => foreword(
      'locked', word('figure.private'), action('start', word('token.enter'), wanted)
    ));
  }
}

/* What is seen before there is a frame. */
function foreword(state, ...content) {
  document.querySelector('main')?.remove();
  document.body.append(make('main', { class: 'start', 'data-state': state === 'locked' ? 'private' : state },
    make('h1', null, word('site.title')),
    make('div', { class: 'notice', 'data-notice': state, role: 'status' }, ...content)));
}

/* ---- the page at work ---- */

class Workbench {
  constructor() {
    this.store = new Store({ window, busy, known: { ...home, cmaps: Object.keys(catalogue.catalogue().cmaps) } });
    const acts = this.acts();
    this.frame = new Frame(acts);
    this.page = new Page({ store: this.store, catalogue, help: acts.help, paste: acts.paste,
      announce: (text) => this.frame.announce(text), notice: (name, content) => this.frame.notice(name, content) });
    if (new URLSearchParams(location.search).has('embed')) this.embed();
    this.drop = new Drop(this.page);
    this.settled = Promise.resolve();
    document.body.append(this.drop.dialog);
    listenForUndo(this.store);
    this.watchCauses();
    this.store.subscribe((state, before) => this.update(state, before));
  }

  /* ?embed: the figure in front alone, for the page of another, and a way to all of it. A view without figures of
   * configurations, a story for one, is shown whole. */
  embed() {
    if (viewNamed(this.store.state.view).alone) return;
    const link = make('a', { class: 'embed-link', target: '_blank', rel: 'noopener', translate: 'no' }, 'posenc');
    document.documentElement.dataset.embed = '';
    document.body.append(link);
    this.single = () => {
      link.href = `${location.pathname}${location.hash}`;
      this.frame.single(this.store.state.on);
    };
    document.addEventListener('posenc:drawn', this.single);
  }

  acts() {
    return {
      undo: () => this.store.undo(),
      redo: () => this.store.redo(),
      add: () => this.page.addConfig(),
      reset: () => this.page.reset(),
      paste: () => this.drop.open(),
      help: () => this.help(),
      lang: () => change('lang', this.store).catch(() => this.page.notice('lang', word('page.away'))),
      theme: () => change('theme', this.store),
    };
  }

  async help() {
    const { helpDialog } = await import('./frame/help.js').catch(() => ({}));
    if (!helpDialog) return this.page.notice('help', word('page.partFailed'));
    if (!this.dialog) document.body.append(this.dialog = helpDialog());
    if (!this.dialog.open) this.dialog.showModal();
  }

  /* What the user did last, before the figures hear of it. */
  watchCauses() {
    const because = (event, reason) => document.addEventListener(event, (happening) => {
      const why = reason(happening);
      if (why) this.page.because(why);
    }, true);
    because('keydown', ({ key }) => key === 'Enter' && 'key');
    because('input', ({ target }) => target.type === 'range' ? 'drag' : 'type');
    because('click', ({ target }) => target.closest('a') && 'link');
    because('pointerdown', ({ target }) => target.closest('canvas') && 'drag');
    for (const event of ['hashchange', 'popstate']) {
      window.addEventListener(event, () => this.page.because('link'), true);
    }
  }

  /* Shows the first state. */
  show() { return this.update(this.store.state, this.store.state); }

  async update(state, before) {
    if (state.lang !== before.lang || state.theme !== before.theme) this.settled = this.dress(state);
    if (this.opened?.name !== state.view) await this.open(state.view);
    else if (this.handle) this.refresh(state, before);
  }

  /* Language and theme as the address says; what cannot be had leaves the old ones. */
  async dress(state) {
    busy.begin();
    try {
      await settle(state);
    } catch {
      /* its texts did not come */
    } finally {
      busy.end();
    }
  }

  /* Opens a view; of several asked for in a row only the newest is opened. */
  async open(name) {
    if (this.opened) this.turn(name);
    const mine = this.opened = { name };
    this.leave();
    this.frame.update(this.page);
    busy.begin();
    try {
      const [{ default: view }] = await Promise.all([
        viewNamed(name).load(), viewNamed(name).alone || this.loadSides(),
      ]);
      if (this.opened === mine) this.enter(view);
    } catch (error) {
      if (this.opened === mine) this.failed(name);
      if (this.page.view?.name === name) reportError(error);   /* it was loaded: a mistake of the view itself */
    } finally {
      busy.end();
    }
  }

  /* From one view to another, as from page to page. The focus does not get lost with what had it. */
  turn(name) {
    window.scrollTo(0, 0);
    if (this.frame.work.contains(document.activeElement)) this.frame.main.focus({ preventScroll: true });
    this.settled.then(() => this.page.announce(word(`view.${name}`)));
  }

  /* What stands beside the views that have configurations: not needed to see the gallery. */
  async loadSides() {
    const [{ Forms }, { Panel }] = await Promise.all([import('./form.js'), import('./copying/panel.js')]);
    this.page.forms ??= new Forms(this.page, this.frame.forms, this.frame.head);
    this.page.panel ??= new Panel(this.page, this.frame.panel);
  }

  leave() {
    this.handle?.close();
    this.handle = null;
    this.page.view = null;
    this.page.resolved.clear();
    this.frame.stage.replaceChildren();
  }

  enter(view) {
    this.page.view = view;
    this.page.notice('view', null);
    const root = make('div', { class: `view-${view.name}` });
    this.frame.stage.append(root);
    this.handle = view.open(this.page, root);
    this.refresh(this.store.state, this.store.state);
  }

  /* The network failed, or the server has a newer page. A browser does not ask again for a module that failed: only the
   * page loaded anew brings it. */
  failed(name) {
    const href = this.page.href(name);
    const anew = (event) => {
      event.preventDefault();
      history.replaceState(null, '', href);
      location.reload();
    };
    this.opened = null;
    this.page.notice('view',
      phrase('page.viewFailed', { view: make('a', { href, onclick: anew }, word(`view.${name}`)) }));
    reloadWhenBack();
  }

  refresh(state, before) {
    this.frame.update(this.page);
    this.showBad();
    this.showLack(state);
    this.page.forms?.update(state, before);
    this.handle?.update?.(state, before);
    this.page.panel?.update(this.handle, state);
    this.single?.();
  }

  showBad() {
    const { bad } = this.store;
    if (bad === this.bad) return;
    this.bad = bad;
    const keys = bad.flatMap((key, i) => i ? [', ', code(key)] : [code(key)]);
    this.page.notice('state', bad.length ? phrase('notice.state', { keys: make('span', null, ...keys) }) : null);
  }

  /* A view that shows no difference says which do. */
  showLack({ view, on }) {
    const { alone, difference } = viewNamed(view);
    const lacks = on === 'b-a' && !alone && !difference && Boolean(this.page.config('a') && this.page.config('b'));
    if (lacks !== Boolean(this.able)) {
      this.able = lacks
        ? views.filter((row) => row.difference)
          .map(({ name: able }) => make('a', { 'data-view': able }, word(`view.${able}`)))
        : null;
      const list = () => make('span', null,
        this.able.flatMap((link, i) => [i ? live(() => language() === 'zh' ? '、' : ', ') : '', link]));
      this.page.notice('difference',
        lacks ? phrase('notice.difference', { difference: name('b − a'), views: list() }) : null);
    }
    for (const link of this.able ?? []) link.href = this.page.href(link.dataset.view);
  }
}

start();
