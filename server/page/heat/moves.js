/* What keys, buttons, wheel and fingers do to the state: cursor, window and zoom. `where()` gives { rows, cols, axes,
 * rooms, fitted } of the picture that is touched, each of the last three with row and col (draw/windows.js). */
import { clampCell, clampFirst, isDrawn, lay, moved, pixelOf, placed, revealing, zoomed } from '../draw/windows.js';

const SIDES = ['row', 'col'];
const sameScale = (one, other) => one.px === other.px && one.step === other.step;

export class Moves {
  constructor(store, where) { Object.assign(this, { store, where }); }

  /* ---- the cursor ---- */

  point(row, col) {
    const { rows, cols } = this.where();
    this.store.set({ cur: [clampCell(rows, row), clampCell(cols, col)] }, { undo: false });
  }

  /* The cursor by so many cells; the window follows. */
  step(rows, cols) {
    const [row, col] = this.store.state.cur;
    this.point(row + rows, col + cols);
    this.reveal();
  }

  to(row, col) {
    this.point(row ?? this.store.state.cur[0], col ?? this.store.state.cur[1]);
    this.reveal();
  }

  /* A window up or down. */
  page(direction) {
    const { row, col } = this.where().axes;
    const cells = direction * Math.max(1, row.count) * row.step;
    this.#show([clampFirst(row, row.first + cells), col.first]);
    this.step(cells, 0);
  }

  reveal() {
    const { axes } = this.where();
    this.#show(SIDES.map((side, i) => revealing(axes[side], this.store.state.cur[i])));
  }

  #show(win, zoom = this.store.state.zoom) { this.store.set({ win, zoom }, { undo: false }); }

  /* ---- the window ---- */

  /* From where it was when the drag began, by so many pixels. */
  pan(axes, right, down) { this.#show([moved(axes.row, down), moved(axes.col, right)]); }

  fit() { this.#show([0, 0], 'fit'); }

  one() {
    const scale = { px: 1, step: 1 };
    const { axes, rooms } = this.where();
    const centre = this.centre();
    const placedAt = SIDES.map((side, i) => placed(axes[side], rooms[side], scale, centre[i]));
    /* A cell a pixel leaves the cursor's cell where it was only if there is room; so put it in the middle. */
    const win = SIDES.map((side, i) => {
      const axis = lay(axes[side].cells, rooms[side], scale, 0);
      return isDrawn(axes[side], this.store.state.cur[i]) ? clampFirst(axis, this.store.state.cur[i] - Math.floor(axis.count / 2)) : placedAt[i].first;
    });
    this.#show(win, { row: scale, col: scale });
  }

  /* About a pixel [down, right]; all cells in view again is `fit`. */
  zoom(factor, about = this.centre()) {
    const { axes, rooms, fitted } = this.where();
    const [row, col] = SIDES.map((side, i) => zoomed(axes[side], rooms[side], factor, about[i], fitted[side]));
    if (factor < 1 && sameScale(row, fitted.row) && sameScale(col, fitted.col)) return this.fit();
    const bare = ({ px, step }) => ({ px, step });
    this.#show([row.first, col.first], { row: bare(row), col: bare(col) });
  }

  /* Pixels of the cursor where it is in view, else of the middle. */
  centre() {
    const { axes } = this.where();
    const { cur } = this.store.state;
    const inView = SIDES.every((side, i) => isDrawn(axes[side], cur[i]));
    return SIDES.map((side, i) => inView ? pixelOf(axes[side], cur[i]) : axes[side].room / 2);
  }
}
