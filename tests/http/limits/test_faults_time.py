"""A wall clock that jumps, and workers that stop for a while."""
import contextlib
import json
import time

import pytest

from conftest import SANITIZED, Stopwatch
from faults import AGAIN, DROPPED, REQUESTS, WEIGHTS, answer_of, answer_on_new, faulty_server, is_right, put
from test_cancel import LONG_ROW
from test_time import with_time
from connection import Client, clients, get, is_quiet, metric, wait_until

pytestmark = pytest.mark.skipif(SANITIZED, reason="preloads")
NAMES = ["GET", "json", "stream", "stream of json", "large body", "multipart", "stored weights", "PUT of weights"]
DAY = 86400


@pytest.mark.waiting
@pytest.mark.parametrize("jump", [400 * DAY, -3600])
def test_a_wall_clock_that_jumps(jump):
    """No deadline, no connection and no answer depends on it; the log's lines and Date do."""
    with faulty_server("--header-timeout", "2", "--connection-timeout", "3", "--max-queue-age", "2", "--io-threads", "1") as server:
        assert answer_on_new(server, put("t5", WEIGHTS))[0] == 201
        right = {name: answer_on_new(server, REQUESTS[name]) for name in NAMES}
        right["PUT of weights"] = answer_on_new(server, REQUESTS["PUT of weights"])
        with Client(server) as client, Client(server, receive_buffer=4096) as reader:
            assert answer_of(client, REQUESTS["json"]) == right["json"]
            reader.send(REQUESTS["stream"])
            head = REQUESTS["multipart"]
            with Client(server) as half:
                half.send(head[:60])
                server.faults.wall_offset = jump
                time.sleep(0.6)
                half.send(head[60:])
                assert half.answer()[2] == right["multipart"][1]
            assert answer_of(client, REQUESTS["json"]) == right["json"]
            assert reader.answer()[2] == right["stream"][1]
        for name in NAMES:
            assert answer_on_new(server, REQUESTS[name]) == right[name], name
        server.faults.wall_offset = 0
        with Client(server) as timed:
            before, clock = time.monotonic(), Stopwatch(server)
            timed.send(with_time(LONG_ROW(), 0.5))
            time.sleep(0.2)
            server.faults.wall_offset = jump
            assert timed.answer()[0] == 503 and 0.5 <= time.monotonic() - before and clock.seconds() < 1
        server.faults.wall_offset = 0
        with Client(server) as slow:  # a head that does not end is cut by time that has passed, not sooner or later
            before, clock = time.monotonic(), Stopwatch(server)
            slow.send(b"GET / HTTP/1.1\r\n")
            time.sleep(0.5)
            server.faults.wall_offset = jump
            assert slow.head()[0] == 408
            assert 1 < time.monotonic() - before and clock.seconds() < 6
        year = time.strftime("%Y-%m-%d", time.gmtime(time.time() + jump))
        assert wait_until(lambda: year in server.stderr_text())


@contextlib.contextmanager
def one_worker(*flags):
    with faulty_server("--workers", "1", "--io-threads", "1", "--answer-cache", "0", *flags) as server:
        yield server


@contextlib.contextmanager
def stopped(server, ms, request=REQUESTS["large body"]):
    """The only worker stops for so long in front of this request; its client. Later ones find it as ever."""
    server.faults.set(worker_delay_ms=ms, worker_every=1)
    with Client(server) as client:
        client.send(request)
        assert wait_until(lambda: server.faults.worker_delays > 0, 5)
        yield client
        server.faults.worker_every = 0


def test_a_worker_that_stops_for_a_second():
    """Requests that need no worker are served meanwhile; requests that need one wait, and get the right answer."""
    with one_worker() as server:
        right = {name: answer_on_new(server, REQUESTS[name]) for name in ("large body", "stream", "json")}
        before = time.monotonic()
        with stopped(server, 1500) as client:
            for _ in range(20):
                clock = Stopwatch(server)
                assert is_right(server) and answer_on_new(server, get("/healthz"))[0] == 200
                assert clock.seconds() < 0.5
            server.faults.worker_every = 0
            assert client.answer()[2] == right["large body"][1]
            assert time.monotonic() - before > 1.4
        for name, answer in right.items():
            assert answer_on_new(server, REQUESTS[name]) == answer


