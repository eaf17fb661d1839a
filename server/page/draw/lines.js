/* Draws a line picture on a canvas: grid, axes, bands, lines with gaps, dots, marks. Sizes are in pixels of the page,
 * `k` bitmap pixels each; it knows no server and no state. */
import { axis, ticks } from './axes.js';

const PAD = { top: 14, right: 16, bottom: 26, gap: 8 };
const TITLE = 20;        /* room of an axis title */
const OUT = 5;           /* how far a line or a dot on the frame may reach over it */
const TICKS = { x: 72, y: 38 };
const DOT = { most: 3, least: 1.5, share: 0.3 };   /* radius: a share of the way to the next dot */
const ENDS = { most: 8, share: 0.2, apart: 14, gap: 6 };   /* names at the ends of lines: how many, how wide */
const DOTS_PX = 5;       /* a line's dots closer than this would hide it */

/* The stretches of a line between values that cannot be drawn: [first, last] indices, both included. */
export function stretches(x, y, xAxis, yAxis) {
  const shown = (value, { scale }) => Number.isFinite(value) && (scale !== 'log' || value > 0);
  const found = [];
  let first = -1;
  for (let i = 0; i <= x.length; i += 1) {
    const here = i < x.length && shown(x[i], xAxis) && shown(y[i], yAxis);
    if (here && first < 0) first = i;
    if (!here && first >= 0) {
      found.push([first, i - 1]);
      first = -1;
    }
  }
  return found;
}

/* The index of the number in an ascending list that is nearest to a value; -1 in an empty list. */
export function nearest(list, value) {
  if (!list.length) return -1;
  let [low, high] = [0, list.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low > 0 && value - list[low - 1] <= list[low] - value ? low - 1 : low;
}

/* Room at the right for the names of lines, so that nobody has to look them up in the legend; 0: they are too long or
 * too many, or there is one line alone. */
function roomForEnds(ctx, series, size, k) {
  if (series.length < 2 || series.length > ENDS.most) return 0;
  const widest = Math.max(...series.map((line) => ctx.measureText(String(line.name)).width));
  return widest <= ENDS.share * size.width ? widest + 2 * ENDS.gap * k : 0;
}

/* Where everything stands. size: { width, height } of the bitmap; look: colours and font; ranges as { x, y }, scales
 * too. */
export function layout(ctx, { size, k, look, scales, ranges, titles, whole, series }) {
  const font = `${Math.round(12 * k)}px ${look.font}`;
  ctx.font = font;
  const top = Math.round((PAD.top + (titles.y ? TITLE : 0)) * k);
  const h = Math.max(1, size.height - top - Math.round((PAD.bottom + (titles.x ? TITLE : 0)) * k));
  const y = axis({ scale: scales.y, lo: ranges.y[0], hi: ranges.y[1], from: top + h, to: top });
  const yTicks = ticks(y, TICKS.y * k);
  const widest = Math.max(0, ...yTicks.map((tick) => ctx.measureText(tick.text).width));
  const x0 = Math.round(widest + (PAD.gap + 4) * k);
  const ends = roomForEnds(ctx, series, size, k);
  const w = Math.max(1, size.width - x0 - Math.round(Math.max(PAD.right * k, ends)));
  const x = axis({ scale: scales.x, lo: ranges.x[0], hi: ranges.x[1], from: x0, to: x0 + w });
  const box = { x0, y0: top, w, h };
  return { k, font, box, x, y, yTicks, xTicks: ticks(x, TICKS.x * k, { whole }), titles, look, hasEnds: ends > 0 };
}

/* Draws all of it on an empty canvas; the first line lies on top. */
export function paint(ctx, plan, { series, bands = [], marks = [] }) {
  const lines = series.toReversed();
  for (const band of bands) paintBand(ctx, plan, band);
  paintGrid(ctx, plan);
  for (const line of marks) paintMark(ctx, plan, line);
  clipped(ctx, plan, () => { for (const line of lines) paintLine(ctx, plan, line); });
  for (const line of lines) if (line.dots) paintDots(ctx, plan, line);
  if (plan.hasEnds) paintEnds(ctx, plan, series);
}

/* The names of lines beside their last points, pushed apart where these are close. */
function paintEnds(ctx, { k, font, box, x, y }, series) {
  const found = series.map((line) => ({ line, at: endOf(line, x, y) })).filter(({ at }) => at !== null)
    .sort((one, other) => one.at - other.at);
  const apart = ENDS.apart * k;
  found.forEach((one, i) => { if (i) one.at = Math.max(one.at, found[i - 1].at + apart); });
  const over = Math.max(0, (found.at(-1)?.at ?? 0) - box.y0 - box.h);
  for (let i = found.length - 1, most = box.y0 + box.h; over && i >= 0; i -= 1, most -= apart) {
    found[i].at = Math.min(found[i].at, most);
  }
  ctx.font = font;
  for (const { line, at } of found) {
    write(ctx, String(line.name), box.x0 + box.w + ENDS.gap * k, at, 'left', 'middle', line.color);
  }
}

/* The height of a line's last point in view; null: it has none. */
function endOf({ x: xs, y: ys }, x, y) {
  for (let i = xs.length - 1; i >= 0; i -= 1) {
    if (within(xs[i], x) && Number.isFinite(ys[i])) return within(ys[i], y) ? y.at(ys[i]) : null;
  }
  return null;
}

function clipped(ctx, { box, k }, draw) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.x0, box.y0 - OUT * k, box.w, box.h + 2 * OUT * k);
  ctx.clip();
  draw();
  ctx.restore();
}

