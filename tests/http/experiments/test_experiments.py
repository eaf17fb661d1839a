"""POST and GET /experiments: the events of both kinds of stream, one at a time, clients that leave and take turns. Refusals, and who may ask, are
rows: ../cases/experiments.jsonl."""
import http.client
import json
import socket
import time
import urllib.parse

import numpy as np
import pytest

from conftest import SANITIZED, Stopwatch, start_server
from connection import metric, within

SMALL = {"task": "local", "steps": 40, "train_len": 16, "eval_len": 24, "seed": 1}
LONG = {"steps": 2000, "train_len": 512, "eval_len": 512, "configs": [{"scheme": "rope"}]}
STEPS = [1, 10, 20, 40]


def lines(body):
    return [json.loads(line) for line in body.decode().splitlines()]


def events(body):
    """(id, data) of each server-sent event, read as the standard says: fields up to an empty line."""
    for block in body.decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        assert set(fields) == {"id", "data"}
        yield int(fields["id"]), json.loads(fields["data"])


def without_time(event):
    return {name: value for name, value in event.items() if name not in ("seconds", "step_seconds")}


def test_lines(server):
    configs = [{"scheme": "alibi"}, {"scheme": "rope", "eval": [{"scaling": {"type": "linear", "factor": 2.0}}, {"base": 500.0}]}, {"scheme": "none"}]
    answer = server.post("/experiments", {**SMALL, "configs": configs})
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/x-ndjson" and answer.headers["Cache-Control"] == "no-store"
    told = lines(answer.body)
    start, done = told[0], told[-1]
    assert start["event"] == "start" and {name: start[name] for name in SMALL} == SMALL
    assert [config["scheme"] for config in start["configs"]] == ["alibi", "rope", "none"] and start["configs"][1]["head_dim"] == 8
    progress = [event for event in told[1:-1] if event["event"] != "alive"]
    assert [(e["event"], e["run"], e["step"]) for e in progress] == [("progress", run, step) for run in range(3) for step in STEPS]
    assert done["event"] == "done" and done["seconds"] > 0
    assert len(done["step_seconds"]) == 3 and 0 < sum(done["step_seconds"]) * SMALL["steps"] <= done["seconds"] + 0.01
    assert [(r["run"], r["eval"]) for r in done["results"]] == [(0, None), (1, None), (1, 0), (1, 1), (2, None)]
    assert list(done["tensors"]) == [f"excess.{i}" for i in range(5)]
    for i, result in enumerate(done["results"]):
        tensor = done["tensors"][f"excess.{i}"]
        excess = np.array(tensor["data"])
        assert tensor["dtype"] == "f64" and tensor["shape"] == [24] == list(excess.shape)
        assert result["inside"] == pytest.approx(excess[8:16].mean(), abs=1e-12) and result["outside"] == pytest.approx(excess[-8:].mean(), abs=1e-12)
        assert result["rise"] == pytest.approx(result["outside"] - result["inside"], abs=1e-12)


def reported(told):
    """What a loaded machine says in between, that it still works, is left out."""
    return [without_time(event) for event in told if event["event"] != "alive"]


def test_resolved_configs_train_the_same(server):
    """The configurations of the start, sent again, give the same numbers; so does the request itself."""
    asked = {**SMALL, "configs": [{"scheme": "sinusoidal", "base": 100}, {"scheme": "t5", "max_distance": 64}]}
    first = lines(server.post("/experiments", asked).body)
    again = lines(server.post("/experiments", {**SMALL, "configs": first[0]["configs"]}).body)
    assert reported(first) == reported(again)


def test_head_begins_nothing(server):
    before = metric(server, 'posenc_experiments_total{outcome="ended"}')
    answer = server.request("HEAD", "/experiments?scheme=alibi")
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/x-ndjson" and answer.body == b""
    assert metric(server, "posenc_experiments") == 0 and metric(server, 'posenc_experiments_total{outcome="ended"}') == before


def test_server_sent_events(server):
    query = urllib.parse.urlencode({**SMALL, "configs": json.dumps([{"scheme": "kerple"}])})
    answer = server.get("/experiments?" + query, {"Accept": "text/event-stream"})
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/event-stream"
    told = list(events(answer.body))
    assert [i for i, _ in told] == list(range(len(told)))
    plain = lines(server.get("/experiments?" + query).body)
    assert reported(event for _, event in told) == reported(plain)
    # A browser that connects again after the end says what it has seen, and must stop.
    repeated = server.get("/experiments?" + query, {"Accept": "text/event-stream", "Last-Event-ID": str(told[-1][0])})
    assert repeated.status == 204 and repeated.body == b""


