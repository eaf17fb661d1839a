/* What stands beside a line picture and says the same: legend, read-out, data table. */
import { make, mark } from './dom.js';
import { nearest } from './draw/lines.js';
import { short } from './draw/numbers.js';

const ROWS_MAX = 32;
const COLUMNS_MAX = 32;

/* Colours, font and theme of the page as it is now. */
export function lookOf() {
  const root = document.documentElement;
  const style = getComputedStyle(root);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    theme: root.dataset.theme === 'dark' ? 'dark' : 'light', font: getComputedStyle(document.body).fontFamily,
    ink: color('ink'), dim: color('dim'), paper: color('paper'), soft: color('soft'), line: color('line'),
  };
}

const colorIn = (line, theme) => typeof line.color === 'function' ? line.color(theme) : line.color;

/* A short piece of the line as it is drawn: colour and dash. */
function sample(line, color) {
  const canvas = make('canvas', { class: 'legend-line', width: 56, height: 16, 'aria-hidden': 'true' });
  const ctx = canvas.getContext('2d');
  Object.assign(ctx, { strokeStyle: color, lineWidth: 4 });
  ctx.setLineDash((line.dash ?? []).map((length) => length * 2));
  ctx.beginPath();
  ctx.moveTo(0, 8);
  ctx.lineTo(56, 8);
  ctx.stroke();
  return canvas;
}

/* One item a line; kept as it is while the same lines are drawn again. */
export function legendOf(list, series) {
  const { theme } = lookOf();
  const key = JSON.stringify([theme, series.map((line) => [line.id, String(line.name), colorIn(line, theme), line.dash])]);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...series.map((line) => {
    const color = colorIn(line, theme);
    return mark(make('li', { translate: line.translate ?? 'no' }, sample(line, color), line.name), { series: line.id, color });
  }));
}

/* The values at the cross: null hides them. */
export function readoutOf(box, shown) {
  box.hidden = !shown;
  if (!shown) return;
  const { x, points, title, cell } = shown;
  box.replaceChildren(make('div', { class: 'readout-title' }, title ?? 'x', ' ', make('b', null, short(x, 6))), ...points.map((point) => {
    const [config, col] = point.series.id.split(':');
    const swatch = make('i', { 'aria-hidden': 'true', class: 'swatch' });
    swatch.style.setProperty('background', point.color);
    const output = mark(make('output', null, short(point.value, 5)), { config, col, x: point.x, value: point.value, ...cell?.(point.series, point.i) });
    return make('div', { class: 'readout-row' }, swatch, make('span', { translate: 'no' }, point.series.name), output);
  }));
}

/* At most 32 rows about the cursor, one column a line. Lines share their samples or are read at the nearest one. */
export function tableOf(series, { title, at, cell, stops }) {
  const first = Math.min(Math.max(0, nearest(stops, at ?? stops[0]) - ROWS_MAX / 2), Math.max(0, stops.length - ROWS_MAX));
  const rows = Array.from(stops).slice(first, first + ROWS_MAX);
  const shown = series.slice(0, COLUMNS_MAX);
  const head = make('tr', null, make('th', { scope: 'col' }, title ?? 'x'), shown.map((line) => make('th', { scope: 'col', translate: 'no' }, line.name)));
  const body = rows.map((x, i) => make('tr', null, make('th', { scope: 'row' }, short(x, 8)),
    shown.map((line, j) => tableCell(line, x, { row: first + i, col: j, ...cell?.(line, nearest(line.x, x)) }))));
  return make('table', null, make('thead', null, head), make('tbody', null, body));
}

function tableCell(line, x, where) {
  const i = nearest(line.x, x);
  return mark(make('td', null, line.x[i] === x ? short(line.y[i], 7) : ''), where);
}
