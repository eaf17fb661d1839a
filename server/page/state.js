/* The page's state and its address: parse and print are pure, Store keeps the state, its history and its undo steps. */
import { storyNamed } from './stories/list.js';
import { viewNamed } from './views/list.js';

export const SLOTS = ['a', 'b', 'c', 'd'];
const WRITE_MS = 150;   /* browsers refuse more than about 100 replaceState in 30 s or 10 s */
/* changes of one control this close together are one step, as are those of one press of a pointer */
const MERGE_MS = 1000;
const CELL_PX_MAX = 1024;

/* ---- values: each reads a text to a value, or gives undefined for a bad one ---- */

const oneOf = (...words) => (text) => words.includes(text) ? text : undefined;
const matching = (pattern) => (text) => pattern.test(text) ? text : undefined;
const when = (good, value) => good ? value : undefined;

function integer(text) {
  return when(/^\d+$/.test(text) && Number.isSafeInteger(Number(text)), Number(text));
}

function real(text) {
  return when(/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text) && Number.isFinite(Number(text)), Number(text));
}

function list(text, read, count) {
  const values = text.split(',').map(read);
  return when(!values.includes(undefined) && (!count || values.length === count), values);
}

const integers = (text) => list(text, integer);
const cell = (text) => list(text, integer, 2);
const unchanged = (read) => (text) => when(read(text) !== undefined, text);

/* '8': eight pixels a cell; '1/133': 133 cells a pixel. */
function scale(text) {
  const [, px, step] = /^(\d{1,15})(?:\/(\d{1,15}))?$/.exec(text) || [];
  if (step === undefined) return when(px >= 1 && px <= CELL_PX_MAX, { px: Number(px), step: 1 });
  return when(Number(px) === 1 && step >= 1, { px: 1, step: Number(step) });
}

function zoom(text) {
  if (text === 'fit') return 'fit';
  const [row, col, more] = text.split('x').map(scale);
  return when(row && col && !more, { row, col });
}

/* An integer that no double holds would become another request. */
function exact(key, value, context) {
  if (typeof value === 'number' && /^-?\d+$/.test(context?.source) && !Number.isSafeInteger(value)) {
    throw new RangeError(key);
  }
  return value;
}

function configuration(text) {
  const value = JSON.parse(text, exact);
  return when(value && typeof value === 'object' && !Array.isArray(value), value);
}

const printScale = ({ px, step }) => step === 1 ? String(px) : `1/${step}`;
const printZoom = (value) => value === 'fit' ? value : `${printScale(value.row)}x${printScale(value.col)}`;

/* ---- the table of keys: how a text is read, what stands for none, how it is printed if not by String ---- */

const PLACE = {
  view: { read: (text) => viewNamed(text)?.name, none: 'gallery' },
  story: { read: (text) => storyNamed(text)?.name, none: null },
  sec: { read: integer, none: null },
};
const LOOK = {
  on: { read: oneOf(...SLOTS, 'b-a'), none: 'a' },
  out: { read: matching(/^[A-Za-z0-9_.:-]+$/), none: null },
  at: { read: integers, none: [] },
  win: { read: cell, none: [0, 0] },
  zoom: { read: zoom, none: 'fit', print: printZoom },
  cur: { read: cell, none: [0, 0] },
  red: { read: oneOf('mean', 'min', 'max', 'absmax', 'sample'), none: 'mean' },
  cmap: { read: matching(/^[A-Za-z0-9_-]+$/), none: null },
  why: { read: oneOf(...SLOTS), none: null },
  lo: { read: real, none: null },
  hi: { read: real, none: null },
  lang: { read: oneOf('en', 'zh'), none: null },
  theme: { read: oneOf('light', 'dark'), none: null },
};
const KEYS = { ...PLACE, ...LOOK };

/* Keys of single views. The state keeps the text, checked here; the view reads it. */
const OWN = {
  cols: unchanged(integers),
  m: unchanged(real),
  n: unchanged(real),
  train: unchanged(integer),
  eval: unchanged(integer),
  task: oneOf('local', 'lag'),
  steps: unchanged(integer),
  seed: unchanged(integer),
  pairing: oneOf('paired', 'sin', 'cos', 'mismatched', 'repeated', 'flipped', 'shifted'),
  scale: oneOf('shared', 'own'),
  spin: unchanged(real),
};