@pytest.mark.parametrize("fields, pointer, words", [
    ({"configs": [{"preset": "eval-rope", "eval": [{"preset": "eval-alibi"}]}]}, "/configs/0/eval/0/preset", ('preset "eval-alibi"', '"rope"')),
    ({"configs": [{"scheme": "rope", "eval": [{"base": 500.0}, {"preset": "bloom"}]}]}, "/configs/0/eval/1/preset", ('"alibi"', '"rope"')),
    ({"preset": "eval-alibi", "configs": [{"eval": [{"preset": "eval-rope"}]}]}, "/configs/0/eval/0/preset", ('"rope"', '"alibi"')),
    ({"scheme": "none", "configs": [{"eval": [{"scheme": "none", "preset": "eval-rope"}]}]}, "/configs/0/eval/0/preset", ('"rope"', '"none"')),
    ({"scheme": "rope", "configs": [{"eval": [{"hf_config": {"model_type": "bloom", "n_head": 4, "hidden_size": 32}}]}]},
     "/configs/0/eval/0/hf_config", ('hf_config has the scheme "alibi"', '"rope"')),
])
def test_a_model_to_evaluate_has_the_scheme_of_the_weights(server, fields, pointer, words):
    stored = {"eval-rope": {"scheme": "rope", "head_dim": 8, "base": 1000.0}, "eval-alibi": {"scheme": "alibi", "num_heads": 4}}
    for name, config in stored.items():
        assert server.request("PUT", f"/presets/{name}", json.dumps({"config": config}).encode()).status in (200, 201)
    try:
        problem = server.post("/experiments", {**SMALL, **fields})
        same = server.post("/experiments", {**SMALL, "steps": 1, "configs": [{"scheme": "rope", "eval": [{"preset": "eval-rope"}]}]})
    finally:
        for name in stored:
            server.request("DELETE", f"/presets/{name}")
    assert problem.status == 422 and problem.json()["pointer"] == pointer, problem.json()
    assert all(word in problem.json()["detail"] for word in words), problem.json()
    assert same.status == 200 and lines(same.body)[-1]["event"] == "done"


class Running:
    """A long experiment whose answer has begun."""

    def __init__(self, server, body=LONG):
        self.connection = http.client.HTTPConnection(server.host, server.port, timeout=30)
        self.connection.request("POST", "/experiments", json.dumps(body))
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200 and json.loads(self.answer.readline())["event"] == "start"

    def leave(self):
        self.connection.sock.close()
        self.answer.close()


def test_one_at_a_time_and_no_worker_taken():
    with start_server("--workers", "1") as server:
        one_at_a_time(server)


def one_at_a_time(server):
    running = Running(server)
    assert metric(server, "posenc_experiments") == 1 and metric(server, "posenc_busy_workers") == 0
    refused = server.post("/experiments", {"scheme": "alibi"})
    assert refused.status == 429 and int(refused.headers["Retry-After"]) > 0 and "--experiments" in refused.json()["detail"]
    assert server.post("/experiments", {"scheme": "shaw"}).status == 422  # what is wrong is said first
    assert server.post("/analyze", {"scheme": "rope", "len": 64}).status == 200  # on the only worker
    running.leave()
    within(5, lambda: metric(server, "posenc_experiments") == 0)
    assert server.post("/experiments", {**SMALL, "scheme": "alibi"}).status == 200
    assert metric(server, 'posenc_experiments_total{outcome="done"}') == 1 and metric(server, 'posenc_experiments_total{outcome="ended"}') == 1
    assert metric(server, "posenc_experiment_steps_total") >= 40


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_client_that_leaves_without_unread_bytes(version):
    """Its end of stream alone shows that it has left; the next event could be two seconds away."""
    with start_server() as server:
        body = json.dumps(LONG).encode()
        with socket.create_connection((server.host, server.port)) as client:
            client.sendall(b"POST /experiments HTTP/%s\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (version.encode(), len(body), body))
            seen = b""
            while b'"step":1,' not in seen:
                seen += client.recv(65536)
            time.sleep(0.1)
            watch = Stopwatch(server)
        within(20, lambda: metric(server, "posenc_experiments") == 0)
        assert watch.seconds() < (10 if SANITIZED else 2)


def ask_from(server, source, body):
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60, source_address=(source, 0))
    try:
        connection.request("POST", "/experiments", json.dumps(body))
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


ONE, TWO, THREE = "127.0.0.2", "127.0.0.3", "127.0.0.4"


@pytest.mark.skipif(SANITIZED, reason="whoever comes back too late loses its turn")
def test_clients_take_turns():
    """A client that asks again at once does not keep another one out; and those that were refused come in the order of their first try."""
    short = {**SMALL, "scheme": "none"}
    with start_server() as server:
        running = Running(server)
        assert [ask_from(server, source, short) for source in (TWO, THREE, TWO)] == [429] * 3
        running.leave()
        within(5, lambda: metric(server, "posenc_experiments") == 0)
        assert [ask_from(server, ONE, short) for _ in range(20)] == [429] * 20  # the place is free, and kept for those who wait
        assert ask_from(server, THREE, short) == 429
        assert [ask_from(server, source, short) for source in (TWO, TWO, THREE)] == [200, 429, 200]
        assert ask_from(server, TWO, short) == 429  # behind the first client now
        assert [ask_from(server, source, short) for source in (ONE, TWO)] == [200, 200]
        assert [ask_from(server, ONE, short) for _ in range(5)] == [200] * 5  # alone, a client need not wait


def test_whoever_does_not_come_back_loses_its_turn():
    short = {**SMALL, "scheme": "none"}
    with start_server() as server:
        running = Running(server)
        assert ask_from(server, TWO, short) == 429
        running.leave()
        within(5, lambda: metric(server, "posenc_experiments") == 0)
        assert ask_from(server, ONE, short) == 429
        begun, watch = time.monotonic(), Stopwatch(server)
        within(20, lambda: ask_from(server, ONE, short) == 200)
        assert time.monotonic() - begun > 3 and watch.seconds() < 15


def test_alive_while_nothing_is_reported():
    """Steps of the largest kind: between the first and the tenth more than two seconds may pass."""
    with start_server() as server:
        running = Running(server)
        begun, longest = time.monotonic(), 0
        while time.monotonic() - begun < (14 if SANITIZED else 7):
            watch = Stopwatch(server)
            assert json.loads(running.answer.readline())["event"] in ("progress", "alive")
            longest = max(longest, watch.seconds())
        running.leave()
        assert longest < (10 if SANITIZED else 5), longest
