/* A figure and the state it is in (data-state): what is seen while its server computes, refuses, is busy or away. A
 * view gives it jobs; a job asks, draws and calls drawn(). */
import { Asker, Away, Refusal, busy } from './ask.js';
import { whenBack } from './asking/away.js';
import { make } from './dom.js';
import { hyphened, printed, short } from './draw/numbers.js';
import { Notices } from './states.js';
import { askToken } from './asking/token.js';
import { bind, word } from './words.js';

const SLOW_MS = 300;     /* what is answered sooner shows no progress */
const TRIES_MAX = 5;

const standing = new Set();

/* Of a canvas of lines: draws it anew on another context, in pixels of the page. */
export const painters = new WeakMap();

/* The figures on the page, in the order they were made. */
export const figures = () => [...standing];

export class Figure {
  #asker = new Asker();
  #last = null;            /* the job that a retry runs again */
  #tries = 0;
  #tableAsker = new Asker();
  #slow = null;
  #unwait = () => {};
  #unseen = true;          /* no picture yet */
  #complained = false;     /* a control is marked because of this figure */
  #stopped = false;        /* refused by its view or cancelled: a picture that is still on its way stays away */

  /* Set by owners: the request of the picture as png, { path, body } or null; what fills the data table. */
  png = () => null;
  onTable = null;

  constructor(page, { view, slot, label }) {
    Object.assign(this, { page, view, slot });
    this.notices = new Notices();
    this.title = make('span', { class: 'figure-title' }, label);
    this.toolbar = make('div', { class: 'toolbar' });
    this.stage = make('div', { class: 'stage' });
    this.extra = make('div', { class: 'figure-extra' });
    this.caption = make('figcaption', { 'data-caption': '' });
    this.table = make('details', { 'data-table': '', ontoggle: () => this.fillTable() },
      make('summary', null, word('figure.table')));
    const promises = { 'data-figure': view, 'data-config': slot, 'data-state': 'loading' };
    this.element = make('figure', { class: 'unseen', ...promises, 'aria-label': label, oncopy: copyPlain },
      make('div', { class: 'figure-head' }, this.title, this.toolbar),
      make('div', { class: 'figure-stage' }, this.stage, this.notices.element),
      this.extra, this.caption, this.table);
    standing.add(this);
  }

  get state() { return this.element.dataset.state; }
  set state(name) { this.element.dataset.state = name; }

  /* Other words for what the figure shows, for instance after another output was chosen. */
  rename(label) {
    this.title.replaceChildren(bind(document.createTextNode(''), null, label));
    bind(this.element, 'aria-label', label);
  }

  /* Runs job(get, stage); a newer one takes its place. Returns when it has ended, in whatever way. */
  ask(job) {
    this.#last = job;
    /* A server that is busy or away is not asked by each movement of a slider: the newest job waits instead. */
    if (this.notices.waiting) return Promise.resolve();
    return this.#run(this.page.cause?.() ?? 'load');
  }

  /* Asks the last job again, because its user, a countdown or a server that is back says so. */
  again(cause = 'link') {
    if (!this.#last) return Promise.resolve();
    this.#leave();
    return this.#run(cause);
  }

  /* The same behind the notice of a countdown, which stays until the outcome is known. */
  #againQuietly() {
    this.notices.stopWaiting();
    return this.#run('load', true);
  }

  async #run(cause, quiet = false) {
    this.#load(quiet);
    const job = this.#last;
    try {
      if (await this.#asker.ask((get, stage) => job(this.#counted(get), stage))) {
        this.#tries = 0;
        this.#ended();
      }
    } catch (error) {
      if (this.#asker.idle) this.#fail(error, cause);
    }
  }

