/* The numbers of which a heat map shows a part: what is known of the tensor, the window that is kept of it, its
 * range. */
import { extremes, symmetric } from '../draw/colors.js';
import { covers } from '../draw/windows.js';
import { WHOLE_MAX } from './sources.js';

export class Picture {
  kept = null;          /* { values, stride, row, col, reduce } of the window */
  range = undefined;    /* its own, once it is known; null: no number is finite */
  likely = null;        /* until then */

  constructor(source, about, likely = null) { Object.assign(this, { source, about, likely }); }

  /* While only numbers change, as when a slider is dragged, the shape is guessed from that of the picture before: then
   * a picture costs one request, and the guess is verified once the slider rests. */
  static async of(get, source, before) {
    const guess = before && source.guess(before.source, before.about);
    const picture = new Picture(source, guess || await source.about(get), before?.range ?? before?.likely);
    if (before && before.source.wholeKey === source.wholeKey && picture.isOfWhole) picture.range = before.range;
    return picture;
  }

  /* Has the window all cells of these axes? */
  serves({ row, col }, reduce) {
    if (!row.count || !col.count) return true;
    const { kept } = this;
    const isReduced = row.step > 1 || col.step > 1;
    return kept !== null && covers(row, kept.row) && covers(col, kept.col) && (!isReduced || kept.reduce === reduce);
  }

  /* Asks for the window that `layout(about)` wants. */
  async askWindow(get, layout, reduce) {
    const axes = layout(this.about);
    if (this.serves(axes, reduce)) return;
    const { row, col } = axes;
    try {
      this.#keep(await this.source.window(get, this.about, row, col, reduce), row, col, reduce);
    } catch (error) {
      if (this.about.sure || !error.problem) throw error;   /* refused because of a wrong guess? */
      this.about = await this.source.about(get);
      await this.askWindow(get, layout, reduce);
    }
  }

  /* An answer smaller than what was asked for tells how many cells there are. */
  #keep({ values, rows, cols }, row, col, reduce) {
    const end = (axis, count, cells) => count < axis.count ? axis.first + count * axis.step : cells;
    this.about = { ...this.about, rows: end(row, rows, this.about.rows), cols: end(col, cols, this.about.cols) };
    this.kept = { values, stride: cols, row: { ...row, count: rows }, col: { ...col, count: cols }, reduce };
    this.#knowRange();
  }

  /* A picture of what the tensor really is: this one, or another one without a window. */
  async verified(get) {
    const about = await this.source.about(get);
    const isAsGuessed = ['shape', 'name', 'rows'].every((key) => String(about[key]) === String(this.about[key]));
    if (!isAsGuessed) return new Picture(this.source, about, this.likely);
    this.about = about;
    return this;
  }

  /* ---- the range ---- */

  /* Where nothing has to be asked: a difference, the catalogue's range, a window that is the whole, or is all that can
   * be looked at. */
  #knowRange() {
    const { source, about, kept } = this;
    const here = () => this.#begun(extremes(kept.values));
    if (source.isDifference) this.range = symmetric(here());
    else if (about.range) this.range = about.range;
    else if (kept.values.length === this.#count || about.count > WHOLE_MAX) this.range = here();
    else if (this.range === undefined) this.likely ??= here();
  }

  /* Is its range that of all leading indices? */
  get isOfWhole() { return !this.source.isDifference && this.about.least === null; }

  /* How many numbers have the range. */
  get #count() { return this.isOfWhole ? this.about.count : this.about.rows * this.about.cols; }

  async askRange(get) {
    if (this.range !== undefined) return;
    this.range = this.#begun(await this.source.extremes(get, this.about));
  }

  #begun(range) { return range && [this.about.least ?? range[0], range[1]]; }

  /* ---- single numbers ---- */

  /* The value of a cell if the window has it by itself, else null. */
  near([row, col]) { return this.line({ side: 'row', at: row, first: col, stop: col + 1 })?.[0] ?? null; }

  /* Values along a row (side 'row', at: which; first…stop: columns) or a column, if the window has each cell of it. */
  line({ side, at, first, stop }) {
    const { kept } = this;
    if (!kept || kept.row.step * kept.col.step > 1) return null;
    const [across, along] = side === 'row' ? [kept.row, kept.col] : [kept.col, kept.row];
    const [line, from, end] = [at - across.first, first - along.first, stop - along.first];
    if (line < 0 || line >= across.count || from < 0 || end > along.count) return null;
    if (side === 'row') return kept.values.slice(line * kept.stride + from, line * kept.stride + end);
    return Float64Array.from({ length: end - from }, (_, i) => kept.values[(from + i) * kept.stride + line]);
  }

  /* The same from the server. */
  async askLine(get, { side, at, first, stop }) {
    const [one, many] = [{ first: at, step: 1, count: 1 }, { first, step: 1, count: stop - first }];
    return (await this.source.window(get, this.about, ...side === 'row' ? [one, many] : [many, one])).values;
  }
}
