/* The server at work: /metrics every two seconds while someone looks, /version, /limits. Values are shown as served;
 * what changed since the last look is a difference of two of them, a latency the bucket in which it was counted. */
import { Refusal } from '../../ask.js';
import { Chart } from '../../chart.js';
import { action, code, make } from '../../dom.js';
import { Figure, datum, grouped } from '../../figure.js';
import { size } from '../../states.js';
import { live, phrase, word } from '../../words.js';
import { bucketAt, labelled, parseMetrics, samplesOf, single } from './ask.js';
import { rowOf, rowTable } from '../parts.js';

const PERIOD_MS = 2000;
const LOOKS_MAX = 90;   /* three minutes in the charts */

/* [metric, text `server.TEXT`, how its value is written]: of the moment, then since the start. */
const NOW = [
  ['posenc_waiting_requests', 'waiting'], ['posenc_in_flight_requests', 'inFlight'], ['posenc_busy_workers', 'busy'],
  ['posenc_workers', 'workers'], ['posenc_connections', 'connections'],
  ['process_resident_memory_bytes', 'memory', size],
];
const TOTALS = [
  ['posenc_sent_bytes_total', 'sent', size], ['posenc_received_bytes_total', 'received', size],
  ['posenc_cache_hits_total', 'hits'], ['posenc_cache_misses_total', 'misses'],
  ['posenc_client_cache_hits_total', 'unchanged'], ['posenc_shared_answers_total', 'shared'],
];

/* Counters by one label. */
const REASONS = [['posenc_rejected_total', 'reason', 'rejected'], ['posenc_cancelled_total', 'stage', 'cancelled']];

/* [title, differences, lines of [metric, colour, dash]] */
const CHARTS = [
  ['queue', false, [['posenc_waiting_requests', '#b3541e', []], ['posenc_in_flight_requests', '#2f6fde', [6, 4]]]],
  ['rate', true, [['posenc_queue_seconds', '#2f6fde', []]]],
];

const LEAST_S = -10;   /* of the charts: where they begin before there are looks that far back */

const yes = (value) => word(value ? 'server.yes' : 'server.no');

/* [name in /limits, how it is written, the flag that changes it, or none] */
const LIMITS = [
  ['max_body', size, '--max-body'], ['max_answer', size, '--max-answer'],
  ['max_work', grouped, '--max-work'], ['max_analysis', grouped, '--max-analysis'],
  ['picture_side', grouped], ['configs', grouped], ['position', grouped],
  ['private', yes, '--token-file'], ['may_write', yes, '--token-file'],
];

/* ---- values ---- */

/* 0.005 → 5 ms; of bounds that were served. */
const duration = (seconds) => seconds < 1 ? `${Number((seconds * 1000).toPrecision(6))} ms` : `${seconds} s`;

function bound(bucket) {
  if (!bucket) return '–';
  return datum(bucket.le, 'le', bucket.le === Infinity ? `> ${duration(bucket.above)}` : `≤ ${duration(bucket.le)}`);
}

/* The text of an element changes only when its value does, so that it can be selected. */
function put(place, value, nodes) {
  if (place.dataset.was === String(value)) return;
  place.dataset.was = value;
  place.replaceChildren(...nodes());
}

/* A gauge or a counter; of a histogram its count. */
const valueIn = (metrics, metric) =>
  (samplesOf(metrics, metric, {}, '_count')[0] ?? single(metrics, metric))?.value ?? 0;

function fact(text, metric, ...value) {
  return make('div', { class: 'fact' }, make('dt', null, word(`server.${text}`), ' ', code(metric)),
    make('dd', null, value));
}

/* ---- the view ---- */

class Server {
  #timer = null;
  #playing = true;
  #looks = [];          /* { at, metrics }, oldest first */
  #version = null;
  #since = null;        /* start of the process that was seen */
  #cells = new Map();   /* metric: [place of its value, place of its change] */

