/* The guided walk: one step at a time, a few sentences and a figure. Space, arrows and a swipe lead on; each step is an
 * address. */
import { busy } from '../ask.js';
import { action, make } from '../dom.js';
import { LiveFigure } from '../stories/live.js';
import { walk } from '../stories/list.js';
import { prose } from '../stories/prose.js';
import { live, rewrite, word } from '../words.js';
import { partFailed } from './parts.js';
import { readingOf } from './story.js';

const SWIPE_PX = 60;

/* Steps by keys; where a control has its own use for them, it keeps it. */
const KEYS = { ' ': 1, ArrowRight: 1, ArrowLeft: -1 };
const OWN_KEYS = 'input, textarea, select, button, summary, dialog, canvas, .scroll, [contenteditable]';
const OWN_SWIPES = 'input, canvas, .scroll';

class Walk {
  #figure = null;
  #touched = null;   /* where a finger came down */

  constructor(page, root) {
    Object.assign(this, { page, root });
    document.addEventListener('keydown', this.#onKey);
    this.#build();
  }

  async #build() {
    busy.begin();
    try {
      const reading = await readingOf(walk).catch(() => null);
      if (!this.root) return;
      if (!reading) return this.root.replaceChildren(partFailed());
      Object.assign(this, reading);
      this.root.replaceChildren(this.#frame());
      this.update(this.page.store.state);
    } finally {
      busy.end();
    }
  }

  #frame() {
    this.place = make('div', { class: 'walk-step', onpointerdown: (event) => this.#press(event),
      onpointerup: (event) => this.#lift(event) });
    this.marks = this.sections.map(({ key }, i) => make('a',
      { 'data-sec': i + 1, 'aria-label': live(() => `${i + 1}. ${word(key)}`), title: word(key) }));
    this.count = make('p', { class: 'hint walk-count' });
    rewrite(this.count, () => this.#tellCount());
    this.back = make('a', { class: 'button', 'data-action': 'back', rel: 'prev' }, word('walk.back'));
    this.next = make('a', { class: 'button primary', 'data-action': 'next', rel: 'next' });
    rewrite(this.next, () => this.#nameNext());
    return make('article', { class: 'walk story', 'data-story': walk.name }, this.place,
      make('nav', { class: 'walk-nav', 'aria-label': word('walk.steps') }, this.back,
        make('ol', { class: 'walk-marks' }, this.marks.map((one) => make('li', null, one))), this.count, this.next),
      make('p', { class: 'hint walk-how' }, word('walk.how')));
  }

  get last() { return this.sections.length; }

  #address(step) { return this.page.href('walk', { sec: step }); }

  /* Keys and fingers; at both ends there is nothing more. */
  #go(step) {
    if (this.place && step >= 1 && step <= this.last) this.page.store.set({ sec: step }, { undo: false });
  }

  #tellCount() { this.count.textContent = this.step ? word('walk.step', { step: this.step, all: this.last }) : ''; }

  #nameNext() { this.next.textContent = word(this.step === this.last ? 'walk.again' : 'walk.next'); }

  update({ sec }) {
    if (!this.place) return;
    const step = Math.min(Math.max(sec ?? 1, 1), this.last);
    this.marks.forEach((mark, i) => {
      mark.href = this.#address(i + 1);
      if (i + 1 === step) mark.setAttribute('aria-current', 'step');
      else mark.removeAttribute('aria-current');
    });
    this.back.href = this.#address(Math.max(step - 1, 1));
    this.back.toggleAttribute('data-off', step === 1);
    this.next.href = this.#address(step === this.last ? 1 : step + 1);
    if (step === this.step) return this.#figure?.show();
    this.#show(step);
  }

  #show(step) {
    const isFirst = !this.step;
    this.step = step;
    const { key, parts } = this.sections[step - 1];
    const { figure } = parts.find((part) => part.figure);
    this.#figure?.close();
    this.#figure = new LiveFigure(this.page, walk.name, this.figures.find(({ name }) => name === figure));
    const texts = parts.filter((part) => part.key).map((part) => prose('p', part.key));
    const paste = step === this.last ? action('paste', word('page.paste'), () => this.page.paste()) : null;
    const hadFocus = this.place.contains(document.activeElement);
    this.title = prose('h2', key, { tabindex: -1 });
    this.place.replaceChildren(make('div', { class: 'story-row' },
      make('div', { class: 'story-prose' }, this.title, texts, paste), this.#figure.element));
    this.place.dataset.step = step;
    this.#tellCount();
    this.#nameNext();
    if (hadFocus) this.title.focus({ preventScroll: true });
    if (!isFirst) {
      window.scrollTo({ top: 0, behavior: 'instant' });
      this.page.announce(`${this.count.textContent}: ${word(key)}`);
    }
    this.#figure.load();
  }

  #onKey = (event) => {
    const way = KEYS[event.key];
    if (!way || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (event.target.closest?.(OWN_KEYS) || document.querySelector('dialog[open]')) return;
    event.preventDefault();
    this.#go(this.step + way);
  };

  /* What is dragged itself is no swipe. */
  #press({ pointerType, clientX, clientY, target, isPrimary }) {
    const isOurs = pointerType === 'touch' && isPrimary && !target.closest(OWN_SWIPES);
    this.#touched = isOurs ? { x: clientX, y: clientY } : null;
  }

  #lift({ clientX, clientY }) {
    if (!this.#touched) return;
    const { x, y } = this.#touched;
    this.#touched = null;
    const [right, down] = [clientX - x, clientY - y];
    if (Math.abs(right) >= SWIPE_PX && Math.abs(right) > 2 * Math.abs(down)) this.#go(this.step + (right < 0 ? 1 : -1));
  }

  close() {
    document.removeEventListener('keydown', this.#onKey);
    this.#figure?.close();
    this.root = this.place = null;
  }
}

export default { name: 'walk', open: (page, root) => new Walk(page, root) };
