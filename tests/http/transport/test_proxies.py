"""Three posencd behind HAProxy and behind nginx, with the files of deploy/ but for ports and certificate: what is restarted, killed, stopped
or ended in the middle of an answer costs no client a request. And the caches of nginx and Varnish."""
import http.client
import json
import os
import signal
import threading
import time

import pytest

from conftest import EVENTS, SANITIZED, Stopwatch
from proxies import start_balancer
from replicas import DRAIN_DELAY, Load, replicas
from connection import wait_until

pytestmark = [pytest.mark.waiting, pytest.mark.skipif(SANITIZED, reason="the same bytes on the wire, but slower than the proxies' limits of time")]

LONG = ("POST", "/encode", b'{"scheme":"rope","len":3000}')
MIDDLE = ("POST", "/encode", b'{"scheme":"sinusoidal","dim":64,"len":500,"format":"npy"}')
REQUESTS = [
    ("POST", "/encode", b'{"scheme":"alibi","num_heads":2,"len":16,"outputs":["bias"],"format":"raw"}'),
    ("GET", "/encode?scheme=rope&len=64&format=raw", None),
    MIDDLE,
    LONG,
    ("POST", "/attention", b'{"scheme":"none","q":[[1.0,2.0],[3.0,4.0]],"k":[[1.0,0.0],[0.0,1.0]],"v":[[1.0,0.0],[0.0,1.0]],"format":"raw"}'),
    ("POST", "/rotate", b'{"scheme":"rope","q":[[1.0,2.0,3.0,4.0]],"format":"raw"}'),
    ("GET", "/schemes/rope", None),
]
SMALL = [request for request in REQUESTS if request not in (LONG, MIDDLE)]  # sent in one go: a larger one that has begun cannot be saved
STREAM = json.dumps({"scheme": "alibi", "num_heads": 16, "len": 1448, "outputs": ["bias"], "format": "raw"}).encode()
STREAM_BYTES = 16 * 1448 * 1448 * 4
FLAGS = ("--drain-delay", str(DRAIN_DELAY), "--trusted-proxy", "127.0.0.1", "--log-level", "warn")
PROXIES = ["haproxy", "nginx"]  # and Varnish, where its cache is tested
CHECKED = 4  # seconds after which HAProxy has noticed that a server is back


def ask(proxy, method, path, body=None, headers=None):
    answer = proxy.request(method, path, body, headers)
    return answer.status, answer.headers, answer.body


@pytest.fixture(scope="module")
def three():
    with replicas(*FLAGS) as all:
        yield all


@pytest.fixture(params=PROXIES)
def pair(request, three):
    """All replicas alive, and a proxy that knows it."""
    for replica in three:
        if not replica.server.is_alive():
            replica.start()
    with start_balancer(request.param, [replica.port for replica in three]) as proxy:
        assert wait_until(lambda: ask(proxy, "GET", "/readyz")[0] == 200)
        time.sleep(1)
        yield proxy, three


def judged(load, n_least, proxy, event):
    EVENTS.append((proxy.name, event, load.n_right + len(load.failures), len(load.failures), load.longest))
    assert not load.failures, load.failures[:5]
    assert load.n_right >= n_least


def test_a_rolling_restart_loses_nothing(pair):
    proxy, three = pair
    with Load(proxy.port, REQUESTS) as load:
        time.sleep(1)
        for replica in three:
            assert replica.end() == 0
            replica.start()
            time.sleep(CHECKED)
    judged(load, 300, proxy, "rolling restart of three")


def test_a_killed_server_costs_nothing(pair):
    proxy, three = pair
    with Load(proxy.port, SMALL) as load:
        time.sleep(1)
        three[1].end(signal.SIGKILL)
        time.sleep(4)
    judged(load, 100, proxy, "SIGKILL of one")


def test_a_stream_outlives_the_end_of_its_server(pair):
    """128 MiB, begun before SIGTERM and read slowly: the proxy may hold its last megabytes when posencd has ended."""
    proxy, three = pair
    connection = http.client.HTTPConnection(proxy.host, proxy.port, timeout=60)
    connection.request("POST", "/encode", STREAM)
    answer = connection.getresponse()
    assert answer.status == 200 and int(answer.headers["Content-Length"]) == STREAM_BYTES
    n = len(answer.read(1 << 20))
    busy = [replica for replica in three if replica.metric("posenc_streams") == 1]
    assert len(busy) == 1
    os.kill(busy[0].server.pid, signal.SIGTERM)
    with Load(proxy.port, REQUESTS, n_clients=2) as load:
        while block := answer.read(4 << 20):
            n += len(block)
            time.sleep(0.15)
    connection.close()
    assert n == STREAM_BYTES and busy[0].server.ended(20) == 0
    judged(load, 50, proxy, "SIGTERM during 128 MiB")


def test_a_server_that_stands_still_costs_nothing(pair):
    """The requests that it holds are sent elsewhere after 15 s. HAProxy's checks find it, so that it gets no more; nginx has none, but
    sends new requests to the servers with the fewest."""
    proxy, three = pair
    plain = [request for request in SMALL if request[1].startswith("/encode")]
    with Load(proxy.port, plain, seconds=40) as load:
        time.sleep(1)
        os.kill(three[0].server.pid, signal.SIGSTOP)
        time.sleep(18)
        os.kill(three[0].server.pid, signal.SIGCONT)
    judged(load, 200, proxy, "SIGSTOP of one, 18 s")
    assert load.longest < 25


