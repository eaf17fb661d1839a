/* What the page as a whole has to say: one notice for each name above the view, and a polite line for screen readers. */
import { make } from './dom.js';
import { icon } from './icons.js';
import { bind, word } from './words.js';

export class Board {
  constructor() {
    this.element = make('div', { class: 'notices' });
    this.live = make('p', { class: 'visually-hidden', 'data-live': '', 'aria-live': 'polite' });
  }

  /* content: text or node; null takes the notice away. */
  show(name, content) {
    for (const old of this.element.querySelectorAll(`:scope > [data-notice="${name}"]`)) old.remove();
    if (content) this.element.append(this.notice(name, content));
  }

  notice(name, content) {
    const close = make('button', { type: 'button', class: 'icon quiet', 'aria-label': word('notice.close'), title: word('notice.close'),
      onclick: () => this.show(name, null) }, icon('close'));
    return make('div', { class: 'notice', 'data-notice': name, role: 'status' }, make('div', null, content), close);
  }

  /* The same text twice is said twice only if the line was empty between. */
  announce(text) {
    this.live.textContent = '';
    setTimeout(() => bind(this.live, null, String(text)), 50);
  }
}
