"""Clients that disconnect: their work ends within a tenth of a second in every stage. Who shares the work: test_single_flight.py."""
import itertools
import socket
import time

import pytest

import heavy
from conftest import SANITIZED, Stopwatch, start_server
from connection import Client, get, post

WITHIN = 0.25 if not SANITIZED else 2.0  # 100 ms, and the noise of a machine with other work
HEAVY = heavy.table("left")
LONG_ROW = HEAVY["one-long-piece"]


class Watch:
    """Figures over one connection, a millisecond each."""

    def __init__(self, server):
        self.server, self.client = server, Client(server)

    def __getitem__(self, name):
        return self.sum(name)

    def sum(self, *names):
        """Of one look, so that what moves from one figure to another counts once."""
        self.client.send(get("/metrics"))
        lines = self.client.answer()[2].decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(names))

    def wait(self, condition, seconds=60):
        """How long that took the server; None: longer than so many seconds of the clock."""
        watch, end = Stopwatch(self.server), time.monotonic() + seconds
        while not condition(self):
            if time.monotonic() > end:
                return None
            time.sleep(0.002)
        return watch.seconds()


def is_done(watch):
    return watch["posenc_busy_workers"] == 0 and watch["posenc_in_flight_requests"] == 1


@pytest.fixture(scope="module")
def one_worker():
    with start_server("--workers", "1", "--max-body", "1GiB") as server:
        yield server


@pytest.mark.parametrize("name, how", zip(HEAVY, itertools.cycle(["close", "reset"])))
def test_work_ends_when_its_client_leaves(one_worker, name, how):
    request = HEAVY[name]()  # before the connection, which is closed where nothing comes for some seconds
    watch, client = Watch(one_worker), Client(one_worker)
    client.socket.settimeout(120)
    before = watch["posenc_cancelled_total"]
    client.send(request)
    assert watch.wait(lambda w: w["posenc_busy_workers"] == 1 or w["posenc_streams"] == 1) is not None, "it never began"
    time.sleep(0.05)
    assert watch["posenc_in_flight_requests"] == 2, "not heavy enough to be left"
    (client.reset if how == "reset" else client.__exit__)()
    seconds = watch.wait(is_done)
    print(f"{name}: {1000 * seconds if seconds else -1:.0f} ms")
    assert seconds is not None and seconds < WITHIN
    assert watch["posenc_cancelled_total"] == before + 1


def test_leaving_the_queue(one_worker):
    """A client may have begun on so many of its requests; of those after them none is begun before one is done."""
    def n_held(watch):
        return watch.sum("posenc_busy_workers", "posenc_parked_jobs", "posenc_waiting_requests")

    watch, busy = Watch(one_worker), [Client(one_worker) for _ in range(20)]
    for seed, client in enumerate(busy):
        client.send(LONG_ROW(seed=seed))
    assert watch.wait(lambda w: w["posenc_parked_jobs"] >= 13 and n_held(w) == 20) is not None
    waiting = Client(one_worker)
    before = watch['posenc_cancelled_total{stage="waiting"}']
    waiting.send(get("/encode?scheme=sinusoidal&len=1000&dim=64&format=png"))
    assert watch.wait(lambda w: n_held(w) == 21) is not None  # it is in the queue, not only on its way there
    waiting.reset()
    assert watch.wait(lambda w: w["posenc_in_flight_requests"] == 21) < WITHIN, "its slot is free while others work"
    assert watch['posenc_cancelled_total{stage="waiting"}'] == before + 1
    for client in busy:
        client.reset()
    assert watch.wait(is_done) < 2 * WITHIN


# ---- Clients that close their sending side only ------------------------------------------------------------------------


@pytest.mark.parametrize("request_", [
    get("/encode?scheme=sinusoidal&len=3000&dim=500&format=png"),
    post(b'{"scheme":"floater","len":300,"dim":256,"seed":0,"format":"raw","slice":[[-1,null]]}'),
    post(b'{"scheme":"floater","len":300,"dim":256,"seed":0,"slice":[[-1,null]]}'),
])
def test_half_closed_clients_get_long_answers(one_worker, request_):
    """As `printf ... | nc -N` does; the client skips the interim response that tests whether it is still there."""
    with Client(one_worker) as client:
        client.send(request_)
        expected = client.answer()
    blocker = Client(one_worker)
    blocker.send(LONG_ROW())
    watch = Watch(one_worker)
    assert watch.wait(lambda w: w["posenc_busy_workers"] == 1) is not None
    with Client(one_worker) as client:
        client.send(request_)
        client.socket.shutdown(socket.SHUT_WR)
        time.sleep(0.3)  # it waits for the worker, seen half closed
        blocker.reset()
        status, _, body = client.answer()
        assert status == 200 and body == expected[2]
        assert client.is_closed()


def test_half_closed_and_then_gone(one_worker):
    watch, client = Watch(one_worker), Client(one_worker)
    client.send(LONG_ROW())
    client.socket.shutdown(socket.SHUT_WR)
    assert watch.wait(lambda w: w["posenc_busy_workers"] == 1) is not None
    time.sleep(0.3)
    assert watch["posenc_in_flight_requests"] == 2, "it waits, so the work goes on"
    client.__exit__()  # with the interim response unread, which makes it a reset
    assert watch.wait(is_done) < WITHIN


def test_half_closed_http_1_0_counts_as_gone(one_worker):
    """It must not be sent an interim response, so there is no telling."""
    watch, client = Watch(one_worker), Client(one_worker)
    client.send(LONG_ROW().replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert watch.wait(lambda w: w["posenc_busy_workers"] == 1) is not None
    client.socket.shutdown(socket.SHUT_WR)
    assert watch.wait(is_done) < WITHIN
    assert client.is_closed()


def test_many_leave_at_once(one_worker):
    clients = [Client(one_worker) for _ in range(100)]
    for i, client in enumerate(clients):
        client.send(get(f"/encode?scheme=sinusoidal&len={8000 + i}&dim=8000&format=png"))
    watch = Watch(one_worker)
    before = watch["posenc_cancelled_total"]
    assert watch.wait(lambda w: w["posenc_in_flight_requests"] == 101) is not None
    for i, client in enumerate(clients):
        (client.reset if i % 2 else client.__exit__)()
    assert watch.wait(is_done) < 2 * WITHIN
    assert watch["posenc_cancelled_total"] >= before + 90
