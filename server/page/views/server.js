/* The server at work: /metrics every two seconds while someone looks, /version, /limits. Values are shown as served; what
 * changed since the last look is a difference of two of them, a latency the bucket in which it was counted. */
import { Refusal } from '../ask.js';
import { Chart } from '../chart.js';
import { action, code, make, name } from '../dom.js';
import { Figure, datum } from '../figure.js';
import { size } from '../states.js';
import { live, phrase, word } from '../words.js';
import { limitsTable } from './limits.js';
import { bucketAt, labelled, parseMetrics, samplesOf, single } from './metrics_text.js';

const PERIOD_MS = 2000;
const LOOKS_MAX = 90;   /* three minutes in the charts */

/* Facts of the moment: [metric, text `server.TEXT`, how its value is written]. */
const NOW = [
  ['posenc_waiting_requests', 'waiting'], ['posenc_in_flight_requests', 'inFlight'], ['posenc_busy_workers', 'busy'], ['posenc_workers', 'workers'],
  ['posenc_connections', 'connections'], ['posenc_streams', 'streams'], ['process_resident_memory_bytes', 'memory', size], ['posenc_taken_memory_bytes', 'taken', size],
];

/* Counters since the start. */
const TOTALS = [
  ['posenc_sent_bytes_total', 'sent', size], ['posenc_received_bytes_total', 'received', size],
  ['posenc_cache_hits_total', 'hits'], ['posenc_cache_misses_total', 'misses'], ['posenc_cache_bytes', 'cache', size],
  ['posenc_client_cache_hits_total', 'unchanged'], ['posenc_shared_answers_total', 'shared'], ['posenc_jobs_total', 'jobs'],
];

/* Counters by one label: what was refused, and what was given up. */
const REASONS = [['posenc_rejected_total', 'reason', 'rejected'], ['posenc_cancelled_total', 'stage', 'cancelled']];

const LINES = [
  { title: 'queue', lines: [['posenc_waiting_requests', '#b3541e', []], ['posenc_in_flight_requests', '#2f6fde', [6, 4]]] },
  { title: 'rate', lines: [['posenc_queue_seconds', '#2f6fde', []]], differs: true },
];

/* ---- values ---- */

const plain = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, '\u2009');

/* 0.005 → 5 ms; of bounds that were served. */
const duration = (seconds) => seconds < 1 ? `${Number((seconds * 1000).toPrecision(6))} ms` : `${seconds} s`;

function bound(bucket) {
  if (!bucket) return '–';
  const text = bucket.le === Infinity ? `> ${duration(bucket.above)}` : `≤ ${duration(bucket.le)}`;
  return datum(bucket.le, 'le', text);
}

/* The text of an element changes only when its value does, so that it can be selected. */
function put(place, value, node) {
  if (place.dataset.was === String(value)) return;
  place.dataset.was = value;
  place.replaceChildren(node());
}

/* ---- the view ---- */

class Server {
  #timer = null;
  #playing = true;
  #looks = [];          /* { at, metrics }, oldest first */
  #version = null;
  #since = null;        /* start of the process that was seen */
  #cells = new Map();   /* metric: { value, change } */

