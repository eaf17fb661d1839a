"""The order of work: clients, i.e. addresses or tokens, take turns, so that one client cannot keep others out."""
import http.client
import json
import threading

from conftest import start_server
from connection import metric, within

N_MANY = 30


def heavy(i):
    """A tenth of a second of one worker, and none like another: equal requests would share one answer."""
    return json.dumps({"scheme": "sinusoidal", "len": 900, "dim": 900, "offset": i, "format": "png"}).encode()


class Finished(dict):
    """{client: status of its answer}, in the order of the answers."""

    def __init__(self):
        self.threads = []

    def begin(self, server, name, body, source="127.0.0.1", headers=None):
        def run():
            connection = http.client.HTTPConnection(server.host, server.port, timeout=120, source_address=(source, 0))
            connection.request("POST", "/encode", body, {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            answer.read()
            self[name] = answer.status
            connection.close()

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def wait(self):
        for thread in self.threads:
            thread.join()


def wait_for_queue(server, n):
    refused = 'posenc_rejected_total{reason="queue"}'  # it has been that long if one was refused
    within(30, lambda: metric(server, "posenc_waiting_requests") >= n or metric(server, refused) > 0)


def place_of_the_one(server, many, one):
    """The number of the many requests answered between the single request and its answer."""
    finished = Finished()
    for i in range(N_MANY):
        finished.begin(server, i, heavy(i), **many)
    wait_for_queue(server, N_MANY // 2)
    before = len(finished)
    finished.begin(server, "one", heavy(N_MANY), **one)
    finished.wait()
    assert set(finished.values()) == {200}, finished
    return list(finished).index("one") - before


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
        assert finished["one"] == 200
        assert 503 in finished.values(), "the queue was never full"