def test_without_any_server_the_proxy_refuses_at_once_and_in_our_form(pair):
    proxy, three = pair
    for replica in three:
        replica.end(signal.SIGKILL)
    time.sleep(2.5)
    for method, path, body in (REQUESTS[0], REQUESTS[1], ("GET", "/schemes", None)):
        watch = Stopwatch(proxy)
        status, headers, said = ask(proxy, method, path, body)
        assert status in (502, 503) and headers["Retry-After"] == "1" and watch.seconds() < 3, (path, status)
        assert headers["Content-Type"] == "application/problem+json"
        problem = json.loads(said)
        assert problem["status"] == status and problem["detail"] == problem["error"]


# ---- Caches -----------------------------------------------------------------------------------------------------------

caches = pytest.mark.parametrize("pair", ["nginx", "varnish"], indirect=True)
cached = pytest.mark.parametrize("pair", ["nginx"], indirect=True)
TABLE = "/encode?scheme=sinusoidal&dim=1024&len={n}&format=raw"


def computed(three):
    """Requests that reached a server, without those of this function."""
    total = 0
    for replica in three:
        for line in replica.server.get("/metrics").body.decode().splitlines():
            if line.startswith("posenc_requests_total{") and 'route="/encode"' in line:
                total += float(line.rsplit(" ", 1)[1])
    return total


@caches
def test_the_cache_answers_repeats_conditions_and_ranges(pair):
    proxy, three = pair
    for path, size in ((TABLE.format(n=1000), 4096000), (TABLE.format(n=5001), 20484096), ("/encode?scheme=rope&len=77", None),
                       ("/encode?scheme=rope&len=77&format=png", None)):
        status, headers, whole = ask(proxy, "GET", path)
        assert status == 200 and (size is None or len(whole) == size), path
        assert whole == three[0].server.get(path).body
        before = computed(three)
        for _ in range(10):
            assert ask(proxy, "GET", path)[2] == whole
        status, unchanged, body = ask(proxy, "GET", path, None, {"If-None-Match": headers["ETag"]})
        assert (status, body) == (304, b"")
        if size and proxy.name == "nginx":  # Varnish passes ranges
            status, part, body = ask(proxy, "GET", path, None, {"Range": "bytes=1000-1999"})
            assert status == 206 and body == whole[1000:2000]
        assert computed(three) == before, path


@caches
def test_equal_requests_at_once_are_computed_once(pair):
    proxy, three = pair
    path = TABLE.format(n=1023)
    before, answers = computed(three), []
    threads = [threading.Thread(target=lambda: answers.append(ask(proxy, "GET", path)[::2])) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(answers) == 40 and len(set(answers)) == 1 and answers[0][0] == 200
    assert computed(three) - before == 1


@pytest.mark.parametrize("pair", ["varnish"], indirect=True)
def test_varnish_asks_again_too(pair):
    proxy, three = pair
    with Load(proxy.port, SMALL, n_clients=3) as load:
        time.sleep(0.5)
        assert three[0].end() == 0
        three[2].end(signal.SIGKILL)
        time.sleep(2)
    judged(load, 50, proxy, "SIGTERM of one, SIGKILL of another")
    three[1].end(signal.SIGKILL)
    status, headers, said = ask(proxy, "POST", "/encode", REQUESTS[0][2])
    assert status == 503 and headers["Retry-After"] == "1" and json.loads(said)["status"] == 503


@cached
def test_a_part_of_a_large_answer_costs_its_slice(pair):
    proxy, three = pair
    before = sum(replica.metric("posenc_sent_bytes_total") for replica in three)
    status, _, body = ask(proxy, "GET", "/encode?scheme=alibi&num_heads=16&len=4096&outputs=bias&format=raw", None, {"Range": "bytes=500000000-500000999"})
    assert status == 206 and len(body) == 1000
    sent = sum(replica.metric("posenc_sent_bytes_total") for replica in three) - before
    assert sent < 6 << 20


@caches
def test_what_is_not_everybody_s_passes(pair):
    """Other methods (tokens and refusals: test_proxy_rules.py); and each kind that Accept may choose is kept apart."""
    proxy, three = pair
    before = computed(three)
    for _ in range(3):
        assert ask(proxy, "POST", "/encode", b'{"scheme":"rope","len":33}')[0] == 200
    assert computed(three) - before == 3
    for name in ("mine", "other"):
        assert ask(proxy, "GET", "/encode?scheme=rope&len=33&format=raw", None, {"X-Request-Id": name})[1]["X-Request-Id"] == name
    kinds = ["application/json", "application/octet-stream", "application/x-npy;q=0.9, image/gif"]
    bodies = [ask(proxy, "GET", "/encode?scheme=alibi&num_heads=1&len=3&outputs=bias", None, {"Accept": kind})[2] for kind in kinds]
    assert len(set(bodies)) == 3
    assert bodies == [ask(proxy, "GET", "/encode?scheme=alibi&num_heads=1&len=3&outputs=bias", None, {"Accept": kind})[2] for kind in kinds]