  constructor(page, root) {
    this.page = page;
    this.figure = new Figure(page, { view: 'server', slot: 'none', label: word('server.title') });
    this.figure.onTable = async () => this.fillTable();
    this.toggle = action('stop', word('server.stop'), () => this.play(!this.#playing));
    this.figure.toolbar.append(this.toggle);
    this.charts = LINES.map((row) => ({ ...row, chart: new Chart(page, { view: 'server', slot: 'none', label: word(`server.${row.title}`), bare: true }) }));
    this.figure.stage.append(this.build());
    root.append(make('div', { class: 'server' }, this.figure.element, limitsTable(page.catalogue.catalogue().limits)));
    this.onVisible = () => this.schedule(0);
    document.addEventListener('visibilitychange', this.onVisible);
    this.look();
  }

  build() {
    this.head = make('p', { class: 'server-head' });
    this.latency = make('tbody');
    this.reasons = make('dl', { class: 'facts' });
    const heads = ['route', 'requests', 'median', 'slowest', 'statuses'].map((key) => make('th', { scope: 'col' }, word(`server.${key}`)));
    return make('div', { class: 'server-now' }, this.head, this.facts(NOW, 'facts facts-large'),
      make('div', { class: 'columns' }, this.charts.map(({ title, chart }) =>
        make('section', { class: 'spark' }, make('h3', null, word(`server.${title}`)), chart.element))),
      make('section', null, make('h3', null, word('server.routes')),
        make('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': word('server.routes') },
          make('table', { class: 'rows' }, make('thead', null, make('tr', null, heads)), this.latency))),
      make('section', null, make('h3', null, word('server.totals')), this.facts(TOTALS, 'facts')),
      make('section', null, make('h3', null, word('server.refusals')), this.reasons));
  }

  /* A term, its metric's own name, its value. */
  facts(rows, className) {
    return make('dl', { class: className }, rows.map(([metric, text]) => {
      const cell = { value: make('span', { class: 'fact-value' }), change: make('span', { class: 'fact-change' }) };
      this.#cells.set(metric, cell);
      return make('div', { class: 'fact' }, make('dt', null, word(`server.${text}`), ' ', code(metric)), make('dd', null, cell.value, ' ', cell.change));
    }));
  }

  /* ---- when to look ---- */

  play(on) {
    this.#playing = on;
    this.toggle.dataset.action = on ? 'stop' : 'play';
    this.toggle.replaceChildren(make('span', null, word(on ? 'server.stop' : 'server.play')));
    this.schedule(0);
  }

  schedule(wait) {
    clearTimeout(this.#timer);
    if (this.#playing && !document.hidden) this.#timer = setTimeout(() => this.look(), wait);
  }

  async look() {
    await this.figure.ask((get, stage) => this.ask(get, stage));
    if (this.figure.element.isConnected) this.schedule(PERIOD_MS);
  }

  async ask(get) {
    const [text, ready] = await Promise.all([get('/metrics', { as: 'text' }), get('/readyz', { as: 'text' }).then(() => true, isBusy)]);
    const metrics = parseMetrics(text);
    const since = single(metrics, 'process_start_time_seconds')?.text;
    if (since !== this.#since) this.#looks = [];   /* another process counts anew */
    if (since !== this.#since || !this.#version) this.#version = await get('/version', { as: 'json' });
    this.#since = since;
    this.#looks = [...this.#looks, { at: performance.now(), metrics }].slice(-LOOKS_MAX);
    this.show(ready);
    this.figure.drawn();
  }

  /* ---- what was seen ---- */

  show(ready) {
    const [before, { metrics }] = [this.#looks.at(-2)?.metrics, this.#looks.at(-1)];
    this.showHead(metrics, ready);
    for (const [metric, , write = plain] of [...NOW, ...TOTALS]) this.showFact(metric, write, metrics, before, metric.endsWith('_total'));
    this.showRoutes(metrics);
    this.showReasons(metrics);
    for (const row of this.charts) this.showChart(row);
    this.caption(metrics);
  }

  showHead(metrics, ready) {
    const { version, commit, isa } = this.#version;
    const since = single(metrics, 'process_start_time_seconds');
    put(this.head, `${ready} ${since?.text}`, () => make('span', null,
      make('strong', { class: ready ? 'good' : 'bad', 'data-ready': String(ready) }, word(ready ? 'server.ready' : 'server.unready')), ' ',
      phrase('server.version', { version: code(version), commit: code(commit), isa: code(isa) }), ' ',
      since ? live(() => String(word('server.since', { time: new Date(since.value * 1000).toLocaleTimeString(document.documentElement.lang, { hour12: false }) }))) : ''));
  }

  showFact(metric, write, metrics, before, counts) {
    const sample = single(metrics, metric);
    if (!sample) return;
    const { value, change } = this.#cells.get(metric);
    put(value, sample.text, () => datum(sample.text, metric, write(sample.value)));
    const more = counts && before ? sample.value - single(before, metric).value : 0;
    put(change, more, () => document.createTextNode(more ? `+${write(more)}` : ''));
  }

  showRoutes(metrics) {
    const key = samplesOf(metrics, 'posenc_request_seconds', {}, '_count').map(({ text }) => text).join();
    if (this.latency.dataset.was === key) return;
    this.latency.dataset.was = key;
    this.latency.replaceChildren(...labelled(metrics, 'posenc_request_seconds', 'route').map((route) => routeRow(metrics, route)));
  }

  showReasons(metrics) {
    const all = REASONS.flatMap(([metric, label, text]) => samplesOf(metrics, metric).filter(({ value }) => value > 0)
      .map((sample) => ({ ...sample, metric, text, why: sample.labels[label] })));
    put(this.reasons, all.map(({ text, why, value }) => text + why + value).join(), () => {
      const rows = all.map(({ metric, text, why, text: _, value }) => make('div', { class: 'fact' },
        make('dt', null, word(`server.${text}`), ' ', code(why)), make('dd', null, datum(value, metric, plain(value)))));
      const nothing = make('div', { class: 'fact' }, make('dt', null, word('server.noRefusals')), make('dd'));
      const list = document.createDocumentFragment();
      list.append(...(rows.length ? rows : [nothing]));
      return list;
    });
  }

  /* Against seconds before now; of a counter the difference from look to look. */
  showChart({ chart, lines, differs }) {
    const looks = differs ? this.#looks.slice(1) : this.#looks;
    const end = this.#looks.at(-1).at;
    const x = looks.map(({ at }) => Math.round((at - end) / 1000));
    const series = lines.map(([metric, color, dash]) => ({ id: `none:${metric}`, name: metric, color, dash, x,
      y: looks.map(({ metrics }, i) => valueIn(metrics, metric) - (differs ? valueIn(this.#looks[i].metrics, metric) : 0)) }));
    const top = Math.max(1, ...series.flatMap(({ y }) => y));
    chart.draw(series, { xLabel: word('server.seconds'), yRange: [0, top], xRange: [Math.min(x[0] ?? 0, -60), 0] });
  }

  caption(metrics) {
    const value = (metric) => { const sample = single(metrics, metric); return sample ? datum(sample.text, metric, plain(sample.value)) : '–'; };
    const wait = bucketAt(metrics, 'posenc_queue_seconds', {}, 99);
    const nodes = { busy: value('posenc_busy_workers'), workers: value('posenc_workers'), waiting: value('posenc_waiting_requests') };
    this.figure.caption.replaceChildren(phrase('server.caption', nodes), ' ', wait ? phrase('server.waited', { time: bound(wait) }) : '');
  }

  /* Everything as served, for readers and for what is not drawn. */
  fillTable() {
    const rows = [...this.#looks.at(-1).metrics].flatMap(([metric, { samples }]) => samples.filter(({ part }) => part !== '_bucket').map((sample) => [metric + sample.part, sample]));
    const table = make('table', { class: 'rows' }, make('thead', null, make('tr', null, ['metric', 'labels', 'value'].map((key) => make('th', { scope: 'col' }, word(`server.${key}`))))),
      make('tbody', null, rows.map(([metric, { labels, text }]) => make('tr', null, make('th', { scope: 'row' }, code(metric)),
        make('td', null, Object.keys(labels).length ? code(Object.entries(labels).map((pair) => pair.join('=')).join(' ')) : ''), make('td', null, code(text))))));
    this.figure.table.querySelector('.scroll')?.remove();
    this.figure.table.append(make('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': word('server.metric') }, table));
  }

  close() {
    clearTimeout(this.#timer);
    document.removeEventListener('visibilitychange', this.onVisible);
    for (const { chart } of this.charts) chart.close();
    this.figure.close();
  }
}

/* A gauge or a counter; of a histogram its count. */
function valueIn(metrics, metric) {
  return (samplesOf(metrics, metric, {}, '_count')[0] ?? single(metrics, metric))?.value ?? 0;
}

/* A server that drains says 503: not ready, and no failure of the look. */
function isBusy(error) {
  if (error instanceof Refusal && error.status === 503) return false;
  throw error;
}

function routeRow(metrics, route) {
  const of = { route };
  const [count] = samplesOf(metrics, 'posenc_request_seconds', of, '_count');
  const statuses = samplesOf(metrics, 'posenc_requests_total', of).map(({ labels, text }) => make('span', { class: 'status-count', title: labels.scheme || null },
    code(labels.scheme ? `${labels.scheme} ${labels.status}` : labels.status), ' × ', datum(text, 'posenc_requests_total', text)));
  return make('tr', { 'data-route': route }, make('th', { scope: 'row' }, code(route)), make('td', null, datum(count.text, 'posenc_request_seconds_count', plain(count.value))),
    make('td', null, bound(bucketAt(metrics, 'posenc_request_seconds', of, 50))), make('td', null, bound(bucketAt(metrics, 'posenc_request_seconds', of, 99))),
    make('td', null, statuses.flatMap((one, i) => i ? [' ', one] : [one])));
}

export default {
  name: 'server',
  own: [],
  most: 0,
  difference: false,
  forms: false,
  example: () => ({}),
  open(page, root) {
    const server = new Server(page, root);
    return { update() {}, request: () => null, close: () => server.close() };
  },
};