/* Straight lines lie on whole pixels, or they would be two pixels wide and grey. */
function rule(ctx, k, x1, y1, x2, y2) {
  const width = Math.max(1, Math.round(k));
  const shift = width % 2 / 2;
  ctx.lineWidth = width;
  ctx.beginPath();
  ctx.moveTo(Math.round(x1) + (x1 === x2 ? shift : 0), Math.round(y1) + (y1 === y2 ? shift : 0));
  ctx.lineTo(Math.round(x2) + (x1 === x2 ? shift : 0), Math.round(y2) + (y1 === y2 ? shift : 0));
  ctx.stroke();
}

function write(ctx, text, x, y, align, baseline, color) {
  ctx.fillStyle = color;
  ctx.textAlign = align;
  ctx.textBaseline = baseline;
  ctx.fillText(text, x, y);
}

function paintGrid(ctx, { k, font, box, x, y, xTicks, yTicks, titles, look }) {
  const { x0, y0, w, h } = box;
  ctx.font = font;
  ctx.strokeStyle = look.line;
  for (const tick of yTicks) {
    const at = y.at(tick.value);
    rule(ctx, k, x0, at, x0 + w, at);
    write(ctx, tick.text, x0 - PAD.gap * k, at, 'right', 'middle', look.dim);
  }
  for (const tick of xTicks) {
    const at = x.at(tick.value);
    rule(ctx, k, at, y0, at, y0 + h);
    write(ctx, tick.text, at, y0 + h + 7 * k, 'center', 'top', look.dim);
  }
  paintZero(ctx, { k, box, y, look });
  if (titles.y) write(ctx, String(titles.y), Math.min(x0, PAD.gap * k), 4 * k, 'left', 'top', look.ink);
  if (titles.x) write(ctx, String(titles.x), x0 + w, y0 + h + (PAD.bottom + 2) * k, 'right', 'top', look.ink);
}

/* The axis y = 0, where lines change their sign, stands out of the grid. */
function paintZero(ctx, { k, box, y, look }) {
  if (y.scale === 'log' || y.lo > 0 || y.hi < 0) return;
  ctx.strokeStyle = look.dim;
  rule(ctx, k, box.x0, y.at(0), box.x0 + box.w, y.at(0));
}

function paintBand(ctx, { box, x, y, look }, { axis: along, from, to }) {
  ctx.fillStyle = look.soft;
  const inside = (value, start, length) => Math.min(Math.max(value, start), start + length);
  if (along === 'x') {
    const [left, right] = [from, to].map((value) => inside(x.at(value), box.x0, box.w));
    ctx.fillRect(left, box.y0, right - left, box.h);
  } else {
    const [bottom, top] = [from, to].map((value) => inside(y.at(value), box.y0, box.h));
    ctx.fillRect(box.x0, top, box.w, bottom - top);
  }
}

const within = (value, { lo, hi }) => value >= lo && value <= hi;