def test_a_queue_behind_a_worker_that_stops():
    """Requests that have waited longer than --max-queue-age get a 503; none gets a wrong answer."""
    with one_worker("--max-queue-age", "1") as server:
        right = answer_on_new(server, REQUESTS["large body"])
        with stopped(server, 2500) as first, clients(server, 5) as others:
            for client in others:
                client.send(REQUESTS["large body"])
            time.sleep(0.3)
            server.faults.worker_every = 0
            ends = [client.answer()[::2] for client in (first, *others)]
        assert all(end == right or end[0] == 503 and b"--max-queue-age" in end[1] for end in ends)
        assert any(end[0] == 503 for end in ends)
        assert answer_on_new(server, REQUESTS["large body"]) == right
        assert wait_until(lambda: is_quiet(server))


def test_a_stream_behind_a_worker_that_stops():
    """The same for an answer whose first piece a worker must compute: it is refused before its head."""
    stream = json.dumps({"scheme": "sinusoidal", "dim": 64, "len": 8192, "format": "raw", "arith": "float32"})
    stream = f"POST /encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(stream)}\r\n\r\n{stream}".encode()
    with one_worker("--max-queue-age", "1") as server:
        with stopped(server, 2500) as first, Client(server) as client:
            server.faults.worker_every = 0
            client.send(stream)
            status, _, body = client.answer()
            assert status == 503 and b"--max-queue-age" in body and b"not computed" in body
            n_aged = 1 + (first.answer()[0] == 503)  # its worker stopped in front of it
        assert metric(server, 'posenc_rejected_total{reason="age"}') == n_aged
        status, body = answer_on_new(server, stream)
        assert status == 200 and len(body) == 8192 * 64 * 4
        assert wait_until(lambda: is_quiet(server))


def test_clients_that_leave_a_worker_that_stops():
    """The memory of their requests is released when the worker resumes."""
    with one_worker() as server:
        right = answer_on_new(server, REQUESTS["large body"])
        with stopped(server, 800) as first, clients(server, 7) as others:
            for client in others:
                client.send(REQUESTS["large body"])
            for client in (first, *others):
                client.reset()
        assert wait_until(lambda: is_quiet(server))
        assert wait_until(lambda: metric(server, "posenc_connections") <= 1)
        assert answer_on_new(server, REQUESTS["large body"]) == right and right != DROPPED


def test_the_end_waits_for_a_worker_that_stops():
    """SIGTERM while a worker stands still: its request is answered, then status 0."""
    with one_worker("--drain-seconds", "10") as server:
        right = answer_on_new(server, REQUESTS["large body"])
        with stopped(server, 1000, REQUESTS["large body"].replace(b"59999]", b"59998]")) as client:
            server.process.terminate()
            time.sleep(0.2)
            server.faults.worker_every = 0
            body = client.answer()[2]
            assert body[:-4] == right[1][:-4] and len(body) == len(right[1])
        assert server.ended(10) == 0


def test_a_refusal_of_what_is_late_is_not_late():
    """It is sent whole, however long the network takes: the sweep for late answers finds it half sent several times."""
    with one_worker() as server:
        with stopped(server, 600, REQUESTS["large body"].replace(b"\r\n", b"\r\nX-Request-Timeout: 0.2\r\n", 1)) as client:
            server.faults.set(net_kinds=AGAIN, net_permille=1000)
            time.sleep(1.5)
            server.faults.calm()
            status, _, body = client.answer()
            assert status == 503 and b"was not ready within the 0.200000 s" in body
        assert wait_until(lambda: is_quiet(server))