export function initial() {
  const values = Object.entries(KEYS).map(([key, { none }]) => [key, none]);
  return { ...Object.fromEntries(values), configs: {}, emptied: false, own: {} };
}

/* ---- parse and print ---- */

/* A hash, with or without '#', to { state, bad: [keys whose value is not one] }. What only the page knows:
 * `known.cmaps`, names of colour maps; `known.view`, the view of an address that names none. */
export function parse(hash, known = {}) {
  const state = { ...initial(), view: known.view ?? PLACE.view.none };
  const bad = [];
  for (const [key, raw] of pairs(hash)) {
    if (isKnown(key) && !attempt(() => take(state, key, decodeURIComponent(raw)))) bad.push(key);
  }
  if (state.cmap && known.cmaps && !known.cmaps.includes(state.cmap)) drop(state, bad, 'cmap');
  if (state.lo !== null && state.hi !== null && state.lo >= state.hi) drop(state, bad, 'lo', 'hi');
  if (Object.keys(state.configs).length) state.emptied = false;
  return { state, bad };
}

/* Of a key that stands twice the last one counts. */
function pairs(hash) {
  const parts = hash.replace(/^#/, '').split('&').map((part) => {
    const at = part.indexOf('=');
    return at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)];
  });
  return new Map(parts);
}

/* A bad escape and bad JSON are bad values, not exceptions. */
function attempt(job) {
  try { return job(); } catch { return false; }
}

const isKnown = (key) => SLOTS.includes(key) || Object.hasOwn(OWN, key) || Object.hasOwn(KEYS, key);

function take(state, key, text) {
  if (SLOTS.includes(key)) return takeConfiguration(state, key, text);
  if (Object.hasOwn(OWN, key)) return put(state.own, key, OWN[key](text));
  return put(state, key, KEYS[key].read(text));
}

/* a=null: the user has removed the last configuration, so the view's example stays away. */
function takeConfiguration(state, slot, text) {
  if (slot === 'a' && text === 'null') return state.emptied = true;
  return put(state.configs, slot, configuration(text));
}

function put(target, key, value) {
  if (value === undefined) return false;
  target[key] = value;
  return true;
}

function drop(state, bad, ...keys) {
  for (const key of keys) state[key] = KEYS[key].none;
  bad.push(...keys);
}

/* The hash of a state, without what equals its default. Language and theme are those of the state (null: not in it)
 * unless `given` has others. */
export function print(state, given) {
  const all = { ...state, ...given };
  const configs = all.emptied ? { a: null } : all.configs;
  const parts = [
    ...texts(PLACE, all),
    ...SLOTS.filter((slot) => configs[slot] !== undefined).map((slot) => [slot, JSON.stringify(configs[slot])]),
    ...Object.keys(OWN).filter((key) => all.own[key] !== undefined).map((key) => [key, all.own[key]]),
    ...texts(LOOK, all),
  ];
  return '#' + parts.map(([key, text]) => `${key}=${encodeURIComponent(text)}`).join('&');
}

const texts = (keys, state) => Object.entries(keys)
  .map(([key, { print: write = String, none }]) => [key, write(state[key]), write(none)])
  .filter(([key, text, none]) => key === 'view' || text !== none);

/* ---- the store ---- */

const same = (one, other) => print(one) === print(other);

/* A step brings back these; with them what belongs to the view, if it is still the one in front. */
const SHARED = ['configs', 'emptied', 'on'];
const OF_VIEW = ['out', 'at', 'red', 'cmap', 'lo', 'hi', 'own'];
const CURSORS = ['cur', 'win', 'zoom'];   /* likewise, where the step was about them: else they stay */

const pick = (state, keys) => Object.fromEntries(keys.map((key) => [key, state[key]]));

