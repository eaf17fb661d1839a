"""The order of work: clients, i.e. addresses or tokens, take turns, so that one client cannot keep others out."""
import http.client
import json
import threading
import time

from asking import metric
from conftest import start_server

N_MANY = 30


def heavy(i):
    """A tenth of a second of one worker, and none like another: equal requests would share one answer."""
    return json.dumps({"scheme": "sinusoidal", "len": 900, "dim": 900, "offset": i, "format": "png"}).encode()


class Finished:
    """The clients that have been answered, in order."""

    def __init__(self):
        self.names, self.statuses, self.threads = [], {}, []

    def begin(self, server, name, body, source="127.0.0.1", headers=None, path="/encode"):
        connection = http.client.HTTPConnection(server.host, server.port, timeout=120, source_address=(source, 0))
        connection.connect()

        def run():
            connection.request("POST", path, body, {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            answer.read()
            self.statuses[name] = answer.status
            self.names.append(name)
            connection.close()

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def wait(self):
        for thread in self.threads:
            thread.join()
        return self.names


def wait_for_queue(server, n):
    end = time.monotonic() + 30
    refused = 'posenc_rejected_total{reason="queue"}'  # it has been that long if one was refused
    while metric(server, "posenc_waiting_requests") < n and metric(server, refused) == 0:
        assert time.monotonic() < end, "the queue never grew that long"
        time.sleep(0.01)


def place_of_the_one(server, many, one):
    """The number of the many requests answered between the single request and its answer."""
    finished = Finished()
    for i in range(N_MANY):
        finished.begin(server, i, heavy(i), **many)
    wait_for_queue(server, N_MANY // 2)
    before = len(finished.names)
    finished.begin(server, "one", heavy(N_MANY), **one)
    names = finished.wait()
    assert set(finished.statuses.values()) == {200}, finished.statuses
    return names.index("one") - before


def test_an_address_does_not_wait_behind_anothers_many():
    with start_server("--workers", "1") as server:
        place = place_of_the_one(server, {"source": "127.0.0.1"}, {"source": "127.0.0.2"})
        assert place <= 6, f"{place} of another's requests were answered first"


def test_one_address_is_served_in_its_own_order():
    with start_server("--workers", "1", "--io-threads", "1") as server:
        place = place_of_the_one(server, {"source": "127.0.0.1"}, {"source": "127.0.0.1"})
        assert place >= N_MANY // 3, f"only {place} were answered before the last to come"


def test_a_full_queue_keeps_a_place_for_others():
    with start_server("--workers", "1", "--max-queue", "8") as server:
        finished = Finished()
        for i in range(2 * N_MANY):  # some of them begin, and take turns
            finished.begin(server, i, heavy(i))
        wait_for_queue(server, 8)
        finished.begin(server, "one", heavy(2 * N_MANY), source="127.0.0.2")
        finished.wait()
        assert finished.statuses["one"] == 200
        assert 503 in finished.statuses.values(), "the queue was never full"
