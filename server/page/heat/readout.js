/* The exact value of one cell, as the server writes it: [data-readout] with an output. */
import { make, mark } from '../dom.js';
import { short } from '../draw/numbers.js';
import { bind, word } from '../words.js';
import { axisName } from './caption.js';

export class Readout {
  #wanted = null;
  #shown = null;        /* of which cell of which source the value stands there */
  text = null;          /* the value itself, null while it is on its way */

  constructor(slot) {
    this.slot = slot;
    this.where = make('span', { class: 'readout-where' });
    this.output = make('output', { 'data-config': slot, 'aria-live': 'off', translate: 'no' });
    this.element = make('div', { class: 'readout', 'data-readout': '' }, this.where, this.output);
  }

  /* cell of a tensor `about`; near: a value of the picture to show at once, or null. True if the exact one is not known. */
  aim(key, about, cell, near) {
    const wanted = `${key} ${cell}`;
    if (this.#wanted === wanted) return this.text === null;
    Object.assign(this, { about, cell });
    this.#wanted = wanted;
    this.#name();
    this.outside = cell[0] >= about.rows || cell[1] >= about.cols;
    this.output.classList.add('pending');
    if (this.outside) this.#write('', word('heat.outside'));
    else {
      this.text = null;
      this.output.removeAttribute('data-value');
      if (near !== null) bind(this.output, null, short(near, 7));
    }
    return !this.outside;
  }

  #name() {
    const [row, col] = this.cell;
    const [rowAxis, colAxis] = ['row', 'column', ...this.about.axes].slice(-2);
    bind(this.where, null, word('heat.where', { rowAxis: axisName(rowAxis), row, colAxis: axisName(colAxis), col }));
    mark(this.output, { row, col });
  }

  #write(value, text = value) {
    this.text = value;
    mark(this.output, { value });
    bind(this.output, null, text);
    this.output.classList.remove('pending');
  }

  /* Asks for the cell that is aimed at. */
  async fill(get, source, about) {
    const wanted = this.#wanted;
    if (this.text !== null) return;
    const [row, col] = this.cell;
    const [[text]] = await source.texts(get, about, [row, row + 1], [col, col + 1]);
    if (wanted === this.#wanted) this.#write(text);
  }
}
