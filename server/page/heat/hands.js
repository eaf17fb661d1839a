/* What mouse, wheel, fingers and keys do to a heat map: `Moves` changes cursor, window and zoom in the state;
 * `listenTo` hears the pointers, `Keys` its keys. */
import { copyText } from '../dom.js';
import { clampCell, clampFirst, isDrawn, lay, moved, pixelOf, revealing, zoomed } from '../draw/windows.js';
import { word } from '../words.js';

const SIDES = ['row', 'col'];
const CLICK_PX = 4;            /* a mouse that moves less has clicked */
const WHEEL_FACTOR = 1.0015;   /* per unit of deltaY: about 1.16 a notch */
const WHEEL_LEAST = 20;        /* a touchpad sends many small ones: they add up to this */
const REST_MS = 250;           /* of keys, before the cell is spoken */

export const ZOOM = 1.6;       /* of one press of a key or button */
export const REDUCTIONS = ['mean', 'min', 'max', 'absmax', 'sample'];

/* ---- the state ---- */

/* `where()` gives { rows, cols, axes, rooms, fitted } of the picture that is touched, the last three with row and
 * col. */
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

  /* A cell a pixel, the cursor in the middle. */
  one() {
    const scale = { px: 1, step: 1 };
    const { axes, rooms } = this.where();
    const middle = ({ cells }, room, cell) => clampFirst(lay(cells, room, scale, 0), cell - Math.floor(room / 2));
    this.#show(SIDES.map((side, i) => middle(axes[side], rooms[side], this.store.state.cur[i])),
      { row: scale, col: scale });
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

/* ---- the cell under the mouse, the same in all heat maps; null when the mouse is elsewhere, or keys are used ---- */

const hearers = new Set();
let cell = null;

export const hovered = () => cell;

export function hover(next) {
  if (String(next) === String(cell)) return;
  cell = next;
  for (const hearer of [...hearers]) hearer();
}

export function onHover(hearer) {
  hearers.add(hearer);
  return () => hearers.delete(hearer);
}

/* ---- pointers: `on` has hover, point, grab, drag, zoom, key ---- */

export function listenTo(canvas, on) {
  mouse(canvas, on);
  wheel(canvas, on);
  fingers(canvas, on);
  canvas.addEventListener('keydown', (event) => {
    if (event.altKey || event.metaKey || !on.key(event)) return;
    event.preventDefault();
    event.stopPropagation();
  });
}

function mouse(canvas, on) {
  let held = null;   /* where the button went down, and whether the mouse has moved since */
  canvas.addEventListener('pointerdown', (event) => {
    if (event.pointerType === 'touch' || event.button !== 0) return;
    held = { x: event.clientX, y: event.clientY, panned: false };
    canvas.setPointerCapture(event.pointerId);
    on.grab();
  });
  canvas.addEventListener('pointermove', (event) => {
    if (event.pointerType === 'touch') return;
    if (!held) return on.hover(event.offsetY, event.offsetX);
    const [right, down] = [event.clientX - held.x, event.clientY - held.y];
    held.panned ||= Math.hypot(right, down) >= CLICK_PX;
    if (held.panned) {
      canvas.classList.add('panning');
      on.drag(right, down);
    }
  });
  const release = () => {
    held = null;
    canvas.classList.remove('panning');
  };
  canvas.addEventListener('pointerup', (event) => {
    if (event.pointerType === 'touch' || (held && !held.panned)) on.point(event.offsetY, event.offsetX);
    release();
  });
  canvas.addEventListener('pointercancel', release);
  canvas.addEventListener('pointerleave', (event) => event.pointerType !== 'touch' && on.hover(null));
}

function wheel(canvas, on) {
  let delta = 0;
  canvas.addEventListener('wheel', (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    delta += event.deltaMode === 1 ? event.deltaY * 33 : event.deltaY;
    if (Math.abs(delta) < WHEEL_LEAST) return;
    on.zoom(WHEEL_FACTOR ** -delta, [event.offsetY, event.offsetX]);
    delta = 0;
  }, { passive: false });
}

