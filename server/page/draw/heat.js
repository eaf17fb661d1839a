/* Paints colour numbers as blocks of pixels into the buffer of an ImageData. Pure. */

/* pixels: Uint32Array of width x height. grid: { row, col }, each { px, count, start, from }: pixels of a drawn cell,
 * how many are drawn, the pixel where the first begins, its index in the window. numbers: colour numbers of a window
 * with `stride` columns. What lies beside the grid is transparent. */
export function paint({ pixels, width, height }, { row, col }, { numbers, stride }, table) {
  const right = Math.min(width, col.start + col.count * col.px);
  const bottom = Math.min(height, row.start + row.count * row.px);
  if (col.start > 0 || row.start > 0 || right < width || bottom < height) pixels.fill(0);
  for (let i = 0; i < row.count; i++) {
    const top = row.start + i * row.px;
    const first = top * width + col.start;
    const end = top * width + right;
    const at = (row.from + i) * stride + col.from;
    if (col.px === 1) paintThin(pixels, first, end, numbers, at, table);
    else paintWide(pixels, first, end, numbers, at, table, col.px);
    const last = Math.min(top + row.px, bottom);
    for (let y = top + 1; y < last; y++) pixels.copyWithin(y * width + col.start, first, end);
  }
}

function paintThin(pixels, first, end, numbers, at, table) {
  for (let p = first; p < end; p++, at++) pixels[p] = table[numbers[at]];
}

function paintWide(pixels, first, end, numbers, at, table, px) {
  for (let p = first; p < end; at++) {
    const stop = Math.min(p + px, end);
    const pixel = table[numbers[at]];
    while (p < stop) pixels[p++] = pixel;
  }
}
