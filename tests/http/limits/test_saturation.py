"""Monitoring requests are answered within 50 ms (the median, and 99 of 100 requests) whatever the load from other
clients: /healthz, /readyz and /metrics, each on a new connection and on one that is kept.

Judged by a Stopwatch; 99 of 100 may take twice as long, because a virtual machine's neighbours take processors without a word. The
processor time (schedstat) that the loop's thread uses between request and answer is always limited to 50 ms, or more where memory is slow
(slowness()). Each measurement has three tries."""

import contextlib
import json
import subprocess
import sys
import threading
import time

import pytest

from conftest import SANITIZED, Stopwatch, slowness, start_server
from connection import UNHURRIED, Client, asked, clients, get, metric, post, running, wait_until

N_ASKED, LIMIT_MS = 120, 50
PATHS = ["/healthz", "/readyz", "/metrics"]

pytestmark = pytest.mark.skipif(SANITIZED, reason="measures time")


def ask_once(server, request, kept):
    if kept:
        kept.send(request)
        return kept.answer()[0]
    return asked(server, request)[0]


def ask_slowly(server, n):
    """Milliseconds of n requests, and how long the loop's thread has worked meanwhile, sorted; half of them on a kept connection."""
    times, work = [], []
    with Client(server) as kept:
        for i in range(n):
            watch, worked_before = Stopwatch(server), server.loop_ms()
            assert ask_once(server, get(PATHS[i % 3]), kept if i % 2 else None) == 200
            times.append(watch.seconds() * 1e3)
            work.append(server.loop_ms() - worked_before)
            time.sleep(0.003)
    return sorted(times), sorted(work)


def is_within(times, limit, limit_p99, what):
    p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99) - 1]
    print(f"{what}: p50 {p50:.2f} ms of {limit:.0f}, p99 {p99:.2f} ms of {limit_p99:.0f}, longest {times[-1]:.2f} ms")
    return p50 <= limit and p99 <= limit_p99


def assert_quick(server):
    """In the best of three rounds."""
    of_work = LIMIT_MS * slowness()
    for _ in range(3):
        times, work = ask_slowly(server, N_ASKED)
        rounds = [is_within(times, LIMIT_MS, 2 * LIMIT_MS, "as asked"), is_within(work, of_work, of_work, "work of the loop")]
        if all(rounds):
            return
    assert all(rounds), (times[-20:], work[-20:])


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
        assert wait_until(lambda: metric(server, 'posenc_rejected_total{reason="queue"}') > 0, 30)  # as many as may wait did
        assert_quick(server)
        assert metric(server, "posenc_waiting_requests") >= 50


READ_STREAMS = """
import select, socket, sys
host, port, n, n_read, body = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5].encode()
streams, epoll, buffer = {}, select.epoll(), bytearray(1 << 16)
for i in range(n):
    s = socket.create_connection((host, port))
    s.sendall(b"POST /encode HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
    streams[s.fileno()] = s
    if i < n_read:
        epoll.register(s, select.EPOLLIN)
while True:
    for fd, _ in epoll.poll():
        if not streams[fd].recv_into(buffer):
            sys.exit("a stream has ended")
"""


@contextlib.contextmanager
def streams(server, body, n_read):
    """300 streams, all read as fast as possible by another process: this one measures."""
    reader = subprocess.Popen([sys.executable, "-c", READ_STREAMS, server.host, str(server.port), "300", str(n_read), json.dumps(body)])
    try:
        assert wait_until(lambda: metric(server, "posenc_streams") == 300, 30)
        yield
        assert reader.poll() is None and metric(server, "posenc_streams") == 300
    finally:
        reader.kill()
        reader.wait()


TABLE = {"scheme": "sinusoidal", "dim": 512, "len": 4194304, "format": "raw"}
SLOW_ROWS = {"scheme": "xpos", "head_dim": 64, "len": 10_000_000, "format": "raw"}
TEXT = {"scheme": "sinusoidal", "dim": 512, "len": 4194304}


@pytest.mark.parametrize("body,n_read", [pytest.param(TABLE, 300, id="a table"), pytest.param(TABLE, 30, id="a table, most readers asleep"),
                                         pytest.param(SLOW_ROWS, 300, id="slow rows", marks=pytest.mark.slow), pytest.param(TEXT, 300, id="JSON")])
def test_300_streams(body, n_read):
    with start_server("--max-streams", "400", "--io-threads", "1", *UNHURRIED) as server, streams(server, body, n_read):
        assert_quick(server)


def test_the_end_right_after_300_clients_have_left():
    """Nothing else happens on their connections any more: the server looks at them by itself, long before --drain-seconds are over."""
    with start_server("--max-streams", "400", "--io-threads", "1", "--drain-seconds", "60") as server:
        with streams(server, TABLE, 300):
            time.sleep(1)
        server.process.terminate()
        assert server.ended(20) == 0 and "cutting" not in server.stderr_text()


def test_a_large_upload():
    n = 256 * 1024 * 1024
    part = b" " * (1 << 20)

    def upload(stop):
        while not stop.is_set():
            with Client(server) as client:
                client.send(f"POST /encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: {n}\r\n\r\n".encode())
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
