/* One range of colours for the heat maps that share it: the widest of theirs, so that equal colours are equal numbers. */
import { widest } from '../draw/colors.js';

export class Scale {
  #ranges = new Map();   /* heat map: [min, max] or null */
  range = null;

  /* A map's own range; the others are told when that changes the common one. */
  set(map, range) {
    this.#ranges.set(map, range);
    this.#settle(map);
  }

  leave(map) {
    this.#ranges.delete(map);
    this.#settle(map);
  }

  #settle(but) {
    const range = widest([...this.#ranges.values()]);
    if (String(range) === String(this.range)) return;
    this.range = range;
    for (const map of this.#ranges.keys()) if (map !== but) map.refresh();
  }
}
