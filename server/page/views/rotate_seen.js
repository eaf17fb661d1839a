/* Remembers the products of one configuration, to measure what a rotation promises: lengths stay, and at one distance
 * n - m so does q·k. Values are only compared. Pure. */

export class Seen {
  #about = null;
  #places = new Map();      /* 'm n': the distance */
  #first = new Map();       /* distance: { least, most, count } of q·k */
  #lengths = null;          /* [least, most] of q·q and of k·k */

  /* products: { qq, qk, kk } as numbers. */
  take(about, { m, n }, { qq, qk, kk }) {
    if (about !== this.#about) this.#forget(about);
    const at = `${m} ${n}`;
    const range = this.#first.get(n - m) ?? { least: Infinity, most: -Infinity, count: 0 };
    if (!this.#places.has(at)) range.count += 1;
    this.#places.set(at, n - m);
    this.#first.set(n - m, widened(range, qk));
    this.#lengths = [widened(this.#lengths[0], qq), widened(this.#lengths[1], kk)];
    const stretch = Math.max(...this.#lengths.map(width));
    return { places: this.#places.size, shifts: range.count, stretch, change: width(range) };
  }

  #forget(about) {
    this.#about = about;
    this.#places.clear();
    this.#first.clear();
    this.#lengths = Array.from({ length: 2 }, () => ({ least: Infinity, most: -Infinity }));
  }
}

function widened(range, value) {
  range.least = Math.min(range.least, value);
  range.most = Math.max(range.most, value);
  return range;
}

const width = ({ least, most }) => most - least;