function paintMark(ctx, { k, font, box, x, y, look }, { axis: along = 'x', at, label, handle, atEnd }) {
  const line = along === 'x' ? x : y;
  if (!within(at, line)) return;
  const place = line.at(at);
  ctx.font = font;
  ctx.strokeStyle = look.ink;
  ctx.setLineDash([4 * k, 4 * k]);
  if (along === 'x') rule(ctx, k, place, box.y0, place, box.y0 + box.h);
  else rule(ctx, k, box.x0, place, box.x0 + box.w, place);
  ctx.setLineDash([]);
  if (label) writeMark(ctx, { k, box, look, atEnd }, along, place, String(label));
  if (handle) grip(ctx, k, look, ...(along === 'x' ? [place, box.y0] : [box.x0 + box.w, place]));
}

/* Beside its line, on a ground of paper, inside the frame; atEnd: at the right, where others begin at the left. */
function writeMark(ctx, { k, box, look, atEnd }, along, place, text) {
  const [width, height, gap] = [ctx.measureText(text).width, 16 * k, 6 * k];
  const left = along === 'x' && place + gap + width > box.x0 + box.w ? place - gap - width : place + gap;
  const start = atEnd ? box.x0 + box.w - width - 3 * gap : box.x0 + gap;
  const [x, y] = along === 'x' ? [left, box.y0 + 4 * k] : [start, Math.max(box.y0, place - height - 3 * k)];
  ctx.globalAlpha = 0.8;
  ctx.fillStyle = look.paper;
  ctx.fillRect(x - 3 * k, y - k, width + 6 * k, height);
  ctx.globalAlpha = 1;
  write(ctx, text, x, y + height / 2 - k, 'left', 'middle', look.ink);
}

function grip(ctx, k, look, x, y) {
  ctx.beginPath();
  ctx.arc(x, y, 7 * k, 0, 2 * Math.PI);
  ctx.fillStyle = look.paper;
  ctx.fill();
  ctx.strokeStyle = look.ink;
  ctx.lineWidth = 2 * k;
  ctx.stroke();
}

/* width 0: its dots alone. */
function paintLine(ctx, { k, x, y }, { x: xs, y: ys, color, dash = [], width = 2 }) {
  if (!width) return;
  ctx.strokeStyle = color;
  ctx.lineWidth = width * k;
  ctx.lineJoin = 'round';
  ctx.setLineDash(dash.map((length) => length * k));
  ctx.beginPath();
  for (const [first, last] of stretches(xs, ys, x, y)) {
    ctx.moveTo(x.at(xs[first]), y.at(ys[first]));
    for (let i = first + 1; i <= last; i += 1) ctx.lineTo(x.at(xs[i]), y.at(ys[i]));
  }
  ctx.stroke();
  ctx.setLineDash([]);
}

function paintDots(ctx, { k, x, y }, { dots, color, x: xs }) {
  const apart = dots.length > 1 ? (x.at(dots[1][0]) - x.at(dots[0][0])) / k : Infinity;
  if (apart < DOTS_PX && xs.length > 1 && xs.length > dots.length) return;
  const radius = Math.min(DOT.most, Math.max(DOT.least, apart * DOT.share)) * k;
  ctx.fillStyle = color;
  for (const [px, py] of dots) {
    if (!within(px, x) || !within(py, y)) continue;
    ctx.beginPath();
    ctx.arc(x.at(px), y.at(py), radius, 0, 2 * Math.PI);
    ctx.fill();
  }
}

/* The cross at the cursor and a ring on each line there, on a canvas of its own above the picture. */
export function paintCursor(ctx, plan, cursor) {
  ctx.clearRect(0, 0, ctx.canvas.width, ctx.canvas.height);
  if (!plan || !cursor || !within(cursor.x, plan.x)) return;
  const { k, box, x, y, look } = plan;
  ctx.strokeStyle = look.ink;
  rule(ctx, k, x.at(cursor.x), box.y0, x.at(cursor.x), box.y0 + box.h);
  for (const { value, color } of cursor.points) {
    if (!Number.isFinite(value) || !within(value, y)) continue;
    ctx.beginPath();
    ctx.arc(x.at(cursor.x), y.at(value), 5 * k, 0, 2 * Math.PI);
    ctx.fillStyle = look.paper;
    ctx.fill();
    ctx.strokeStyle = color;
    ctx.lineWidth = 2.5 * k;
    ctx.stroke();
  }
}
