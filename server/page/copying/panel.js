/* The inspector. What it is made of is loaded with the first view that has a request. */
import { busy } from '../ask.js';

export class Panel {
  #view = null;
  #copies = null;
  #loading = null;

  constructor(page, root) { Object.assign(this, { page, root }); }

  /* view: what a view's open() gave. */
  update(view) {
    this.#view = view;
    if (this.#copies) this.#copies.update(view);
    else if (this.#hasRequest()) this.#load();
  }

  #hasRequest() {
    const slot = this.page.front();
    return slot && this.#view?.request?.(slot);
  }

  async #load() {
    if (this.#loading) return;
    busy.begin();
    this.#loading = import('./copies.js');
    try {
      const { Copies } = await this.#loading;
      this.#copies = new Copies(this.page, this.root);
      this.#copies.update(this.#view);
    } catch {
      this.#loading = null;   /* the next change tries again */
    } finally {
      busy.end();
    }
  }
}
