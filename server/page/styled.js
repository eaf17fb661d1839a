/* Styles that only some parts need, which the first load leaves out. */
import { make } from './dom.js';

const styles = new Map();   /* address: the promise that it is there */

/* Asks for a style, once. */
export function styled({ href }) {
  if (!styles.has(href)) {
    styles.set(href, new Promise((onload, onerror) => {
      document.head.append(make('link', { rel: 'stylesheet', href, onload, onerror }));
    }));
    styles.get(href).catch(() => styles.delete(href));   /* the next who needs it asks again */
  }
  return styles.get(href);
}