  constructor(page, root) {
    const place = { view: 'server', slot: 'none' };
    this.figure = new Figure(page, { ...place, label: word('server.title') });
    this.figure.onTable = async () => this.fillTable();
    this.toggle = action('stop', word('server.stop'), () => this.play(!this.#playing));
    this.figure.toolbar.append(this.toggle);
    this.charts = CHARTS.map(([title]) => new Chart(page, { ...place, label: word(`server.${title}`), bare: true }));
    this.figure.stage.append(this.build());
    root.append(make('div', { class: 'server' }, this.figure.element, limitsOf(page.catalogue.catalogue().limits)));
    this.onVisible = () => this.schedule(0);
    document.addEventListener('visibilitychange', this.onVisible);
    this.look();
  }

  build() {
    this.head = make('p', { class: 'server-head' });
    this.routes = make('div');
    this.reasons = make('dl', { class: 'facts' });
    const part = (title, ...children) => make('section', null, make('h2', null, word(`server.${title}`)), children);
    return make('div', { class: 'server-now' }, this.head, this.facts(NOW, 'facts facts-large'),
      make('div', { class: 'columns' }, CHARTS.map(([title], i) => part(title, this.charts[i].element))),
      part('routes', this.routes), part('totals', this.facts(TOTALS, 'facts')), part('refusals', this.reasons));
  }

  facts(rows, className) {
    return make('dl', { class: className }, rows.map(([metric, text]) => {
      const places = [make('span', { class: 'fact-value' }), make('span', { class: 'fact-change' })];
      this.#cells.set(metric, places);
      return fact(text, metric, ...places);
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
    await this.figure.ask((get) => this.ask(get));
    if (this.figure.element.isConnected) this.schedule(PERIOD_MS);
  }

  async ask(get) {
    const look = (path) => get(path, { as: 'text' });
    const [text, ready] = await Promise.all([look('/metrics'), look('/readyz').then(() => true, isBusy)]);
    const metrics = parseMetrics(text);
    const since = single(metrics, 'process_start_time_seconds')?.text;
    if (since !== this.#since) this.#looks = [];   /* another process counts anew */
    if (since !== this.#since || !this.#version) this.#version = await get('/version', { as: 'json' });
    this.#since = since;
    this.#looks = [...this.#looks, { at: performance.now(), metrics }].slice(-LOOKS_MAX);
    this.show(metrics, ready);
    this.figure.drawn();
  }

  /* ---- what was seen ---- */

  show(metrics, ready) {
    put(this.head, `${ready} ${this.#since}`, () => this.headParts(ready));
    for (const row of [...NOW, ...TOTALS]) this.showFact(row, metrics, this.#looks.at(-2)?.metrics);
    const counts = samplesOf(metrics, 'posenc_request_seconds', {}, '_count').map(({ text }) => text);
    put(this.routes, counts, () => [routeTable(metrics)]);
    this.showReasons(metrics);
    CHARTS.forEach((row, i) => this.showChart(this.charts[i], row));
    this.showCaption(metrics);
  }

  headParts(ready) {
    const names = Object.fromEntries(['version', 'commit', 'isa'].map((key) => [key, code(this.#version[key])]));
    const time = live(() => new Date(this.#since * 1000).toLocaleTimeString(
      document.documentElement.lang, { hour12: false }
    ));
    const state = word(ready ? 'server.ready' : 'server.unready');
    return [make('strong', { class: ready ? 'good' : 'bad', 'data-ready': String(ready) }, state), ' ',
      phrase('server.version', { ...names, time })];
  }

  showFact([metric, , write = grouped], metrics, before) {
    const sample = single(metrics, metric);
    if (!sample) return;
    const [value, change] = this.#cells.get(metric);
    const more = metric.endsWith('_total') && before ? sample.value - single(before, metric).value : 0;
    put(value, sample.text, () => [datum(sample.text, metric, write(sample.value))]);
    put(change, more, () => more ? [`+${write(more)}`] : []);
  }

  /* What was refused, and what was given up. */
  showReasons(metrics) {
    const all = REASONS.flatMap(([metric, label, text]) => samplesOf(metrics, metric).filter(({ value }) => value > 0)
      .map((sample) => [text, sample.labels[label], datum(sample.text, metric, grouped(sample.value))]));
    const none = () => [make('dt', null, word('server.noRefusals')), make('dd', null, '0')];
    put(this.reasons, all.map(([, why, data]) => why + data.value),
      () => all.length ? all.map((row) => fact(...row)) : none());
  }

  /* Against seconds before now, from the first look on; of a counter the difference from look to look. */
  showChart(chart, [, differs, lines]) {
    const looks = this.#looks.slice(differs ? 1 : 0);
    const end = this.#looks.at(-1).at;
    const x = looks.map(({ at }) => Math.round((at - end) / 1000));
    const base = (metric, i) => differs ? valueIn(this.#looks[i].metrics, metric) : 0;
    const y = (metric) => looks.map(({ metrics }, i) => valueIn(metrics, metric) - base(metric, i));
    const series = lines.map(([metric, color, dash]) => (
      { id: `none:${metric}`, name: metric, color, dash, x, y: y(metric) }
    ));
    const top = Math.max(1, ...series.flatMap((line) => line.y));
    chart.draw(series, { xLabel: word('server.seconds'), yRange: [0, top], xRange: [Math.min(x[0] ?? 0, LEAST_S), 0] });
  }

  showCaption(metrics) {
    const value = (metric) => datum(single(metrics, metric)?.text, metric);
    this.figure.caption.replaceChildren(phrase('server.caption', {
      busy: value('posenc_busy_workers'), workers: value('posenc_workers'), waiting: value('posenc_waiting_requests'),
      time: bound(bucketAt(metrics, 'posenc_queue_seconds', {}, 99)) }));
  }

  /* Everything as served but the buckets. */
  fillTable() {
    const labelsOf = (labels) => Object.entries(labels).flatMap((pair) => [code(pair.join('=')), ' ']);
    const rows = [...this.#looks.at(-1).metrics].flatMap(([metric, { samples }]) =>
      samples.filter(({ part }) => part !== '_bucket')
        .map(({ labels, text, part }) => rowOf([code(metric + part), labelsOf(labels), code(text)])));
    this.figure.showTable(rowTable(word('server.title'), ['server.metric', 'server.labels', 'server.value'], rows));
  }

  close() {
    clearTimeout(this.#timer);
    document.removeEventListener('visibilitychange', this.onVisible);
    for (const chart of this.charts) chart.close();
    this.figure.close();
  }
}

/* A server that drains says 503: not ready, and no failure of the look. */
function isBusy(error) {
  if (error instanceof Refusal && error.status === 503) return false;
  throw error;
}

const ROUTE_HEADS = ['server.route', 'server.requests', 'server.median', 'server.slowest', 'server.statuses'];

function routeTable(metrics) {
  const rows = labelled(metrics, 'posenc_request_seconds', 'route').map((route) => {
    const [count] = samplesOf(metrics, 'posenc_request_seconds', { route }, '_count');
    const latency = (percent) => bound(bucketAt(metrics, 'posenc_request_seconds', { route }, percent));
    const statuses = samplesOf(metrics, 'posenc_requests_total',
      { route }).map(({ labels: { scheme, status }, text }) => make('span', { class: 'status-count' },
        code(`${scheme} ${status}`.trim()), ' × ', datum(text, 'posenc_requests_total')));
    const requests = datum(count.text, 'posenc_request_seconds_count', grouped(count.value));
    return rowOf([route ? code(route) : word('docs.other'), requests, latency(50), latency(99), statuses],
      { 'data-route': route });
  });
  return rowTable(word('server.routes'), ROUTE_HEADS, rows);
}

function limitsOf(limits) {
  const rows = LIMITS.map(([key, write, flag]) => rowOf([[word(`server.limit.${key}`), ' ', code(key)],
    datum(limits[key], key, write(limits[key])), flag ? code(flag) : word('server.fixed')]));
  return make('section', { class: 'server-limits' }, make('h2', null, word('server.limits')),
    rowTable(word('server.limits'), ['server.limit', 'server.value', 'server.flag'], rows));
}

export default { name: 'server', forms: false, open: (page, root) => new Server(page, root) };
