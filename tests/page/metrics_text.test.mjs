/* Prometheus' text format, and what the server view reads in it. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { bucketAt, labelled, parseMetrics, samplesOf, single } from '../../server/page/views/server/ask.js';

const TEXT = `# HELP posenc_queued_jobs Pieces of work waiting for a worker.
# TYPE posenc_queued_jobs gauge
posenc_queued_jobs 3
# TYPE posenc_requests_total counter
posenc_requests_total{route="/encode",scheme="a\\"b\\\\n\\n}",status="200"} 23
posenc_requests_total{route="/limits",scheme="",status="200"} 1 1395066363000
# TYPE posenc_request_seconds histogram
posenc_request_seconds_bucket{route="/encode",le="0.001"} 49
posenc_request_seconds_bucket{route="/encode",le="0.005"} 99
posenc_request_seconds_bucket{route="/encode",le="+Inf"} 100
posenc_request_seconds_sum{route="/encode"} 9.0000000000000006e-05
posenc_request_seconds_count{route="/encode"} 100
odd_count 7
free -Inf
`;
const metrics = parseMetrics(TEXT);

test('types, values as served', () => {
  assert.deepEqual(metrics.get('posenc_queued_jobs'), { type: 'gauge',
    samples: [{ labels: {}, text: '3', value: 3, part: '' }] });
  assert.equal(samplesOf(metrics, 'posenc_request_seconds', {}, '_sum')[0].text, '9.0000000000000006e-05');
  assert.equal(single(metrics, 'free').value, -Infinity);
  assert.equal(single(metrics, 'none'), undefined);
});

test('labels, with what is escaped in them', () => {
  assert.equal(metrics.get('posenc_requests_total').samples[0].labels.scheme, 'a"b\\n\n}');
  assert.deepEqual(labelled(metrics, 'posenc_requests_total', 'route'), ['/encode', '/limits']);
  assert.deepEqual(labelled(metrics, 'none', 'route'), []);
  assert.equal(samplesOf(metrics, 'posenc_requests_total', { route: '/limits' })[0].value, 1);
});

test('only parts of a histogram are parts', () => {
  assert.equal(single(metrics, 'odd_count').value, 7);
  assert.equal(samplesOf(metrics, 'posenc_request_seconds', { route: '/encode' }, '_count')[0].value, 100);
});

test('the bucket of a rank', () => {
  const at = (percent) => bucketAt(metrics, 'posenc_request_seconds', { route: '/encode' }, percent);
  assert.deepEqual(at(49), { above: 0, le: 0.001 });
  assert.deepEqual(at(50), { above: 0.001, le: 0.005 });
  assert.deepEqual(at(99), { above: 0.001, le: 0.005 });
  assert.deepEqual(at(100), { above: 0.005, le: Infinity });
  assert.equal(bucketAt(metrics, 'posenc_request_seconds', { route: '/nothing' }, 50), null);
  assert.equal(bucketAt(parseMetrics('# TYPE q histogram\nq_bucket{le="+Inf"} 0\n'), 'q', {}, 50), null);
});

test('what is no sample is refused', () => {
  assert.throws(() => parseMetrics('<html>'), SyntaxError);
});