export class Store {
  /* busy: { begin, end } counts an address that is still to be written as work under way. */
  constructor({ window, busy, known }) {
    this.window = window;
    this.busy = busy;
    this.known = known;
    this.example = () => ({});   /* of the view in front, set by the page: what is shown while the address names none */
    this.listeners = new Set();
    this.undone = [];
    this.done = [];
    this.moved = new WeakMap();   /* state of a step: which of CURSORS it moved */
    this.step = { key: null, time: 0 };
    this.held = null;   /* the press of a pointer that goes on */
    this.written = { hash: window.location.hash, time: 0, timer: null };
    Object.assign(this, parse(window.location.hash, known));
    for (const event of ['hashchange', 'popstate']) window.addEventListener(event, () => this.obey());
    window.addEventListener('pagehide', () => this.flush());
    window.addEventListener('pointerdown', () => { this.held = {}; }, true);
    for (const event of ['pointerup', 'pointercancel']) {
      window.addEventListener(event, () => { this.held = null; }, true);
    }
  }

  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  set(patch, { undo } = {}) {
    const next = { ...this.state, ...patch };
    if (same(next, this.state)) return;
    if (undo !== false) this.remember(undo, CURSORS.filter((key) => key in patch));
    this.change(next);
  }

  /* Takes all of a link; what was shown before can be had back. */
  restore(hash) { this.change(this.read(hash)); }

  read(hash) {
    this.remember();
    const { state, bad } = parse(hash, this.known);
    this.bad = bad;
    return state;
  }

  /* The slots that are shown: of the address, else of the view's example. */
  slots(state = this.state) {
    const configs = Object.keys(state.configs).length || state.emptied ? state.configs : this.example();
    return SLOTS.filter((slot) => configs[slot]);
  }

  get canUndo() { return this.done.length > 0; }
  get canRedo() { return this.undone.length > 0; }
  undo() { this.travel(this.done, this.undone); }
  redo() { this.travel(this.undone, this.done); }

  travel(from, to) {
    const step = from.pop();
    if (!step) return;
    const cursors = this.moved.get(step) ?? [];
    to.push(this.state);
    this.moved.set(this.state, cursors);
    this.step.key = null;
    const keys = step.view === this.state.view ? [...SHARED, ...OF_VIEW, ...cursors] : SHARED;
    this.change({ ...this.state, ...pick(step, keys) });
  }

  remember(key = null, cursors = []) {
    const now = Date.now();
    const { step, held } = this;
    const merged = key !== null && key === step.key && (now - step.time < MERGE_MS || (held && held === step.held));
    this.step = { key, time: now, held };
    this.undone.length = 0;
    if (!merged) this.done.push(this.state);
    const last = this.done.at(-1);
    this.moved.set(last, [...new Set([...this.moved.get(last) ?? [], ...cursors])]);
  }

  change(next) {
    const before = this.state;
    this.state = next;
    this.write(before);
    this.tell(before);
  }

  /* A listener may change the state: the others then hear of both, one after the other. */
  tell(before) {
    this.untold ??= before;
    if (this.telling) return;
    this.telling = true;
    try {
      while (this.untold) this.tellAll();
    } finally {
      this.telling = false;
    }
  }

  tellAll() {
    const { state, untold } = this;
    this.untold = null;
    for (const listener of [...this.listeners]) listener(state, untold);
  }

  /* ---- the address ---- */

  /* Back walks through views, stories and sets of configurations, never through values of a slider. */
  isPlace(before) {
    const { state } = this;
    const slots = (one) => this.slots(one).join('');
    return ['view', 'story', 'sec'].some((key) => before[key] !== state[key]) || slots(before) !== slots(state);
  }

  write(before) {
    if (this.isPlace(before)) return this.push(before);
    const wait = this.written.time + WRITE_MS - Date.now();
    if (wait <= 0) return this.record('replaceState', this.state);
    if (this.written.timer) return;
    this.busy?.begin();
    this.written.timer = setTimeout(() => this.flush(), wait);
  }

  push(before) {
    if (this.forget()) this.record('replaceState', before);
    this.record('pushState', this.state);
  }

  record(method, state) {
    const hash = print(state);
    Object.assign(this.written, { hash, time: Date.now() });
    this.window.history[method](null, '', hash);
  }

  flush() { if (this.forget()) this.record('replaceState', this.state); }

  /* Gives up a delayed write; true if there was one. */
  forget() {
    const { timer } = this.written;
    if (!timer) return false;
    clearTimeout(timer);
    this.written.timer = null;
    this.busy?.end();
    return true;
  }

  /* The user went back, or wrote another address. */
  obey() {
    const { hash } = this.window.location;
    if (hash === this.written.hash) return;
    this.forget();
    this.written.hash = hash;
    const before = this.state;
    this.state = this.read(hash);
    this.tell(before);
  }
}
