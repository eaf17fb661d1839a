"""Cached answers: an equal request costs no computing and gets the same bytes; a different request never gets a cached
answer."""
import contextlib
import http.client
import json
import re

import numpy as np
import pytest

import safetensors_reader
from conftest import start_server
from tensors import from_json, multipart, npy

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
ROPE = "/encode?scheme=rope&len=4&head_dim=8"


def figures(server):
    page = server.get("/metrics").body.decode()
    return {name: int(float(re.search(rf"^posenc_cache_{name} (\S+)", page, re.M)[1])) for name in ("hits_total", "misses_total", "bytes")}


def hits(server, ask):
    """The number of cache hits among the requests of `ask`, and the answers."""
    before = figures(server)["hits_total"]
    answer = ask()
    return figures(server)["hits_total"] - before, answer


@pytest.fixture
def fresh():
    with start_server() as server:
        yield server


def test_again_is_the_same(fresh):
    first = fresh.get(ROPE)
    n, again = hits(fresh, lambda: fresh.get(ROPE))
    assert n == 1 and again.body == first.body and again.status == 200
    different = {"Date", "X-Request-Id", "Server-Timing"}
    assert {k: v for k, v in first.headers.items() if k not in different} == {k: v for k, v in again.headers.items() if k not in different}
    assert first.headers["X-Request-Id"] != again.headers["X-Request-Id"]
    assert "compute;dur=0.000" in again.headers["Server-Timing"]


def test_heads_of_kept_answers(fresh):
    """A reused head contains the data of this request: its own ids, on connections that alternate."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(contextlib.closing(http.client.HTTPConnection(fresh.host, fresh.port, timeout=60))) for _ in range(8)]
        ids, bodies = [], set()
        for i in range(40):
            for j, client in enumerate(clients):
                given = {"X-Request-Id": f"n-{i}-{j}"} if (i + j) % 3 == 0 else {"traceparent": TRACE} if (i + j) % 3 == 1 else {}
                client.request("HEAD" if i % 5 == 4 else "GET", ROPE, headers=given)
            for j, client in enumerate(clients):
                answer = client.getresponse()
                body, found = answer.read(), answer.headers.get_all("X-Request-Id")
                ids += found
                assert len(found) == 1 and answer.status == 200 and len(answer.headers.get_all("ETag")) == 1
                assert (answer.headers["X-Request-Id"] == f"n-{i}-{j}") == ((i + j) % 3 == 0)
                assert answer.headers["traceparent"] == (TRACE if (i + j) % 3 == 1 else None)
                bodies |= {body} if i % 5 != 4 else set()
        assert len(set(ids)) == len(ids) == 320 and len(bodies) == 1


def test_what_tells_requests_apart(fresh):
    """Method, path, query, body and every header that the language looks at."""
    body, origin = json.dumps({"scheme": "rope", "len": 4}).encode(), "https://example.org"
    asked = [("GET", ROPE, None, {}), ("HEAD", ROPE, None, {}), ("GET", ROPE + "&digits=3", None, {}), ("GET", ROPE, None, {"Accept": "application/vnd.safetensors"}),
             ("GET", ROPE + "&format=raw", None, {"Range": "bytes=0-3"}), ("GET", ROPE + "&format=raw", None, {"Range": "bytes=4-7"}), ("GET", ROPE, None, {"Origin": origin}),
             ("POST", "/encode", body, {}), ("POST", "/encode", b'{"scheme":"alibi","len":5,"format":"npy","outputs":["bias"]}', {}),
             ("POST", "/encode", b'{"scheme":"rope","len":3,"format":"npz"}', {}), ("POST", "/encode", b'{"scheme":"rope","len":3,"format":"safetensors"}', {}), ("POST", "/encode", body, {"Content-Type": "application/json"}), ("QUERY", "/encode", body, {"Content-Type": "application/json"}),
             ("POST", "/encode?digits=2", body, {}), ("GET", "/schemes/rope", None, {}), ("GET", "/schemes/alibi", None, {}),
             ("POST", "/v2/models/rope/infer", b'{"inputs":[],"parameters":{"len":2}}', {}), ("POST", "/v2/models/alibi/infer", b'{"inputs":[],"parameters":{"len":2}}', {})]
    first = []
    for method, path, data, headers in asked:
        n, answer = hits(fresh, lambda: fresh.request(method, path, data, headers))
        assert n == 0 and answer.status in (200, 206), (method, path, headers, answer)
        first.append(answer)
    for (method, path, data, headers), before in zip(asked, first):
        n, answer = hits(fresh, lambda: fresh.request(method, path, data, headers))
        assert (n, answer.status, answer.body) == (1, before.status, before.body), (method, path, headers)


def test_refusals_are_not_kept(fresh):
    for ask in (lambda: fresh.get("/encode?scheme=rop&len=4"), lambda: fresh.get("/schemes/rop"), lambda: fresh.get("/nowhere"), lambda: fresh.get("/healthz"),
                lambda: fresh.get("/version"), lambda: fresh.get("/weights")):
        ask()
        assert hits(fresh, ask)[0] == 0


def test_stored_weights_are_read_anew(fresh):
    """A file may be replaced, so answers computed from it are never cached."""
    ask = lambda: from_json(fresh.ask(scheme="t5", num_heads=1, len=2, weights="w"))["bias"]  # noqa: E731
    for value in (1.0, 2.0, 3.0):
        fresh.request("PUT", "/weights/w", safetensors_reader.dumps({"table": np.full((32, 1), value, "f4")}))
        n, bias = hits(fresh, ask)
        assert n == 0 and (bias == value).all()
        n, bias = hits(fresh, ask)
        assert n == 0 and (bias == value).all()


def test_long_requests_are_computed(fresh):
    """Requests that send tensors are not looked up in the cache."""
    body, headers = multipart(request='{"scheme":"rope","layout":"half"}', q=npy(np.ones((4, 512), "f4")))
    assert len(body) > 4096
    first = fresh.post("/rotate", body, headers)
    n, again = hits(fresh, lambda: fresh.post("/rotate", body, headers))
    assert n == 0 and again.body == first.body


def test_moved_tensors_do_not_name_another_request(fresh):
    """A tensor may be moved inside its body while it is read; the cache key is the body as sent."""
    for i in range(3):
        for name in ("q", "k"):
            x = np.full((1, 8), i + 1.0, "f4")
            body, headers = multipart(request='{"scheme":"rope","layout":"half","len":1}', **{name: npy(x)})
            answer = from_json(fresh.post("/rotate", body, headers))
            assert list(answer) == [name] and answer[name].tobytes() == x.tobytes()


def test_the_oldest_leave_first():
    with start_server("--answer-cache", "12KiB") as server:
        def ask(n):
            return lambda: server.get(f"/encode?scheme=sinusoidal&dim=16&len={n}")
        for n in (10, 11):
            ask(n)()
        assert 0 < figures(server)["bytes"] <= 12 * 1024
        assert hits(server, ask(10))[0] == 1  # now 11 is the older one
        for n in range(12, 15):
            ask(n)()
            assert figures(server)["bytes"] <= 12 * 1024
            assert hits(server, ask(10))[0] == 1, "in use, so it stays"
        assert hits(server, ask(11))[0] == 0


def test_none_are_kept():
    with start_server("--answer-cache", "0") as server:
        first = server.get(ROPE)
        n, again = hits(server, lambda: server.get(ROPE))
        assert n == 0 and again.body == first.body
        assert figures(server) == {"hits_total": 0, "misses_total": 0, "bytes": 0}
