"""Tensors drawn from a seed: where one may stand in place of numbers. Their numbers and refusals are rows of ../../cases (drawn-*)."""
import json
import urllib.parse

import jsonschema
import pytest

from asking import inline
from conftest import start_server
from truth.absolute import seeded
from tensors import from_raw


def drawn(shape, seed=0, std=None):
    return {"shape": list(shape), "seed": seed, **({} if std is None else {"std": std})}


@pytest.mark.parametrize("path, request_, tensors", [
    ("/rotate", {"scheme": "rope", "layout": "half"}, {"q": (2, 3, 8), "k": (1, 3, 8)}),
    ("/attention", {"scheme": "alibi", "outputs": ["probs", "output"]}, {"q": (2, 5, 8), "k": (2, 5, 8), "v": (2, 5, 6)}),
    ("/attention", {"scheme": "sinusoidal", "num_heads": 2, "outputs": ["output"]}, {"x": (5, 8), "w_q": (8, 8), "w_k": (8, 8), "w_v": (8, 8), "b_q": (8,)}),
    ("/attention", {"scheme": "shaw", "max_relative": 2}, {"q": (5, 8), "k": (5, 8), "rel_k": (5, 8)}),
    ("/encode", {"scheme": "sinusoidal", "dim": 8}, {"x": (2, 5, 8)}),
    ("/encode", {"scheme": "fire", "len": 6, "num_heads": 2}, {"w1": (32, 1), "b1": (32,), "w2": (2, 32), "b2": (2,)}),
    ("/encode", {"scheme": "rope", "head_dim": 4}, {"positions": (6,)})])
def test_wherever_a_tensor_may_stand(server, path, request_, tensors):
    """The same bytes as when the numbers are sent."""
    by_seed = {name: drawn(shape, 3, 0.5) for name, shape in tensors.items()}
    sent = {name: inline(seeded(name, shape, 3, 0.5), "f32") for name, shape in tensors.items()}
    assert server.ask(path, **request_, **by_seed, format="raw").body == server.ask(path, **request_, **sent, format="raw").body


def test_in_other_ways_to_send_a_request(server):
    request = {"scheme": "t5", "len": 4, "table": drawn((32, 2), 1), "format": "raw"}
    body = server.post("/encode", request).body
    query = "&".join(f"{name}={urllib.parse.quote(value if isinstance(value, str) else json.dumps(value))}" for name, value in request.items())
    first = server.get("/encode?" + query)
    assert first.status == 200 and first.body == body
    assert server.get("/encode?" + query, {"If-None-Match": first.headers["ETag"]}).status == 304
    other = server.get("/encode?" + query.replace("seed%22%3A%201", "seed%22%3A%202"))
    assert other.status == 200 and other.body != body and other.headers["ETag"] != first.headers["ETag"]
    boundary = b'--b\r\nContent-Disposition: form-data; name="request"\r\n\r\n' + json.dumps(request).encode() + b"\r\n--b--\r\n"
    assert server.request("POST", "/encode", boundary, {"Content-Type": "multipart/form-data; boundary=b"}).body == body
    analysis = server.ask("/analyze", configs=[{"scheme": "t5", "len": 4, "table": request["table"]}], metrics=["bounds"]).json()
    assert analysis["results"][0]["bounds"]["max"] == float(from_raw(server.post("/encode", request))["bias"].max())


def test_memory_is_reserved_before():
    with start_server("--max-memory", "64MiB", "--max-body", "1GiB") as server:
        before = server.memory()
        answer = server.post("/rotate", {"scheme": "rope", "q": drawn((32 << 20, 2)), "format": "raw"})
        assert answer.status == 413 and "--max-memory" in answer.json()["detail"]
        assert server.memory() - before < 16 << 20


def test_the_description_has_it(server):
    document = server.get("/openapi.json").json()
    tensor = document["components"]["schemas"]["Tensor"]
    validator = jsonschema.Draft202012Validator(tensor)
    for good in ([[1, 2]], {"shape": [1, 2], "seed": 7, "std": 1}, {"shape": [], "seed": 0}, {"dtype": "f32", "data": [1]}, {"shape": [1], "data": [1]}):
        assert validator.is_valid(good), good
    for bad in ({"shape": [1, 2]}, {"seed": 7}, {"shape": [1], "seed": 7, "data": [1]}, {"shape": [1], "seed": -1}, {"shape": [1], "seed": 1, "std": -1}):
        assert not validator.is_valid(bad), bad
