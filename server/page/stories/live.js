/* A figure of a story: a view of the page within the text, with a state of its own instead of the address. It is built
 * when it comes near, so that a story with twenty figures opens as fast as one with two. */
import { busy } from '../ask.js';
import { action, make } from '../dom.js';
import { Page } from '../page.js';
import { Store, parse, print } from '../state.js';
import { viewNamed } from '../views/list.js';
import { partFailed } from '../views/parts.js';
import { word } from '../words.js';
import { prose } from './prose.js';
import { Touches } from './touch.js';

/* Store writes its state into the address of a window: this one keeps it to itself. */
const still = (hash) => ({ location: { hash }, history: { pushState() {}, replaceState() {} }, addEventListener() {} });

/* The page as a view within a story sees it. */
class FigurePage extends Page {
  constructor(main, name, row) {
    const { catalogue, announce, notice, help, paste } = main;
    super({
      store: new Store({ window: still(hashOf(row)), known: main.store.known }), catalogue, announce, notice, help,
      paste,
    });
    /* views that do something by themselves ask whether they stand in a story */
    Object.assign(this, { main, name, story: row });
    this.start = this.store.state;
  }

  /* Language and theme are those of the page. */
  look() {
    const { lang, theme } = this.main.store.state;
    return { lang, theme };
  }

  /* As the story calls what it compares. */
  calledBy(slot) {
    const version = this.story.versions?.['abcd'.indexOf(slot)];
    const { name } = this;
    return version ? { get label() { return String(versionText(name, version)); } } : super.calledBy(slot);
  }

  stateOf(view, patch) { return { ...super.stateOf(view, patch), ...this.look() }; }

  go(view, patch) { this.main.store.set(this.stateOf(view, patch), { undo: false }); }
  reset() { this.store.set(this.start); }
  because() {}
  cause() { return 'drag'; }   /* a refusal never takes the focus: the reader reads */

  /* The address of what is seen. */
  here() { return print(this.store.state, this.look()); }
}

export class LiveFigure {
  #handle = null;
  #closed = false;

  /* story: its name; row: of figure() in parts.js. */
  constructor(main, story, row) {
    Object.assign(this, { story, row });
    this.page = new FigurePage(main, story, row);
    this.place = make('div', { class: 'story-place' });
    this.touches = new Touches(this.page, story, row.touch);
    this.open = make('a', { class: 'button', 'data-action': 'open' }, word('story.open'));
    this.reset = action('reset', word('story.reset'), () => this.page.reset());
    this.element = make('figure', { id: `fig-${row.name}`, class: 'story-figure', 'data-bare': !row.controls,
      'data-beside': row.beside || row.view === 'trajectory' },
      this.touches.element, this.place,
      make('figcaption', null, prose('p', `${story}.fig.${row.name}`),
        prose('p', `${story}.fig.${row.name}.try`, { class: 'story-try' }),
        make('div', { class: 'toolbar' }, this.reset, this.open)));
    this.page.store.subscribe((state, before) => this.update(state, before));
    this.show();
  }

  /* The view of this figure, now that it is near. */
  async load() {
    if (this.asked) return;
    this.asked = true;
    busy.begin();
    try {
      const { default: view } = await viewNamed(this.row.view).load();
      if (!this.#closed) this.enter(view);
    } catch (error) {
      this.asked = false;
      if (this.page.view) reportError(error);   /* it was loaded: a mistake of the view itself */
      else this.place.replaceChildren(partFailed());
    } finally {
      busy.end();
    }
  }

  enter(view) {
    this.page.view = view;
    const root = make('div', { class: `view-${view.name}` });
    this.place.replaceChildren(root);
    this.watching = new MutationObserver(() => this.mirror());
    this.watching.observe(root, { subtree: true, childList: true, attributeFilter: ['data-state'] });
    this.#handle = view.open(this.page, root);
    this.hideOthers(root);
    this.update(this.page.store.state, this.page.store.state);
  }

  /* Of the view's own controls the story shows those that it speaks of. */
  hideOthers(root) {
    if (!this.row.controls) return;
    const controls = ':is(.view-controls, .controls) :is([data-slider], .segmented, select)';
    for (const control of root.querySelectorAll(controls)) {
      const name = control.dataset.slider ?? control.dataset.field;
      if (!this.row.controls.includes(name)) control.closest('.field').classList.add('unasked');
    }
  }

  update(state, before) {
    this.show();
    this.#handle?.update?.(state, before);
  }

  /* The figure of the story is in the state of the view's figures: of the first that is not ready. */
  mirror() {
    const states = Array.from(this.place.querySelectorAll('[data-figure]'), (figure) => figure.dataset.state);
    if (states.length) this.element.dataset.state = states.find((state) => state !== 'ready') ?? 'ready';
  }

  /* What stands around the picture. */
  show() {
    this.open.href = this.page.here();
    this.reset.disabled = print(this.page.store.state) === print(this.page.start);
    this.touches.update();
  }

  close() {
    this.#closed = true;
    this.watching?.disconnect();
    this.#handle?.close?.();
  }
}

const versionText = (story, name) => word(['printed', 'defined'].includes(name) ? `story.${name}` : `${story}.${name}`);

function hashOf({ view, configs, address }) {
  const { state, bad } = parse(`#view=${view}&${address ?? ''}`);
  if (bad.length) throw new Error(`the address of a figure: ${bad}`);
  return print({ ...state, configs: configs ?? {} });
}
