/* Experiment: a small decoder trained with each configuration while its reader watches, and how far each carries beyond
 * the length that it was trained at. */
import { Refusal } from '../ask.js';
import { Chart } from '../chart.js';
import { downloadBlob } from '../copying/save.js';
import { line, python, shell } from '../copying/request.js';
import { action, code, freshId, make, mark, name } from '../dom.js';
import { extent, roomy } from '../draw/axes.js';
import { dashOf } from '../draw/series.js';
import { datum, shortDatum } from '../figure.js';
import { gap, phrase, word } from '../words.js';
import { choice, sliderField } from './controls.js';
import { bodyFor, rowOf, rowTable } from './parts.js';
import { colorOfSlot, dashOfSlot } from './slots.js';

const PATH = '/experiments';
/* read by fetch: an EventSource sends no token and cannot say why it was refused */
const EVENTS = { Accept: 'text/event-stream' };

/* Key of the address: its field of the request, the value of the example, and the range of its slider. */
const FIELDS = {
  steps: { field: 'steps', value: 120, min: 1, max: 2000, spacing: 'log' },
  train: { field: 'train_len', value: 32, min: 16, max: 512, step: 2 },
  eval: { field: 'eval_len', value: 96, min: 16, max: 1024 },
  seed: { field: 'seed', value: 0, min: 0, max: 99 },
};
const TASKS = ['local', 'lag'];

/* The decoder has these from the experiment, so those of a configuration stay here. */
const FIXED = ['dim', 'head_dim', 'num_heads', 'rows', 'dtype', 'seed', 'std'];

const HEADS = ['config', 'inside', 'outside', 'rise'].map((key) => `experiment.${key}`);

const cell = (line, i) => ({ row: i });

class Experiment {
  #asked = null;      /* the request that was asked last, as text */
  #result = '';       /* the last event as served */

  constructor(page, root) {
    this.page = page;
    this.loss = this.#chart('loss', 0);
    this.excess = this.#chart('excess', 1);
    this.loss.figure.notices.element.id = freshId('notices');
    this.results = make('div', { class: 'figures' });
    root.append(this.#controls(),
      make('div', { class: 'figures' }, this.loss.figure.element, this.excess.figure.element), this.results);
    /* A link within a story is not one to its figure. */
    this.onLink = () => page.main || this.#isAsked() || this.start();
    window.addEventListener('hashchange', this.onLink);
    /* until it is started */
    for (const { figure } of page.main ? [this.loss, this.excess] : []) {
      Object.assign(figure, { state: 'empty' }).element.hidden = true;
    }
  }

