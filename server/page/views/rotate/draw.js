/* The clocks of one configuration: a figure that asks for the rotated q and k and their products, draws the hands and
 * lets them be dragged. */
import { ask } from '../../ask.js';
import { code, copyText, freshId, make, mark, math, name, pictureHeight, styleOf } from '../../dom.js';
import {
  arrange, arrangeWithin, clocksOf, drawClocks, handAt, pairsOf, pairsShown, pixelsOfUnit, turned,
} from '../../draw/hands.js';
import { printed, short } from '../../draw/numbers.js';
import { Figure, paintMeasure, shortDatum } from '../../figure.js';
import { bind, label, live, phrase, word } from '../../words.js';
import { cannot, fillTable, nameOf, versionOf } from '../parts.js';
import { frequencies, products, resolution, rotation, widthOf } from './ask.js';

const FOOT = 22;            /* CSS pixels below a clock, for its number */
const GAP = 8;
const REST_MS = 400;
const BEHIND_MOST = 2;      /* while a hand is dragged and the server is slow */
const ROOM = 300;           /* CSS pixels, before the figure has been laid out */

const product = (...letters) =>
  math('math', null, letters.flatMap((letter, i) => [i ? math('mo', null, '·') : null, math('mi', null, letter)]));

export class Clocks {
  #picture = null;          /* { pairs, q, k, config } of the last answer */
  #clocks = [];
  #drag = null;
  #start = {};              /* where q·k was first seen at this relative position */
  #behind = 0;              /* pictures since the products were asked */

