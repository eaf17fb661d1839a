"""Whoever watches over the server is answered within 50 ms (99 of 100 times) whatever everybody else asks of it: /healthz,
/readyz and /metrics, each on a connection of its own and on one that is kept.

The figure is of a machine with nothing else to do but the server and its load; where others have more work than there are
processors (the load average before the test), it grows with that. A test that measures is repeated once.
"""

import contextlib
import json
import os
import threading
import time

import pytest

from conftest import SANITIZED, start_server
from test_limits import clients
from test_server_life import Client, get, metric, post, wait_until

N_ASKED, LIMIT_MS = 200, 50
LOAD = os.getloadavg()[0]  # of others, before any test of this file
PATHS = ["/healthz", "/readyz", "/metrics"]

pytestmark = pytest.mark.skipif(SANITIZED, reason="measures time")


def ask_slowly(server, n):
    """Milliseconds of n requests, sorted; half of them on a kept connection."""
    times = []
    with Client(server) as kept:
        for i in range(n):
            request = get(PATHS[i % 3])
            begun_at = time.monotonic()
            if i % 2:
                kept.send(request)
                status = kept.answer()[0]
            else:
                with Client(server) as fresh:
                    fresh.send(request)
                    status = fresh.answer()[0]
            times.append((time.monotonic() - begun_at) * 1e3)
            assert status == 200
            time.sleep(0.003)
    return sorted(times)


def assert_quick(server):
    limit = LIMIT_MS * max(1, LOAD / os.cpu_count())
    for attempt in range(2):
        times = ask_slowly(server, N_ASKED)
        p99 = times[int(N_ASKED * 0.99) - 1]
        print(f"p50 {times[N_ASKED // 2]:.2f} ms, p99 {p99:.2f} ms, longest {times[-1]:.2f} ms")
        if p99 <= limit:
            return
    assert p99 <= limit, times[-20:]


@contextlib.contextmanager
def running(work, n=1):
    """work(stop) in n threads, until the block is left."""
    stop, failures = threading.Event(), []

    def run():
        try:
            work(stop)
        except (OSError, AssertionError) as failure:
            if not stop.is_set():
                failures.append(failure)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(n)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert not failures, failures


def attention(seed, n=4000):
    """Seconds for all workers, out of a small body: words, all of which see each other under many heads."""
    return json.dumps({"tokens": [f"w{i}" for i in range(n)], "head_dim": 64, "num_heads": 32, "scheme": "alibi", "seed": seed,
                       "format": "raw", "outputs": ["probs"]}).encode()


def test_all_workers_at_attention():
    with start_server() as server, clients(server, 8) as many:
        for seed, client in enumerate(many):
            client.send(post(attention(seed), "/attention"))
        workers = metric(server, "posenc_workers")
        assert wait_until(lambda: metric(server, "posenc_busy_workers") == workers)

        def read(client):
            with contextlib.suppress(OSError, ValueError):
                while client.socket.recv(1 << 20):
                    pass

        for client in many:
            threading.Thread(target=read, args=(client,), daemon=True).start()
        assert_quick(server)


def test_the_queue_is_full():
    with start_server("--max-queue", "100", "--workers", "1") as server, clients(server, 120) as many:
        for seed, client in enumerate(many):
            client.send(post(json.dumps({"scheme": "floater", "dim": 512, "positions": [1500], "seed": seed,
                                         "format": "raw"}).encode() + b" " * 20_000))
        assert wait_until(lambda: metric(server, "posenc_waiting_requests") == 100)
        assert_quick(server)
        assert metric(server, "posenc_waiting_requests") >= 90


def test_300_streams():
    body = b'{"scheme":"sinusoidal","dim":512,"len":4194304,"format":"raw"}'
    with start_server("--max-streams", "400") as server, clients(server, 300) as many:
        for client in many:
            client.send(post(body))
        assert wait_until(lambda: metric(server, "posenc_streams") == 300)

        def read(stop):  # a few are read, in turn: the others' sockets are full
            while not stop.is_set():
                for client in many[:30]:
                    client.socket.recv(1 << 16)

        with running(read):
            assert_quick(server)
        assert metric(server, "posenc_streams") == 300


def test_a_large_upload():
    n = 256 * 1024 * 1024
    part = b" " * (1 << 20)

    def upload(stop):
        while not stop.is_set():
            with Client(server) as client:
                client.send(f"POST /encode HTTP/1.1\r\nHost: x\r\nContent-Length: {n}\r\n\r\n".encode())
                for _ in range(n // len(part)):
                    client.send(part)
                assert client.answer()[0] in (400, 413, 422)

    with start_server() as server, running(upload):
        assert_quick(server)


def test_large_json_again_and_again():
    """Ten million numbers, read, planned with, and freed."""
    body = b'{"scheme":"rope","head_dim":2,"outputs":["cos"],"format":"raw","positions":[' + b"0," * 10_000_000 + b"0]}"

    def ask(stop):
        while not stop.is_set():
            with Client(server) as client:
                client.send(post(body))
                client.answer()

    with start_server() as server, running(ask, 2):
        assert_quick(server)


def test_1000_connections():
    with start_server() as server, clients(server, 1000) as many:
        for i, client in enumerate(many):
            if i % 2:
                client.send(get("/healthz"))
                assert client.answer()[0] == 200
        assert wait_until(lambda: metric(server, "posenc_connections") == 1001)
        assert_quick(server)
