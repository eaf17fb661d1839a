"""What others notice of an experiment: health and small requests are answered beside it, its thread has a low priority, and it ends
soon after its client has left. Measures time, so it runs alone."""
import http.client
import json
import pathlib
import statistics
import time

import pytest

from connection import metric
from conftest import SANITIZED, Stopwatch, start_server

BODY = {"steps": 2000, "configs": [{"scheme": scheme} for scheme in ("rope", "alibi", "t5", "sinusoidal", "kerple", "none")]}
LOW = 10  # the niceness of the thread that trains


class Run:
    """An experiment of minutes that trains already."""

    def __init__(self, server):
        self.connection = http.client.HTTPConnection(server.host, server.port, timeout=30)
        self.connection.request("POST", "/experiments", json.dumps(BODY))
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        while json.loads(self.answer.readline())["event"] != "progress":
            pass

    def leave(self):
        self.connection.sock.close()
        self.answer.close()


def seconds(server, connection, path):
    clock = Stopwatch(server)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == 200 and answer.read()
    return clock.seconds()


def niceness(server):
    """Of each thread."""
    found = []
    for stat in pathlib.Path(f"/proc/{server.pid}/task").glob("*/stat"):
        try:
            found.append(int(stat.read_text().rsplit(")", 1)[1].split()[16]))
        except (FileNotFoundError, ProcessLookupError):  # the thread of an event ends with it
            pass
    return found


def is_training(server):
    return metric(server, "posenc_experiments") == 1


@pytest.mark.skipif(SANITIZED, reason="measures time")
def test_others_are_answered():
    with start_server() as server:
        run, connection = Run(server), http.client.HTTPConnection(server.host, server.port, timeout=30)
        health, small, seen = [], [], []
        for i in range(400):
            health.append(seconds(server, connection, "/healthz"))
            if i % 4 == 0:  # each another one, so that none is answered from the cache
                small.append(seconds(server, connection, f"/encode?scheme=sinusoidal&dim=64&len=64&offset={i}"))
                seen.append(sorted(niceness(server)))
        assert server.post("/analyze", {"scheme": "rope", "len": 64}).status == 200  # by a worker
        assert is_training(server)
        run.leave()
        assert sorted(health)[395] < 0.05 and sorted(small)[98] < 0.05, (sorted(health)[-8:], sorted(small)[-4:])
        # One thread trains, and no other thread gives way. A new thread has the server's niceness until it sets its own.
        assert sum(nice[-1] == LOW for nice in seen) > 50 and all(nice[:-1] == [0] * (len(nice) - 1) for nice in seen), seen


@pytest.mark.skipif(SANITIZED, reason="measures time")
def test_ends_soon_after_its_client():
    """Each client leaves when it has read of step 1. A thread that trains on until the next event would count nine more steps; where it
    finds no core its time is the machine's, and the steps say that it did not."""
    def until_the_end(server):
        run = Run(server)
        clock, end = Stopwatch(server), time.monotonic() + 30
        run.leave()
        while is_training(server):
            assert time.monotonic() < end
        return clock.seconds()

    with start_server() as server:
        took = [until_the_end(server) for _ in range(7)]
        assert metric(server, 'posenc_experiments_total{outcome="ended"}') == len(took)
        steps = metric(server, "posenc_experiment_steps_total") / len(took)
        assert statistics.median(took) < 0.1 or (statistics.median(took) < 1 and steps < 6), (took, steps)
