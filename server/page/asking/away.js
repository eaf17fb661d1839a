/* The one watcher of a server that does not answer: asks /readyz after 1, 2, 4, 8, 8... seconds and, once it is there,
 * asks again all that has failed. */
import { Away, get } from '../ask.js';

const LONGEST_S = 8;
const waiting = new Set();   /* of functions that ask again */
let pause = 1;
let timer = null;
let looking = false;

/* Calls again() once the server answers; the returned function takes that back. */
export function whenBack(again) {
  waiting.add(again);
  if (timer === null) schedule();
  return () => waiting.delete(again);
}

/* A part of the page has failed to load. A browser does not ask again for a module that failed: where the server is
 * away, the page is loaded anew once it is back. */
export function reloadWhenBack() {
  get('/readyz', { as: 'text' }).catch((error) => { if (error instanceof Away) whenBack(() => location.reload()); });
}

/* Asks at once, for a user who will not wait. */
export function lookNow() {
  clearTimeout(timer);
  look();
}

function schedule() {
  timer = setTimeout(look, pause * 1000);
  pause = Math.min(2 * pause, LONGEST_S);
}

/* One look at a time: of two that fail, each would begin a series of its own. */
async function look() {
  if (looking) return;
  looking = true;
  try {
    if (waiting.size) await get('/readyz', { as: 'text' });
  } catch {
    return schedule();
  } finally {
    looking = false;
  }
  timer = null;
  pause = 1;
  const all = [...waiting];
  waiting.clear();
  all.forEach((again) => again());
}