  #load(quiet) {
    this.#stopped = false;
    const state = this.#unseen ? 'loading' : 'stale';
    if (!quiet) this.state = state;
    this.#slow ??= setTimeout(() => {
      this.state = state;
      this.notices.loading(() => this.cancel());
    }, SLOW_MS);
  }

  /* A job's get, its answers' bytes told to the notice as one sum. */
  #counted(get) {
    const answers = new Map();
    return (request, options) => get(request, {
      onProgress: (...bytes) => this.notices.progress(answers.set(request, bytes).values()),
      ...options,
    });
  }

  /* A picture stands on the canvas. */
  drawn() {
    if (this.#stopped) return;
    if (this.#unseen && !performance.getEntriesByName('posenc:first-picture').length) {
      performance.mark('posenc:first-picture');
    }
    this.#unseen = false;
    this.element.classList.remove('unseen');
    this.#leave();
    this.#unmark();
    this.state = 'ready';
    this.element.dispatchEvent(new Event('posenc:drawn', { bubbles: true }));
  }

  #ended() {
    if (!this.#asker.idle) return;
    if (this.state !== 'ready') this.drawn();
    this.#leave();
    this.fillTable();
  }

  /* Forgets what was waited for and what is said about it. */
  #leave() {
    clearTimeout(this.#slow);
    this.#slow = null;
    this.#unwait();
    this.#unwait = () => {};
    this.notices.clear();
  }

  #fail(error, cause) {
    this.#leave();
    if (error instanceof Away) this.#away();
    else if (!(error instanceof Refusal)) this.#broken(error);
    else if (error.status === 429 || error.status === 503) this.#busy(error);
    else if (error.status === 401 || error.status === 403) this.#private(error);
    else this.#refused(error.problem, cause);
  }

  #refused(problem, cause) {
    this.state = 'refused';
    this.notices.refused(problem.detail);
    this.page.refused?.(this.slot, problem, cause);
    this.#complained = true;
  }

  #unmark() {
    if (this.#complained) this.page.refused?.(this.slot, null);
    this.#complained = false;
  }

  /* This view cannot show this configuration; the text says which it can. */
  refuse(text) {
    this.#stopped = true;
    this.#asker.abort();
    this.#leave();
    this.state = 'refused';
    this.notices.refused(text);
  }

  #busy({ problem, retryAfter }) {
    this.state = 'busy';
    this.#tries += 1;
    const seconds = this.#tries <= TRIES_MAX ? retryAfter : null;
    this.notices.busy(problem.detail, seconds, {
      again: () => this.#againQuietly(),
      retry: () => {
        this.#tries = 0;
        this.again();
      },
      stop: () => this.cancel(),
    });
  }

  #away() {
    this.state = 'away';
    this.notices.away();
    this.#unwait = whenBack(() => this.again('load'));
  }

  async #private({ problem }, byUser = false) {
    this.state = 'private';
    this.notices.private(problem.detail, () => this.#private({ problem }, true));
    if (await askToken(problem.detail, { byUser })) this.again('load');
  }

  /* A mistake of the page itself: say so here, and where a developer looks. */
  #broken(error) {
    this.state = 'refused';
    this.notices.refused(String(error.message || error));
    reportError(error);
  }

  cancel() {
    this.#stopped = true;
    this.#asker.abort();
    this.#leave();
    this.#tries = 0;
    this.state = 'cancelled';
    this.notices.cancelled(() => this.again());
  }

  /* Fills the data table while it is open. */
  async fillTable() {
    if (!this.table.open || !this.onTable || this.#unseen) return;
    try {
      await this.#tableAsker.ask((get, stage) => this.onTable(get, stage));
    } catch (error) {
      if (!(error instanceof Refusal || error instanceof Away)) reportError(error);
    }
  }

  /* What the open data table holds. */
  showTable(content) { this.table.replaceChildren(this.table.firstChild, content); }

  close() {
    standing.delete(this);
    this.#leave();
    this.#unmark();
    this.#asker.close();
    this.#tableAsker.close();
    this.element.remove();
  }
}

/* Of a figure, tables above all, programs are to read what is copied. */
function copyPlain(event) {
  if (event.target.matches('input, textarea')) return;
  event.clipboardData.setData('text/plain', hyphened(String(getSelection())));
  event.preventDefault();
}

/* A number that the server gave, written shorter; its own text stays in `value`. */
export function datum(value, what, text) {
  return make('data', { value: String(value), 'data-what': what }, text ?? printed(value));
}

/* Likewise, rounded to so many digits. */
export const shortDatum = (value, what, digits) => datum(value, what, short(Number(value), digits));

/* 1000000 with thin spaces, so in any language. */
export const grouped = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, '\u2009');

/* Draws by paint(), counted as busy and measured as posenc:paint. */
export function paintMeasure(paint) {
  busy.begin();
  const start = performance.now();
  try {
    return paint();
  } finally {
    performance.measure('posenc:paint', { start });
    busy.end();
  }
}