function fingers(canvas, on) {
  let start = null;
  const middle = ([one, other]) => ({ x: (one.clientX + other.clientX) / 2, y: (one.clientY + other.clientY) / 2,
    apart: Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) });
  const begin = (touches) => {
    start = middle(touches);
    on.grab();
  };
  canvas.addEventListener('touchstart', (event) => {
    if (event.touches.length !== 2) return;
    event.preventDefault();
    begin(event.touches);
  }, { passive: false });
  canvas.addEventListener('touchmove', (event) => {
    if (!start || event.touches.length !== 2) return;
    event.preventDefault();
    const now = middle(event.touches);
    const factor = now.apart / start.apart;
    if (factor < 0.87 || factor > 1.15) {
      const box = canvas.getBoundingClientRect();
      on.zoom(factor, [now.y - box.top, now.x - box.left]);
      begin(event.touches);
    } else on.drag(now.x - start.x, now.y - start.y);
  }, { passive: false });
  for (const end of ['touchend', 'touchcancel']) canvas.addEventListener(end, () => { start = null; });
}

/* ---- keys ---- */

const after = (list, one) => list[(list.indexOf(one) + 1) % list.length];

/* key: what it does to the moves of a map, the map, and the state's store. */
const KEYS = {
  ArrowLeft: (moves) => moves.step(0, -1),
  ArrowRight: (moves) => moves.step(0, 1),
  ArrowUp: (moves) => moves.step(-1, 0),
  ArrowDown: (moves) => moves.step(1, 0),
  PageUp: (moves) => moves.page(-1),
  PageDown: (moves) => moves.page(1),
  Home: (moves) => moves.to(null, 0),
  End: (moves) => moves.to(null, Infinity),
  'Ctrl+Home': (moves) => moves.to(0, 0),
  'Ctrl+End': (moves) => moves.to(Infinity, Infinity),
  '[': (moves) => moves.step(-1, 0),
  ']': (moves) => moves.step(1, 0),
  '+': (moves) => moves.zoom(ZOOM),
  '=': (moves) => moves.zoom(ZOOM),
  '-': (moves) => moves.zoom(1 / ZOOM),
  0: (moves) => moves.fit(),
  1: (moves) => moves.one(),
  r: (moves, map, store) => store.set({ red: after(REDUCTIONS, store.state.red) }, { undo: 'red' }),
  m: (moves, map, store) =>
    store.set({ cmap: after(Object.keys(map.page.catalogue.catalogue().cmaps), map.canvas.dataset.cmap) },
      { undo: 'cmap' }),
  t: (moves, { figure }) => {
    figure.table.open = !figure.table.open;
    figure.fillTable();
  },
  c: (moves, map) => map.keys.copy(),
  w: (moves, map) => map.explain(),
  '?': (moves, map) => map.page.help?.(),
};

export class Keys {
  #timer = null;
  #rested = false;   /* keys rest, and the cell has not been spoken of */

  constructor(map) { this.map = map; }

  /* True if the key meant something here. */
  press(event) {
    const name = event.ctrlKey ? `Ctrl+${event.key}` : event.key;
    if (!Object.hasOwn(KEYS, name)) return false;
    hover(null);
    KEYS[name](this.map.moves, this.map, this.map.page.store);
    clearTimeout(this.#timer);
    if (!'rmtcw?'.includes(name)) this.#timer = setTimeout(() => this.#rest(), REST_MS);
    return true;
  }

  #rest() {
    this.#rested = true;
    this.say();
  }

  /* Called again when the value has come. */
  say() {
    const { readout, page } = this.map;
    if (!this.#rested || readout.text === null) return;
    this.#rested = false;
    page.announce(word('heat.says', { where: readout.where.textContent, value: readout.output.textContent }));
  }

  async copy() {
    const { readout, page } = this.map;
    if (!readout.text) return;
    if (await copyText(readout.text)) page.announce(word('panel.copied'));
  }

  close() { clearTimeout(this.#timer); }
}