  /* What the cursor is at stands in the address: the step, then the position. */
  #chart(title, axis) {
    const onCursor = (x) => this.page.store.set({ cur: this.page.store.state.cur.with(axis, x) }, { undo: false });
    const chart = new Chart(this.page,
      { view: 'experiment', slot: 'a', label: word(`experiment.${title}.title`), onCursor });
    mark(chart.figure.element, { output: title });   /* both are of all configurations */
    return chart;
  }

  #controls() {
    this.task = choice({
      name: 'task', text: word('experiment.task'), pick: (task) => this.page.setOwn({ task }, 'task'),
    });
    this.fields = Object.fromEntries(Object.entries(FIELDS).map(([key, { spacing }]) => (
      [key, sliderField({
        name: key, text: word(`experiment.${key}`), spacing, move: (value) => this.#set(key, value),
      })])));
    for (const { number } of Object.values(this.fields)) {
      number.setAttribute('aria-describedby', this.loss.figure.notices.element.id);
    }
    this.begin = action('start', word('experiment.start'), null, { type: 'submit', class: 'primary' });
    this.end = action('stop', word('figure.stop'), () => this.loss.figure.cancel());
    this.save = action('save', word('experiment.save'),
      () => downloadBlob(new Blob([this.#result], { type: 'application/json' }), 'experiment.json'));
    this.said = make('p', { class: 'hint', role: 'status' });
    const onsubmit = (event) => {
      event.preventDefault();
      this.start();
    };
    const buttons = make('div', { class: 'toolbar' }, this.begin, this.end, this.save);
    this.#running(false);
    const fields = Object.values(this.fields).map((one) => one.element);
    return make('form', { class: 'view-controls', novalidate: true, onsubmit }, this.task.element, fields, buttons,
      this.said);
  }

  /* ---- the request ---- */

  get own() { return this.page.store.state.own; }

  value(key) { return Number(this.own[key] ?? FIELDS[key].value); }

  #set(key, value) {
    const own = { [key]: String(value) };
    if (key === 'train' && this.value('eval') < value) own.eval = own.train;
    this.page.setOwn(own, key);
  }

  get taskNow() { return this.own.task ?? TASKS[0]; }

  body() {
    const fields = Object.entries(FIELDS).map(([key, { field }]) => [field, this.value(key)]);
    const configs = this.page.configs().map(([, config]) => {
      const all = bodyFor(this.page.catalogue, PATH, config, { sequence: false });
      return Object.fromEntries(Object.entries(all).filter(([field]) => !FIXED.includes(field)));
    });
    return { task: this.taskNow, ...Object.fromEntries(fields), configs };
  }

  #isAsked() { return JSON.stringify(this.body()) === this.#asked; }

  /* ---- when it trains: once opened, by a link, by its button; not while settings change; in a story by its button
   * only ---- */

  update() {
    this.task.show(TASKS.map((task) => [task, code(task)]), this.taskNow);
    for (const [key, { value, min, max, step }] of Object.entries(FIELDS)) {
      this.fields[key]
        .show({ value: this.value(key) ?? value, min: key === 'eval' ? this.value('train') : min, max, step });
    }
    [this.loss, this.excess].forEach((chart, axis) => chart.setCursor(this.page.store.state.cur[axis]));
    if (!this.page.configs().length) return;
    if (this.#asked === null && !this.page.main) this.start();
    this.#compare();
  }

  /* Pictures of other settings are dimmed, and it is said how to get those of these. */
  #compare() {
    const same = this.#asked === null || this.#isAsked();
    const left = FIXED.filter((field) => this.page.configs().some(([, config]) => field in config));
    this.said.replaceChildren(
      same
        ? make('span', null, word(`experiment.task.${this.taskNow}`))
        : phrase('experiment.changed', { start: make('b', null, word('experiment.start')) }),
      ...left.length ? [gap(), phrase('experiment.fixed', { fields: code(left.join(', ')) })] : []
    );
    const settled = ['ready', 'stale'].includes(this.loss.figure.state) && this.end.disabled;
    for (const { figure } of settled ? [this.loss, this.excess] : []) figure.state = same ? 'ready' : 'stale';
  }

  start() {
    const body = this.body();
    this.#asked = JSON.stringify(body);
    const slots = this.page.configs().map(([slot]) => slot);
    const cause = this.page.cause();
    const { figure } = this.loss;
    const { waiting } = figure.notices;
    figure.element.hidden = false;
    figure.ask((get, stage) => this.#job(get, stage, { body, slots, cause }));
    if (waiting) figure.again(cause);   /* its user does not wait for the countdown */
    this.#compare();
  }

  #running(on) {
    const focused = [this.begin, this.end].includes(document.activeElement);
    this.begin.disabled = on;
    this.end.disabled = !on;
    this.save.disabled = on || !this.#result;
    if (focused) (on ? this.end : this.begin).focus();
  }

  async #job(get, stage, run) {
    this.#running(true);
    this.#complain(null, run);
    if (this.excess.figure.state === 'ready') this.excess.figure.state = 'stale';
    this.excess.figure.element.hidden = false;
    const decoder = new TextDecoder();
    const data = 'data: ';
    let rest = '';
    Object.assign(run, { lines: run.slots.map(() => ({ x: [], y: [] })), configs: [], done: null });
    const onPiece = (piece) => {
      const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
      rest = lines.pop();
      for (const line of lines) if (line.startsWith(data)) this.#readEvent(run, line.slice(data.length));
      if (!stage.signal.aborted && lines.length) this.#drawLoss(run);
    };
    try {
      await get({ path: PATH, body: run.body, headers: EVENTS }, { as: 'text', cached: false, onPiece });
      if (run.failed) this.loss.figure.refuse(run.failed.detail);
      else if (run.done) this.#drawDone(run);
    } catch (error) {
      if (!(error instanceof Refusal) || !this.#complain(error, run)) throw error;
    } finally {
      this.excess.figure.element.hidden = !this.#result;   /* its place was kept while there was hope */
      this.#running(false);
    }
  }

  /* The data of one event. */
  #readEvent(run, line) {
    const event = JSON.parse(line);
    if (event.event === 'start') {
      run.configs = event.configs;
      run.slots.forEach((slot, i) => this.page.publish(slot, { config: event.configs[i], tensors: {} }));
    } else if (event.event === 'progress') {
      run.now = event;
      run.lines[event.run].x.push(event.step);
      run.lines[event.run].y.push(event.loss);
    } else if (event.event === 'done') {
      run.done = event;
      this.#result = line;
    } else if (event.event === 'error') run.failed = event;
  }

  /* What was refused of a configuration is told by its card, of ours by its control: true where the notice stands.
   * error null: nothing is wrong any more. */
  #complain(error, { slots, cause }) {
    const { figure } = this.loss;
    const [, where, i, ...rest] = error?.problem.pointer?.split('/') ?? [];
    this.page.refused(figure.slot, null);
    figure.slot = slots[i] ?? slots[0];
    for (const { figure: { element } } of [this.loss, this.excess]) element.dataset.config = slots[0];
    if (where === 'configs') error.problem = { ...error.problem, pointer: `/${rest.join('/')}` };
    const wrong = Object.keys(FIELDS).find((key) => FIELDS[key].field === where);
    for (const [key, { number }] of Object.entries(this.fields)) number.setAttribute('aria-invalid', key === wrong);
    if (!wrong) return false;
    figure.refuse(error.message);
    if (['key', 'link', 'load'].includes(cause)) this.fields[wrong].number.focus();
    return true;
  }

  /* ---- pictures ---- */

  #line(run, result) {
    const slot = run.slots[result.run];
    return {
      name: this.#nameOf(run, result), color: () => colorOfSlot(slot),
      dash: result.eval === null ? dashOfSlot(slot) : dashOf(4 + result.eval),
    };
  }

  #drawLoss(run) {
    const { body, slots, lines, now, done } = run;
    if (!now) return;
    const series = lines.map((line, i) => (
      { id: `${slots[i]}:loss`, ...this.#line(run, { run: i, eval: null }), x: [...line.x], y: [...line.y] }
    )).filter(({ x }) => x.length);
    const floors = done ? [done.results[0].floor] : [];
    this.loss.draw(series, {
      xLabel: word('experiment.step'), yLabel: word('experiment.loss'), whole: true, xRange: [0, body.steps],
      yRange: roomy(extent([...series.map((line) => line.y), floors])),
      marks: floors.map((at) => ({ axis: 'y', at, label: word('experiment.floor') })), cell,
    });
    this.#call(this.loss, 'loss', run);
    const values = { steps: String(body.steps), train: String(body.train_len) };
    const ended = () => phrase('experiment.trainedIn',
      { ...values, seconds: datum(done.seconds, 'seconds'), floor: shortDatum(floors[0], 'floor') });
    const running = () => phrase('experiment.running', {
      ...values, scheme: name(this.#nameOf(run, { run: now.run, eval: null }, true)),
      step: shortDatum(now.step, 'step'),
      loss: shortDatum(now.loss, 'loss'),
    });
    this.loss.figure.caption.replaceChildren(done ? ended() : running());
    if (!done && this.loss.figure.state !== 'ready') this.loss.figure.drawn();
  }

  #drawDone(run) {
    const { body, slots, done: { results, tensors } } = run;
    const series = results.map((result, k) => {
      const y = tensors[`excess.${k}`].data.map(Number);
      return {
        id: `${slots[result.run]}:excess${result.eval === null ? '' : `.${result.eval}`}`, ...this.#line(run, result),
        x: y.map((_, at) => at), y,
      };
    });
    const { train_len: from, eval_len: to } = body;
    this.excess.draw(series, {
      xLabel: word('axis.position'), yLabel: word('experiment.excess'), whole: true, xRange: [0, to],
      marks: [{ axis: 'x', at: from, label: word('experiment.train') }], bands: [{ axis: 'x', from, to }], cell,
    });
    this.#call(this.excess, 'excess', run);
    this.results.replaceChildren(rowTable(
      word('experiment.results'), HEADS, results.map((one) => this.#row(run, one))
    ));
    this.excess.figure.caption.replaceChildren(...this.#caption(run));
    this.excess.figure.drawn();
    this.page.announce(this.excess.figure.caption.textContent);
  }

  /* a rope {"base":500}; in a sentence rope {"base":500} (a), as "a rope" would be one of many. */
  #nameOf(run, { run: i, eval: other }, inSentence = false) {
    const [slot, { scheme }] = [run.slots[i], run.configs[i]];
    const all = other === null ? scheme : `${scheme} ${JSON.stringify(run.body.configs[i].eval?.[other] ?? other)}`;
    return inSentence ? `${all} (${slot})` : `${slot} ${all}`;
  }

  #row(run, result) {
    const numbers = ['inside', 'outside', 'rise'].map((key) => shortDatum(result[key], key));
    return rowOf([name(this.#nameOf(run, result)), ...numbers],
      { 'data-config': run.slots[result.run], 'data-eval': result.eval });
  }

  /* Who loses most beyond the trained length, and who least. */
  #caption(run) {
    const ordered = run.done.results.toSorted((one, other) => other.rise - one.rise);
    const said = (result) => ({
      scheme: name(this.#nameOf(run, result, true)), rise: shortDatum(result.rise, 'rise'),
      train: String(run.body.train_len),
    });
    if (ordered.length === 1) return [phrase('experiment.only', said(ordered[0]))];
    return [phrase('experiment.most', said(ordered[0])), gap(), phrase('experiment.least', said(ordered.at(-1)))];
  }

  #call(chart, title, { configs, body }) {
    const schemes = configs.map(({ scheme }) => scheme).join(', ');
    chart.rename(word(`experiment.${title}.label`, { schemes, n: title === 'loss' ? body.steps : body.eval_len }));
    chart.figure.rename(word(`experiment.${title}.title`));
  }

  /* ---- for the page ---- */

  request() {
    const body = this.body();
    return body.configs.length
      ? {
        path: PATH, body, texts: { curl: (about) => curlText(body, about), python: (about) => pythonText(body, about) },
      }
      : null;
  }

  close() {
    window.removeEventListener('hashchange', this.onLink);
    this.loss.close();
    this.excess.close();
  }
}

