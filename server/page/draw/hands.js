/* Clock hands: each pair of channels that a rotation turns is a small clock, q's and k's two channels are the ends of
 * its two hands. The first half of this file is geometry that needs no canvas, the second draws. */

const MOST_CLOCKS = 16;
const NARROWEST_CLOCK = 62;   /* CSS pixels; below this the two hands cannot be told apart */
const WIDEST_CLOCK = 168;
const HAND_REACH = 0.9;       /* the longest hand, as a share of the clock's radius */
const GRAB = 14;              /* CSS pixels within which a pointer takes hold of a hand */

/* The two channels of each pair of the rotated q and k, or null where the layout's pairs do not simply turn. */
export function pairsOf(config) {
  const count = config.rotary_dim / 2;
  const first = config.rotary_offset || 0;
  const neighbours = config.layout === 'interleaved';
  const halves = ['half', 'interleaved_to_half'].includes(config.layout)
    || (config.layout === 'half_per_axis' && !config.axes_dim);
  if (!neighbours && !halves) return null;
  return Array.from({ length: count },
    (_, i) => neighbours ? [first + 2 * i, first + 2 * i + 1] : [first + i, first + i + count]);
}

/* At most 16 pairs, spread evenly from the fastest to the slowest. */
export function pairsShown(count) {
  const step = Math.ceil(count / MOST_CLOCKS);
  return Array.from({ length: Math.ceil(count / step) }, (_, i) => i * step);
}

/* Columns and pixels of a clock: as few rows as fit, about equally long. */
export function arrange(width, count) {
  const most = Math.max(1, Math.min(count, Math.floor(width / NARROWEST_CLOCK)));
  return inRows(width, count, Math.ceil(count / Math.min(most, 8)));
}

function inRows(width, count, rows, most = WIDEST_CLOCK) {
  const columns = Math.ceil(count / rows);
  return { columns, rows, cell: Math.min(most, Math.floor(width / columns)) };
}

/* The same in a place of that height, clocks as large as fit; foot: pixels below each. */
export function arrangeWithin(width, height, count, foot) {
  const all = Array.from({ length: count },
    (_, i) => inRows(width, count, i + 1, Math.max(NARROWEST_CLOCK, Math.floor(height / (i + 1)) - foot)));
  return all.reduce((best, one) => one.cell > best.cell ? one : best);
}

export function centreOf(index, { columns, cell, left, foot }) {
  return [left + (index % columns + 0.5) * cell, Math.floor(index / columns) * (cell + foot) + cell / 2];
}

/* Pixels of one unit: the longest hand of all, so that no hand leaves its clock and none changes its length by
 * turning. */
export function pixelsOfUnit({ pairs, q, k }, radius) {
  const longest = Math.max(...[q, k].flatMap((v) => pairs.map(([x, y]) => Math.hypot(v[x], v[y]))));
  return longest > 0 && Number.isFinite(longest) ? HAND_REACH * radius / longest : 0;
}

/* How far a pointer went round a centre, in radians and counter-clockwise, for a small move from one point to another.
 * The screen's y points down. */
export function turned([cx, cy], [x0, y0], [x1, y1]) {
  const [ax, ay, bx, by] = [x0 - cx, cy - y0, x1 - cx, cy - y1];
  const nearness = (ax * ax + ay * ay + bx * bx + by * by) / 2;
  return nearness > 0 ? (ax * by - ay * bx) / nearness : 0;
}

/* The hand under a pointer: { pair, hand: 'q' or 'k', centre }, or null. Where both are near, the nearer tip wins. */
export function handAt([x, y], clocks) {
  let best = null;
  for (const { pair, centre, tips } of clocks) {
    for (const hand of ['q', 'k']) {
      const away = distanceToHand([x, y], centre, tips[hand]);
      const tip = Math.hypot(x - tips[hand][0], y - tips[hand][1]);
      if (away <= GRAB && (!best || tip < best.tip)) best = { pair, hand, centre, tip };
    }
  }
  return best;
}

function distanceToHand([x, y], [cx, cy], [tx, ty]) {
  const [dx, dy] = [tx - cx, ty - cy];
  const length2 = dx * dx + dy * dy;
  const share = length2 > 0 ? Math.min(1, Math.max(0, ((x - cx) * dx + (y - cy) * dy) / length2)) : 0;
  return Math.hypot(x - cx - share * dx, y - cy - share * dy);
}

/* Where each clock and its tips stand: [{ pair, centre, tips: { q, k } }]. */
export function clocksOf({ pairs, shown, q, k }, plan, unit) {
  return shown.map((pair, index) => {
    const centre = centreOf(index, plan);
    const tip = (v) => [centre[0] + v[pairs[pair][0]] * unit, centre[1] - v[pairs[pair][1]] * unit];
    return { pair, centre, tips: { q: tip(q), k: tip(k) } };
  });
}

/* ---- on a canvas ---- */

/* colours: { q, k, face, line, ink } */
export function drawClocks(context, clocks, { radius, colours, font }) {
  context.lineCap = 'round';
  for (const clock of clocks) {
    drawFace(context, clock.centre, radius, colours);
    drawBetween(context, clock, colours.k);
    drawHand(context, clock.centre, clock.tips.k, colours.k, colours.face);
    drawHand(context, clock.centre, clock.tips.q, colours.q, colours.q);
    drawNumber(context, clock, radius, colours, font);
  }
}

function drawFace(context, [x, y], radius, colours) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = colours.face;
  context.fill();
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.moveTo(x - radius, y);
  context.lineTo(x + radius, y);
  context.moveTo(x, y - radius);
  context.lineTo(x, y + radius);
  context.stroke();
}

/* The triangle between the hands keeps its shape when both positions shift: that is what to see. */
function drawBetween(context, { centre, tips }, colour) {
  context.beginPath();
  for (const [x, y] of [centre, tips.q, tips.k]) context.lineTo(x, y);
  context.fillStyle = colour;
  context.globalAlpha = 0.12;
  context.fill();
  context.globalAlpha = 1;
}

/* k's tip is hollow, so that the hands differ without colour too. */
function drawHand(context, [x, y], [tx, ty], colour, tip) {
  context.strokeStyle = colour;
  context.fillStyle = tip;
  context.lineWidth = 2.25;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(tx, ty);
  context.stroke();
  context.beginPath();
  context.arc(tx, ty, 4, 0, 2 * Math.PI);
  context.fill();
  context.stroke();
}

function drawNumber(context, { pair, centre }, radius, colours, font) {
  context.font = font;
  context.fillStyle = colours.ink;
  context.textAlign = 'center';
  context.textBaseline = 'top';
  context.fillText(String(pair), centre[0], centre[1] + radius + 5);
}
