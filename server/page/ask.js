/* Everything that the page asks of its server goes through here; with it <html data-busy> and the token. */
import { Asker as PlainAsker } from './asking/asker.js';
import { Client } from './asking/client.js';
import { language } from './words.js';

export { Away, Refusal } from './asking/client.js';

/* ---- <html data-busy>: "0" once nothing has been asked or drawn for a macrotask and a frame ---- */

let working = 0;
let ends = 0;

export const busy = {
  begin() {
    working += 1;
    show('1');
  },
  end() {
    working -= 1;
    const mine = ends += 1;   /* an earlier end has waited for a frame of its own, too soon for this one */
    setTimeout(() => nextFrame(() => working || mine !== ends || show('0')));
  },
};

function show(value) {
  const root = globalThis.document?.documentElement;
  if (root && root.dataset.busy !== value) root.dataset.busy = value;
}

/* A hidden tab has no frames. */
function nextFrame(then) {
  if (globalThis.document?.visibilityState === 'visible') requestAnimationFrame(() => setTimeout(then));
  else setTimeout(then);
}

/* ---- the token: in memory, and in sessionStorage only where its user wants it ---- */

const TOKEN = 'posenc-token';
let secret = null;

export function token() {
  secret ??= stored()?.getItem(TOKEN) ?? '';
  return secret;
}

export function setToken(value, keep = false) {
  secret = value;
  if (keep && value) stored()?.setItem(TOKEN, value);
  else stored()?.removeItem(TOKEN);
  client.forget();
}

/* A browser that allows no storage throws when it is named. */
function stored() {
  try {
    return globalThis.sessionStorage;
  } catch {
    return undefined;
  }
}

/* ---- asking ---- */

const client = new Client({ origin: globalThis.location?.origin ?? '', bearer: token, busy, language });

export const ask = (request, options) => client.ask(request, options);
export const get = (path, options) => client.ask({ path, method: 'GET' }, options);
export const address = (path, body) => client.address(path, body);

/* The Asker of a figure, which asks this page's server. */
export class Asker extends PlainAsker {
  constructor(options) { super({ get: ask, busy, ...options }); }
}
