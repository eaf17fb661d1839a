/* The address and the store: what is read, what is written, what can be undone, what Back walks through. */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { Store, initial, parse, print } from '../../server/page/state.js';

const rope = { scheme: 'rope', len: 128 };

function read(hash, known) {
  const { state, bad } = parse(hash, known);
  assert.deepEqual(bad, []);
  return state;
}

test('what is printed reads back the same', () => {
  const state = { ...initial(), view: 'curves', configs: { b: { scheme: 'rope', text: 'a=b&c 100% 狗' } }, cur: [1, 2], at: [0],
    zoom: { row: { px: 3, step: 1 }, col: { px: 1, step: 7 } }, lo: -1e-7, hi: 1e21, own: { cols: '0,5', pairing: 'cos' } };
  assert.deepEqual(read(print(state)), state);
});

test('a bad value is its default and its key is named', () => {
  const bad = { view: 'nothing', on: 'e', at: '1,x', win: '1', zoom: '0x4', cur: '1,2,3', red: 'median', lo: 'low', hi: 'Infinity',
    lang: 'fr', theme: 'blue', a: '[1]', b: 'null', c: '{', d: '%zz', out: '', cmap: 'a b', cols: '1,-2', m: 'x', train: '1.5',
    pairing: 'both', sec: '-1' };
  for (const [key, value] of Object.entries(bad)) {
    assert.deepEqual(parse(`#${key}=${value}`), { state: initial(), bad: [key] }, `${key}=${value}`);
  }
  for (const zoom of ['8', '8x', '8x8x8', '2/3x1', '1/0x1', 'x', '1e3x1', '-1x1', 'FIT']) {
    assert.deepEqual(parse(`#zoom=${zoom}`).bad, ['zoom'], zoom);
  }
  if (JSON.rawJSON) assert.deepEqual(parse('#a={"scheme":"learned","seed":9007199254740993}').bad, ['a']);
});

test('a=null: the last configuration was removed', () => {
  assert.equal(read(print(read('#a=null'))).emptied, true);
});

/* A window that records what is written to its address. */
function fakeWindow(hash = '') {
  const listeners = {};
  const log = [];
  const location = { hash };
  const write = (kind) => (data, title, address) => { location.hash = address; log.push([kind, address]); };
  return { location, log, history: { pushState: write('push'), replaceState: write('replace') },
    addEventListener: (event, listener) => { listeners[event] = listener; },
    fire: (event) => listeners[event](),
    visit(address) { location.hash = address; listeners.popstate(); listeners.hashchange(); } };
}

function open(hash) {
  const window = fakeWindow(hash);
  const store = new Store({ window });
  store.example = () => ({ a: rope });
  return { window, store };
}

test('sixty values of a slider are few writes, no entry of the history and one step', async (t) => {
  t.mock.timers.enable({ apis: ['Date', 'setTimeout'], now: 10000 });
  const { window, store } = open('#view=table');
  for (let i = 1; i <= 60; i++) {
    store.set({ configs: { a: { ...rope, len: i } } }, { undo: 'a.len' });
    t.mock.timers.tick(16);
  }
  t.mock.timers.tick(200);
  assert.ok(window.log.length <= 8, `${window.log.length} writes`);
  assert.ok(window.log.every(([kind]) => kind === 'replace'));
  assert.equal(read(window.location.hash).configs.a.len, 60);
  store.undo();
  assert.deepEqual(store.state.configs, {});
  assert.equal(store.canUndo, false);
  store.redo();
  assert.equal(store.state.configs.a.len, 60);
});

test('a pause or another control begins a new step', (t) => {
  t.mock.timers.enable({ apis: ['Date', 'setTimeout'], now: 10000 });
  const { store } = open('#view=table');
  const change = (key, value) => store.set({ configs: { a: { [key]: value } } }, { undo: `a.${key}` });
  change('len', 1);
  change('base', 2);
  t.mock.timers.tick(1000);
  change('base', 3);
  assert.equal(store.done.length, 3);
  store.undo();
  assert.deepEqual(store.state.configs.a, { base: 2 });
  change('base', 4);
  assert.equal(store.canRedo, false);
});

test('one press of a pointer is one step, however long it rests; the next is another', (t) => {
  t.mock.timers.enable({ apis: ['Date', 'setTimeout'], now: 10000 });
  const { window, store } = open('#view=table');
  const drag = (values) => {
    window.fire('pointerdown');
    for (const len of values) {
      store.set({ configs: { a: { len } } }, { undo: 'a.len' });
      t.mock.timers.tick(1500);
    }
    window.fire('pointerup');
  };
  drag([1, 2, 3]);
  drag([4, 5]);
  assert.equal(store.done.length, 2);
  store.undo();
  assert.deepEqual(store.state.configs.a, { len: 3 });
});

test('a step that moved the cursor brings it back, another leaves it where it is', () => {
  const { store } = open('#view=table&cur=1,1');
  store.set({ out: 'cos', at: [2], cur: [7, 7], win: [4, 4] }, { undo: 'cur' });
  store.set({ cur: [8, 8] }, { undo: false });
  store.undo();
  assert.deepEqual([store.state.out, store.state.cur, store.state.win], [null, [1, 1], [0, 0]]);
  store.redo();
  assert.deepEqual([store.state.out, store.state.cur, store.state.win], ['cos', [8, 8], [4, 4]]);
  store.set({ configs: { a: { scheme: 'alibi' } } });
  store.set({ cur: [9, 9] }, { undo: false });
  store.undo();
  assert.deepEqual([store.state.configs, store.state.cur], [{}, [9, 9]]);
});

test('undo in another view brings back configurations, not the view', () => {
  const { store } = open('#view=table');
  store.set({ configs: { a: { scheme: 'alibi' } }, out: 'bias' });
  store.set({ view: 'curves', out: 'sin' }, { undo: false });
  store.undo();
  assert.deepEqual([store.state.view, store.state.out, store.state.configs], ['curves', 'sin', {}]);
});

test('a changed hash is obeyed at once, and its bad keys are named', () => {
  const { window, store } = open('#view=table');
  const told = [];
  store.subscribe((state, before) => told.push([before.view, state.view]));
  window.visit('#view=curves&cur=no');
  assert.deepEqual(told, [['table', 'curves']]);
  assert.deepEqual(store.bad, ['cur']);
  assert.equal(window.log.length, 0);
});

test('a listener may change the state, and all hear of it in order', () => {
  const { store } = open('#view=table');
  const told = [];
  store.subscribe((state) => { if (state.out === 'x') store.set({ out: 'y' }); });
  store.subscribe((state, before) => told.push([before.out, state.out]));
  store.set({ out: 'x' });
  assert.deepEqual(told, [[null, 'x'], ['x', 'y']]);
});
