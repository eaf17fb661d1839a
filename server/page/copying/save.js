/* Saving a file: a link to the server where one can say it all, else fetched with progress and saved. */
import { address, ask, Refusal, token } from '../ask.js';
import { action, make, served } from '../dom.js';
import { icon } from '../icons.js';
import { size } from '../states.js';
import { word } from '../words.js';

const ASK_FIRST_BYTES = 256 * 2 ** 20;

/* Gives a blob or an address to the browser's downloads. */
export function download(href, name) {
  const link = make('a', { href, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

export function downloadBlob(blob, name) {
  const href = URL.createObjectURL(blob);
  download(href, name);
  setTimeout(() => URL.revokeObjectURL(href), 60000);   /* the browser reads it after the click */
}

/* One thing to save, [data-action=kind]. `place` is where progress, questions and refusals are shown. */
export class Saver {
  #kind; #text; #place; #shown = '';

  constructor(kind, text, place) {
    [this.#kind, this.#text, this.#place] = [kind, text, place];
    this.element = make('span', { hidden: true });
  }

  /* what: { request, name, bytes } for a file of the server, { make, name } for one made here, null for nothing. */
  show(what) {
    const href = what?.request && !token() ? address(what.request.path, what.request.body) : null;
    const shown = JSON.stringify([what && { ...what, make: Boolean(what.make) }, href]);
    this.what = what;
    if (shown === this.#shown) return;
    this.#shown = shown;
    const focused = this.element === document.activeElement;
    const next = what ? this.#build(what, href) : make('span', { hidden: true });
    this.element.replaceWith(next);
    this.element = next;
    if (focused) next.focus();
  }

  #build({ name, bytes }, href) {
    const text = [icon('save'), this.#text,
      bytes ? make('small', { class: 'file-size', translate: 'no' }, size(bytes)) : null];
    const onclick = (event) => this.#save(event, href);
    if (!href) return make('button', { type: 'button', 'data-action': this.#kind, onclick }, ...text);
    return make('a', { class: 'button', 'data-action': this.#kind, href, download: name, onclick }, ...text);
  }

  async #save(event, href) {
    const { what } = this;
    if (what.bytes > ASK_FIRST_BYTES) {
      event.preventDefault();
      if (!await confirmSize(what)) return;
      if (href) download(href, what.name);
    }
    if (href) return;
    if (!what.make) return this.#fetch(what);
    try {
      downloadBlob(await what.make(), what.name);
    } catch (error) {   /* the module that makes it did not come */
      this.#failed(error, {});
    }
  }

  /* A click on a link would carry no token, and an address of 4 KiB and more may be cut on its way. */
  async #fetch({ request, name }) {
    const stop = new AbortController();
    const bar = make('progress', { 'aria-label': name });
    const text = make('span', { class: 'notice-bytes' });
    this.#say('loading', { role: 'status' }, bar, text, action('cancel', word('figure.cancel'), () => stop.abort()));
    const onProgress = (received, total) => {
      if (total) Object.assign(bar, { max: total, value: received });
      text.textContent = total ? `${size(received)} / ${size(total)}` : size(received);
    };
    try {
      const bytes = await ask(request, { as: 'bytes', signal: stop.signal, cached: false, onProgress });
      downloadBlob(new Blob([bytes]), name);
      this.#place.replaceChildren();
    } catch (error) {
      this.#failed(error, stop.signal);
    }
  }

  #failed(error, signal) {
    if (signal.aborted) this.#say('cancelled', { role: 'status' }, make('p', null, word('figure.cancelled')));
    else if (error instanceof Refusal) this.#say('refused', { role: 'alert' }, served(error.message));
    else this.#say('away', { role: 'alert' }, make('p', null, word('panel.away')));
  }

  #say(name, attributes, ...children) {
    this.#place.replaceChildren(make('div', { class: 'notice', 'data-notice': name, ...attributes }, ...children));
  }
}

/* True where the user wants a file of this size. */
const confirmSize = ({ name, bytes }) => confirmed(word('panel.large'), [make('code', null, name), ' ',
  make('strong', { translate: 'no', 'data-bytes': bytes }, size(bytes))], word('panel.saveAnyway'));

/* Asks in a dialog; true where its user says `yes`. */
export function confirmed(title, what, yes) {
  const dialog = make('dialog', { class: 'confirm', 'aria-label': title },
    make('form', { method: 'dialog' },
      make('h2', null, title),
      make('p', null, what),
      make('div', { class: 'dialog-actions' },
        make('button', { value: '', 'data-action': 'cancel' }, word('figure.cancel')),
        make('button', { value: 'yes', class: 'primary', 'data-action': 'start' }, yes))));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener('close', () => {
    dialog.remove();
    resolve(dialog.returnValue === 'yes');
  }));
}
