/* What GET /metrics says, in Prometheus' text format. Pure. Values stay the text that was served beside their
 * number. */

const SAMPLE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: -?\d+)?$/;
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/* Map name: { type, samples: [{ labels, text, value, part }] }; part is _bucket, _sum, _count of a histogram, else
 * ''. */
export function parseMetrics(text) {
  const metrics = new Map();
  const named = (name) => metrics.get(name) ?? metrics.set(name, { type: 'untyped', samples: [] }).get(name);
  for (const line of text.split('\n')) {
    const [, name, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    if (name) named(name).type = type;
    else if (line && !line.startsWith('#')) addSample(metrics, named, line);
  }
  return metrics;
}

function addSample(metrics, named, line) {
  const [, name, labels = '', text] = SAMPLE.exec(line) ?? [];
  if (!name) throw new SyntaxError(`not a sample: ${line}`);
  const [, family, part] = /^(.*)(_bucket|_sum|_count)$/.exec(name) ?? [];
  const isPart = metrics.get(family)?.type === 'histogram';
  named(
    isPart ? family : name
  ).samples.push({ labels: labelsOf(labels), text, value: numberOf(text), part: isPart ? part : '' });
}

const labelsOf = (text) =>
  Object.fromEntries([...text.matchAll(LABEL)].map(([, name, value]) => [name, unescaped(value)]));
const unescaped = (text) => text.replace(/\\(.)/g, (whole, letter) => letter === 'n' ? '\n' : letter);
const numberOf = (text) => Number(text.replace(/^\+?(-?)Inf$/, '$1Infinity'));

/* The one sample of a metric without labels. */
export const single = (metrics, name) => metrics.get(name)?.samples[0];

/* The values of a label, in the order served. */
export function labelled(metrics, name, label) {
  return [...new Set((metrics.get(name)?.samples ?? []).map(({ labels }) => labels[label]))];
}

export function samplesOf(metrics, name, labels = {}, part = '') {
  const fits = (sample) =>
    sample.part === part && Object.entries(labels).every(([key, value]) => sample.labels[key] === value);
  return (metrics.get(name)?.samples ?? []).filter(fits);
}

/* The bucket that holds the request of this rank, as { above, le }: the bounds that were served, nothing between them.
 * Null where there is none yet. percent: 50 for the median. */
export function bucketAt(metrics, name, labels, percent) {
  const buckets = samplesOf(metrics, name, labels, '_bucket')
    .map(({ labels: { le }, value }) => ({ le: numberOf(le), value }));
  const all = buckets.at(-1)?.value;
  if (!all) return null;
  const at = buckets.findIndex(({ value }) => value * 100 >= all * percent);
  return { above: at ? buckets[at - 1].le : 0, le: buckets[at].le };
}