  constructor(view, slot) {
    Object.assign(this, { view, page: view.page, slot, settled: Promise.resolve() });
    this.title = live(() => versionOf(view.page, slot) ?? String(word('rotate.title', { scheme: this.#name() })));
    this.figure = new Figure(this.page, { view: 'rotate', slot, label: this.title });
    this.figure.onTable = () => this.#fillTable();
    this.element = this.figure.element;
    this.numbers = make('p', { class: 'products', id: freshId('products') });
    this.element.querySelector('.figure-stage').before(this.numbers);
    this.figure.caption.id = freshId('caption');
    this.canvas = make('canvas', {
      tabindex: 0, role: 'application', 'data-hands': '', 'aria-label': this.title, class: 'hands',
      'aria-describedby': `${this.numbers.id} ${this.figure.caption.id}`,
    });
    this.figure.stage.append(this.canvas);
    this.#listen();
    this.resizing = new ResizeObserver(() => this.#draw());
    this.resizing.observe(this.figure.stage);
    document.addEventListener('posenc:theme', this.#draw);
  }

  #name() {
    const model = this.page.calledBy(this.slot);
    return model ? label(model) : nameOf(this.page.catalogue, this.config, this.slot);
  }

  /* ---- asking ---- */

  update(config, positions) {
    const asked = JSON.stringify([config, positions]);
    if (asked === this.asked) return;
    Object.assign(this, { asked, config, positions });
    this.settled = this.#ask();
  }

  #ask() {
    const { config, positions } = this;
    return this.figure.ask(async (get, stage) => {
      const width = await this.#widthOf(get, config);
      const scheme = this.page.catalogue.schemeOf(config);
      this.figure.rename(this.title);
      if (scheme && !scheme.endpoints.includes('/rotate')) return this.#refuse('rotate.cannot', scheme);
      const asking = rotation(this.page.catalogue, config, width, positions);
      const answer = await get({ ...asking, body: { ...asking.body, dtype: config.dtype ?? 'f64' } }, { as: 'json' });
      const pairs = pairsOf(answer.config);
      if (!pairs) return this.#refuse('rotate.unpaired', scheme, answer.config.layout);
      const flat = (tensor) => tensor.data.flat(Infinity).slice(0, width).map(Number);
      this.page.publish(this.slot, { config: answer.config, hf_config: answer.hf_config, tensors: answer.tensors });
      this.#show({ pairs, q: flat(answer.tensors.q), k: flat(answer.tensors.k), config: answer.config, width });
      if (stage.over() && this.#behind++ < BEHIND_MOST) return;
      this.#behind = 0;
      const { q, k } = this.#picture;
      const { scores } = await get(products(q, k), { as: 'numbers' });
      this.#say(positions, { qq: scores.texts[0], qk: scores.texts[1], kk: scores.texts[3] });
    });
  }

  async #widthOf(get, config) {
    const known = widthOf(this.page.catalogue, config);
    if (!config.hf_config) return known ?? 2;   /* what cannot be rotated is refused anyway */
    const { config: resolved } = await get(resolution(this.page.catalogue, config), { as: 'json' });
    this.page.catalogue.learn(config, resolved);
    return resolved.head_dim;
  }

  #refuse(key, scheme, layout) {
    this.figure.refuse(cannot(
      this.page.catalogue, key, scheme.name, ({ endpoints }) => endpoints.includes('/rotate'),
      { layout: code(layout ?? '') }
    ));
  }

  /* ---- the picture ---- */

  #show(picture) {
    this.#picture = picture;
    this.width = picture.width;
    bind(this.canvas, 'aria-label',
      live(() => String(word('rotate.canvas', { scheme: this.#name(), count: picture.pairs.length }))));
    this.#draw();
    this.figure.drawn();
  }

  /* Not so while the server is busy or away: a player waits. */
  isShown() { return this.figure.element.dataset.state === 'ready'; }

  #draw = () => {
    if (!this.#picture) return;
    paintMeasure(() => this.#paint());
    this.figure.fillTable();
  };

  #paint() {
    const shown = pairsShown(this.#picture.pairs.length);
    const width = Math.floor(this.figure.stage.clientWidth) || ROOM;
    const plan = this.page.story
      ? arrangeWithin(width, pictureHeight(this.element), shown.length, FOOT)
      : arrange(width, shown.length);
    Object.assign(plan, { left: (width - plan.columns * plan.cell) / 2, foot: FOOT });
    const radius = (plan.cell - GAP) / 2;
    const unit = pixelsOfUnit(this.#picture, radius);
    this.#clocks = clocksOf({ ...this.#picture, shown }, plan, unit);
    const context = this.#fresh(width, plan.rows * (plan.cell + FOOT));
    drawClocks(context, this.#clocks,
      { radius, colours: colours(), font: `12px ${getComputedStyle(this.canvas).fontFamily}` });
    this.#promise(shown, radius, unit);
  }

  /* The canvas at the screen's own resolution, in CSS pixels. */
  #fresh(width, height) {
    const dense = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: Math.round(width * dense), height: Math.round(height * dense) });
    this.canvas.style.setProperty('width', `${width}px`);
    this.canvas.style.setProperty('height', `${height}px`);
    const context = this.canvas.getContext('2d');
    context.scale(dense, dense);
    return context;
  }

  /* Where the clocks stand, in pixels of the bitmap: a hand ends at cx + x·unit, cy - y·unit. */
  #promise(shown, radius, unit) {
    const dense = devicePixelRatio || 1;
    const centres = (axis) => this.#clocks.map(({ centre }) => centre[axis] * dense).join(',');
    mark(this.canvas, {
      pairs: shown.join(','), cx: centres(0), cy: centres(1), radius: radius * dense, unit: unit * dense,
      q: colours().q, k: colours().k, m: this.positions.m, n: this.positions.n,
    });
  }

  /* ---- the caption ---- */

  #say({ m, n }, texts) {
    const value = (key, what) => shortDatum(texts[key], what, 5);
    this.numbers.replaceChildren(
      make('span', { class: 'product' }, product('q', 'k'), value('qk', 'product')),
      make('span', { 'data-hand': 'q' }, product('q', 'q'), value('qq', 'q-squared')),
      make('span', { 'data-hand': 'k' }, product('k', 'k'), value('kk', 'k-squared')));
    this.figure.caption.replaceChildren(
      phrase('rotate.caption', { q: product('q'), k: product('k'), m: short(m), n: short(n), distance: short(n - m) }),
      ...this.#compare({ m, n, qk: Number(texts.qk) })
    );
    this.#announce({ m, n }, texts.qk);
  }

  /* That q·k knows only the relative position is not said but measured: against the first picture with the same one. */
  #compare({ m, n, qk }) {
    const about = JSON.stringify([this.config, n - m]);
    if (about !== this.#start.about) this.#start = { about, m, n, qk };
    const start = this.#start;
    if (start.m === m) return [];
    const change = Math.abs(qk - start.qk);
    return [' ',
      phrase('rotate.shifted', {
        qk: product('q', 'k'), m: short(start.m), n: short(start.n),
        change: shortDatum(change, 'difference', 2),
      })];
  }

  /* What changed, once the hands rest. */
  #announce({ m, n }, qk) {
    clearTimeout(this.resting);
    if (!this.canvas.matches(':focus')) return;
    this.resting = setTimeout(
      () => this.page.announce(word('rotate.live', { m: short(m), n: short(n), product: short(Number(qk), 5) })),
      REST_MS
    );
  }

  #fillTable() {
    const { pairs, q, k } = this.#picture;
    const rows = pairsShown(pairs.length)
      .map((pair) => [pair, String(pair), [q, k].flatMap((v) => pairs[pair].map((channel) => printed(v[channel])))]);
    fillTable(this.figure, this.title, ['q x', 'q y', 'k x', 'k y'].map((text) => name(text)), rows);
  }

  /* ---- touching ---- */

  #listen() {
    const { canvas } = this;
    canvas.addEventListener('pointerdown', (event) => this.#grab(event));
    canvas.addEventListener('pointermove',
      (event) => this.#drag ? this.#pull(event) : canvas.classList.toggle('grab', Boolean(this.#handAt(event))));
    for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, () => { this.#drag = null; });
    /* A finger on a hand drags it; elsewhere it scrolls the page. */
    canvas.addEventListener('touchstart', (event) => {
      if (this.#handAt(event.touches[0])) event.preventDefault();
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => this.#key(event));
  }

  #point({ clientX, clientY }) {
    const box = this.canvas.getBoundingClientRect();
    return [clientX - box.left, clientY - box.top];
  }

  #handAt(event) { return handAt(this.#point(event), this.#clocks); }

  #grab(event) {
    const hand = event.button === 0 && this.#handAt(event);
    if (!hand) return;
    this.canvas.setPointerCapture(event.pointerId);
    const key = hand.hand === 'q' ? 'm' : 'n';
    this.#drag = { ...hand, key, at: this.#point(event), gone: 0, from: this.positions[key], speed: 0 };
    this.#learnSpeed(this.#drag);
  }

  /* A hand follows the pointer: its position is the way gone, in radians, over the radians that the server gives per
   * step. */
  async #learnSpeed(drag) {
    const found = await ask(frequencies(this.page.catalogue, this.config, this.positions), { as: 'json' })
      .catch(() => null);
    drag.speed = found ? Number(found.tensors.inv_freq.data[drag.pair]) * this.#picture.config.direction : 0;
    if (this.canvas.isConnected) this.#follow(drag);
  }

  #pull(event) {
    const drag = this.#drag;
    const point = this.#point(event);
    drag.gone += turned(drag.centre, drag.at, point);
    drag.at = point;
    this.#follow(drag);
  }

  #follow({ speed, gone, from, key }) {
    if (!speed || !gone) return;
    this.view.move({ [key]: Math.round(from + gone / speed) }, `own.${key}`);
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (!Object.hasOwn(this.#keys, event.key)) return;
    event.preventDefault();
    this.#keys[event.key]();
  }

  #keys = {
    ArrowRight: () => this.view.step(1, 0, 'own.m'),
    ArrowLeft: () => this.view.step(-1, 0, 'own.m'),
    ArrowUp: () => this.view.step(0, 1, 'own.n'),
    ArrowDown: () => this.view.step(0, -1, 'own.n'),
    PageUp: () => this.view.step(-10, 0, 'own.m'),
    PageDown: () => this.view.step(10, 0, 'own.m'),
    Home: () => this.view.move({ m: 0 }, 'own.m'),
    End: () => this.view.move({ m: Number(this.view.sliders.m.slider.max) }, 'own.m'),
    ']': () => this.view.step(1, 1, 'rotate.both'),
    '[': () => this.view.step(-1, -1, 'rotate.both'),
    p: () => this.view.toggle(),
    t: () => { this.figure.table.open = !this.figure.table.open; },
    c: () => copyText(this.numbers.querySelector('data')?.value ?? ''),
    '?': () => this.page.help?.(),
  };

  close() {
    clearTimeout(this.resting);
    this.resizing.disconnect();
    document.removeEventListener('posenc:theme', this.#draw);
    this.figure.close();
  }
}

const colours = () => ({
  q: styleOf('--ink'), k: styleOf('--link'), face: styleOf('--paper'), line: styleOf('--line'), ink: styleOf('--dim'),
});
