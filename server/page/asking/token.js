/* The dialog that asks for a token (401, 403). One for the page: all figures that were refused wait for its end. */
import { setToken, token } from '../ask.js';
import { action, make, served } from '../dom.js';
import { word } from '../words.js';

let opened = null;     /* promise of the dialog that stands open */
let declined = false;  /* its user went on without: from then on only a button opens it */

/* detail: why the server refused, which is shown if a token was sent: without one the dialog itself gives the reason.
 * True once a token was given, false when the dialog was closed without one. */
export function askToken(detail, { byUser = false } = {}) {
  if (declined && !byUser) return Promise.resolve(false);
  opened ??= open(detail).then((given) => {
    opened = null;
    declined = !given;
    return given;
  });
  return opened;
}

function open(detail) {
  const secret = { type: 'password', autocomplete: 'off', spellcheck: 'false', required: true };
  const field = make('input', { 'data-field': 'token', ...secret });
  const keep = make('input', { type: 'checkbox', 'data-field': 'token-keep' });
  const form = make('form', { method: 'dialog' },
    make('h2', null, word('token.title')),
    make('p', null, word('token.why')),
    token() && served(detail, 'p', { class: 'token-detail' }),
    make('label', { class: 'token-field' }, word('token.field'), field),
    make('label', { class: 'token-keep' }, keep, word('token.keep')),
    make('div', { class: 'dialog-actions' },
      action('cancel', word('token.without'), () => dialog.close()),
      make('button', { type: 'submit', value: 'given', class: 'primary', 'data-action': 'start' }, word('token.use'))));
  const dialog = make('dialog', { 'data-notice': 'private', class: 'token', 'aria-label': word('token.title') }, form);
  document.body.append(dialog);
  dialog.showModal();
  field.focus();
  return new Promise((resolve) => dialog.addEventListener('close', () => {
    const given = dialog.returnValue === 'given' && field.value !== '';
    if (given) setToken(field.value.trim(), keep.checked);
    dialog.remove();
    resolve(given);
  }));
}
