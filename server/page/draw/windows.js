/* The geometry of a heat map, one axis at a time: which cells are drawn, how large, and where a pixel leads. Pure.
 *
 *   scale   { px, step }: pixels of a drawn cell, cells that it stands for; one of the two is 1
 *   axis    { cells, room, px, step, first, count }: its length; pixels of the canvas; the first cell, a multiple of
 *           step; how many are drawn. A drawn cell begins at pixel (cell - first) / step * px. */

const PX_MAX = 256;    /* a larger cell shows nothing more */
const FIT_PX_MAX = 64; /* a table of a few cells need not fill the figure */

/* The scale at which all cells are seen. */
export function fit(cells, room, most = FIT_PX_MAX) {
  if (cells > room) return { px: 1, step: Math.ceil(cells / Math.max(1, room)) };
  return { px: Math.max(1, Math.min(most, Math.floor(room / Math.max(1, cells)))), step: 1 };
}

const size = ({ px, step }) => px / step;

/* Both axes fitted; `square`: cells as high as they are wide. */
export function fitBoth(rows, cols, { square = false, most } = {}) {
  const row = fit(rows.cells, rows.room, most);
  const col = fit(cols.cells, cols.room, most);
  if (!square) return { row, col };
  const both = size(row) < size(col) ? row : col;
  return { row: both, col: both };
}

/* The canvas is no longer than all cells are at this scale. */
export function lay(cells, room, { px, step }, first) {
  const drawn = Math.ceil(cells / step);
  const start = Math.floor(first / step) * step;
  const canvas = Math.max(1, Math.min(room, drawn * px));
  const count = Math.max(0, Math.min(Math.max(1, Math.floor(canvas / px)), drawn - start / step));
  return { cells, room: canvas, px, step, first: start, count };
}

/* ---- from pixels to cells and back ---- */

export const cellAt = (axis, pixel) => axis.first + Math.floor(pixel / axis.px) * axis.step;
export const pixelOf = (axis, cell) => Math.floor((cell - axis.first) / axis.step) * axis.px;
export const isDrawn = (axis, cell) => cell >= axis.first && cell < axis.first + axis.count * axis.step;
export const clampCell = (cells, cell) => Math.max(0, Math.min(cells - 1, cell));

/* ---- moving and zooming: no room stays empty that way ---- */

/* The first cell nearest to `first` for which the window lies within the cells. */
export function clampFirst({ cells, room, px, step }, first) {
  const last = Math.ceil(cells / step) - Math.max(1, Math.floor(room / px));
  return Math.max(0, Math.min(last, Math.floor(first / step))) * step;
}

/* The first cell once the picture has moved by `pixels` (to the right and down: earlier cells come in). */
export function moved(axis, pixels) {
  return clampFirst(axis, axis.first - Math.round(pixels / axis.px) * axis.step);
}

/* The first cell of a window of this length that shows `cell`, moved as little as possible. */
export function revealing(axis, cell) {
  if (isDrawn(axis, cell)) return axis.first;
  const block = Math.floor(cell / axis.step) * axis.step;
  return clampFirst(axis, cell < axis.first ? block : block - (Math.max(1, axis.count) - 1) * axis.step);
}

/* A scale `factor` times as large, always another one unless that leaves 1/cells ... PX_MAX. */
export function scaled({ px, step }, factor) {
  const target = px / step * factor;
  if (factor > 1) {
    if (step > 1 && target < 1) return { px: 1, step: Math.min(step - 1, Math.round(1 / target)) };
    return { px: Math.min(PX_MAX, step > 1 ? Math.round(target) : Math.max(px + 1, Math.round(target))), step: 1 };
  }
  if (px > 1 && target >= 1) return { px: Math.min(px - 1, Math.round(target)), step: 1 };
  return { px: 1, step: px > 1 ? Math.max(1, Math.round(1 / target)) : Math.max(step + 1, Math.round(1 / target)) };
}

/* { px, step, first } of the axis zoomed about a pixel, whose cell stays there as far as the cells allow; never smaller
 * than `fitted`. `room`: what the canvas may take. */
export function zoomed(axis, room, factor, pixel, fitted) {
  const wanted = scaled(axis, factor);
  const scale = size(wanted) < size(fitted) ? fitted : wanted;
  const kept = cellAt(axis, pixel) - Math.floor(pixel / scale.px) * scale.step;
  return { ...scale, first: clampFirst(lay(axis.cells, room, scale, 0), kept) };
}

/* ---- windows that are kept ---- */

/* Of an axis, the part that a kept window { first, step, count } has: a grid line for paint(), null if there is
 * none. */
export function overlap(axis, kept) {
  if (axis.step !== kept.step) return null;
  const first = Math.max(axis.first, kept.first);
  const end = Math.min(axis.first + axis.count * axis.step, kept.first + kept.count * kept.step);
  if (first >= end) return null;
  const steps = (cells) => cells / axis.step;
  return {
    px: axis.px, first, count: steps(end - first), start: steps(first - axis.first) * axis.px,
    from: steps(first - kept.first),
  };
}

export const covers = (axis, kept) => axis.count === 0 || overlap(axis, kept)?.count === axis.count;

/* [first, stop) of `most` cells about a cell, moved to lie within the axis. */
export function about(cells, cell, most) {
  const count = Math.min(cells, most);
  const first = Math.max(0, Math.min(cells - count, cell - Math.floor(count / 2)));
  return [first, first + count];
}
