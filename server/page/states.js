/* What a figure says about the state it is in: one notice at a time, [data-notice=NAME], over its last picture. */
import { lookNow } from './asking/away.js';
import { action, make, served } from './dom.js';
import { bind, rewrite, word } from './words.js';

export class Notices {
  #countdown = null;

  constructor() {
    this.element = make('div', { class: 'figure-notices' });
  }

  /* A countdown runs, or the server is away: what is asked now waits. */
  waiting = false;

  clear() {
    this.stopWaiting();
    this.element.replaceChildren();
  }

  stopWaiting() {
    clearInterval(this.#countdown);
    this.waiting = false;
  }

  #show(name, attributes, ...children) {
    this.clear();
    this.notice = make('div', { class: 'notice', 'data-notice': name, ...attributes }, ...children);
    this.element.append(this.notice);
  }

  loading(cancel) {
    const bar = make('progress', { 'aria-label': word('figure.loading') });
    const bytes = make('span', { class: 'notice-bytes' });
    this.#show('loading', { role: 'status' }, make('span', null, word('figure.loading')), bar, bytes,
      action('cancel', word('figure.cancel'), cancel));
    this.#bar = { bar, bytes };
  }

  #bar = null;   /* what progress() writes to */

  /* answers: [received, total] of each; without a Content-Length total is null, and so is that of all. */
  progress(answers) {
    if (!this.#bar?.bar.isConnected) return;
    const [received, total] = sumOf([...answers]);
    const { bar, bytes } = this.#bar;
    if (total !== null) Object.assign(bar, { max: Math.max(total, 1), value: received });
    else bar.removeAttribute('value');
    bytes.textContent = total === null
      ? size(received)
      : word('figure.bytes', { received: size(received), total: size(total) });
  }

  refused(detail) {
    this.#show('refused', { role: 'alert' }, served(detail));
  }

  cancelled(retry) {
    this.#show('cancelled', { role: 'status' }, make('p', null, word('figure.cancelled')),
      action('retry', word('figure.retry'), retry));
  }

  away() {
    this.#show('away', { role: 'status' }, make('p', null, word('figure.away')),
      action('retry', word('figure.now'), lookNow));
    this.waiting = true;
  }

  private(detail, open) {
    this.#show('private', { role: 'status' }, make('p', null, word('figure.private')),
      served(detail), action('start', word('token.enter'), open));
  }

  /* Counts down to again(); seconds null: it was tried often enough, only the button tries once more. */
  busy(detail, seconds, { again, retry, stop }) {
    const clock = make('p', { class: 'notice-clock' });
    this.#show('busy', { role: 'status' },
      served(detail), clock,
      action('retry', word('figure.retry'), retry),
      seconds === null ? null : action('stop', word('figure.stop'), stop));
    if (seconds === null) return void bind(clock, null, word('figure.gaveUp'));
    this.waiting = true;
    this.#count(clock, seconds, again);
  }

  #count(clock, seconds, over) {
    let left = seconds;
    const notice = this.notice;
    const write = () => {
      notice.setAttribute('data-seconds', left);
      clock.textContent = word('figure.again', { seconds: left });
    };
    rewrite(clock, write);
    this.#countdown = setInterval(() => {
      left -= 1;
      if (left > 0) write();
      else over();
    }, 1000);
  }
}

function sumOf(answers) {
  const add = (at) => answers.reduce((sum, one) => sum + one[at], 0);
  return [add(0), answers.some(([, total]) => total === null) ? null : add(1)];
}

const UNITS = [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]];

/* 1.5 MiB: of files, so powers of two. */
export function size(bytes) {
  const [unit, factor] = UNITS.find(([, least]) => bytes >= least) ?? ['B', 1];
  return `${factor === 1 ? bytes : (bytes / factor).toFixed(1)} ${unit}`;
}