/* The events as they come. */
function curlText(body, { origin, token }) {
  const header = token ? ['-H "Authorization: Bearer $TOKEN"'] : [];
  return [`curl -fN ${shell(origin + PATH)}`, ...header, `-d ${shell(line(body))}`].join(' \\\n  ');
}

/* In x what each loses at each position. */
function pythonText(body, { origin, token }) {
  const bearer = token ? ', "Authorization": "Bearer " + os.environ["TOKEN"]' : '';
  return [
    'import json', ...token ? ['import os'] : [], 'import urllib.request', '', 'import numpy as np', '',
    `request = ${python(body)}`,
    `headers = {"Content-Type": "application/json"${bearer}}`,
    `call = urllib.request.Request(${JSON.stringify(origin + PATH)}, json.dumps(request).encode(), headers)`,
    'with urllib.request.urlopen(call) as answer:',
    '    for line in answer:',
    '        event = json.loads(line)',
    '        print(event["event"], event.get("run"), event.get("step"), event.get("loss"))',
    'x = np.array([event["tensors"][f"excess.{i}"]["data"] for i in range(len(event["results"]))], float)',
    'print(x.dtype, x.shape)',
  ].join('\n');
}

export default {
  name: 'experiment', path: PATH, setsSequence: true,
  example: () => ({ a: { scheme: 'alibi' }, b: { scheme: 'sinusoidal' } }),
  open: (page, root) => new Experiment(page, root),
};
