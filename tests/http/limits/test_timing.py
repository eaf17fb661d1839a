"""Server-Timing is correct: the wait for a worker and, for an answer that is computed before its first byte, the times
of computing and writing. They are compared with a client's measurements, on a server of its own with one worker, so that
a wait can be arranged."""
import http.client
import json
import threading
import time

import numpy as np
import pytest

from conftest import SANITIZED, Stopwatch, start_server
from laws_machine import milliseconds


@pytest.fixture(scope="module")
def one_worker():
    with start_server("--workers", "1") as server:
        yield server


def timed(server, path, body):
    """The times that the server reports, and the milliseconds until its first byte: all of them, and those of a Stopwatch."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    begun, watch = time.monotonic(), Stopwatch(server)
    connection.request("POST", path, body)
    answer = connection.getresponse()
    measured, undisturbed = 1000 * (time.monotonic() - begun), 1000 * watch.seconds()
    answer.read()
    connection.close()
    assert answer.status == 200
    return milliseconds(answer), measured, undisturbed


def least(name, n, *request):
    """Of one of the times in n tries: others may have the processor in the middle of it."""
    return min(timed(*request)[0][name] for _ in range(n))


def entropy(n, format_="raw"):
    """A request whose answer is short and whose computation is long: n·n·head_dim multiplications for n numbers."""
    rng = np.random.default_rng(7)
    rows = [np.round(rng.standard_normal((n, 64)), 2).tolist() for _ in range(2)]
    return json.dumps({"scheme": "none", "q": rows[0], "k": rows[1], "outputs": ["row_entropy"], "format": format_}).encode()


@pytest.mark.parametrize("format_", ["raw", "json", "npy"])
def test_compute_is_what_the_client_waits_for(one_worker, format_):
    body = entropy(4096, format_)
    before = one_worker.threads()
    took, measured, _ = timed(one_worker, "/attention", body)
    worked = 1000 * max(seconds - before.get(thread, 0) for thread, seconds in one_worker.threads().items())  # the worker; it reads 2 MB, too
    assert set(took) == {"queue", "compute", "encode"}
    assert took["queue"] < measured - took["compute"] + 1 and took["compute"] <= measured
    assert took["compute"] > 0.5 * worked, (took, worked)
    assert min(took["encode"], least("encode", 2, one_worker, "/attention", body)) < 0.05 * worked


@pytest.mark.skipif(SANITIZED, reason="measures time")
def test_queue_is_the_wait_for_the_worker(one_worker):
    """While the only worker is busy with another's request, ours waits; whether it is one piece or many, small or not."""
    body = entropy(8192)
    recipe = {"scheme": "sinusoidal", "arith": "float32", "format": "raw"}
    ended = []

    def occupy():
        one_worker.post("/attention", body)
        ended.append(time.monotonic())

    for request in ({**recipe, "len": 2048, "dim": 64}, {**recipe, "len": 8192, "dim": 512}):
        for _ in range(20):
            slow = threading.Thread(target=occupy)
            slow.start()
            while slow.is_alive() and "posenc_busy_workers 1\n" not in one_worker.get("/metrics").body.decode():
                time.sleep(0.002)
            begun = time.monotonic()
            took, measured, undisturbed = timed(one_worker, "/encode", request)
            slow.join()
            if ended[-1] > begun + 0.02 and took["queue"] > 5:  # else the worker was done, or in the last milliseconds of its turn of 20
                break
        assert took["queue"] > 5, took
        assert took["queue"] <= measured
        assert took["queue"] > 0.5 * undisturbed - 30, (took, undisturbed)
