"""Tensors drawn from a seed in place of their numbers: {"shape":[1,64],"seed":7,"std":1}. The truth is the generator of tests/truth/absolute.py."""
import json
import urllib.parse

import jsonschema
import numpy as np
import pytest

from asking import inline, refused
from conftest import start_server
from truth.absolute import seeded
from tensors import from_raw


def drawn(shape, seed=0, std=None):
    return {"shape": list(shape), "seed": seed, **({} if std is None else {"std": std})}


def answer(server, path="/encode", **fields):
    return from_raw(server.ask(path, **fields, format="raw"))


@pytest.mark.parametrize("shape, seed, std", [((5, 8), 7, 1), ((2, 3, 4, 8), 0, None), ((1, 2), 2 ** 53, 1e-3), ((3, 2), 12.0, 0.0), ((9, 4), 5, 1e6)])
def test_the_numbers_are_the_generator_s(server, shape, seed, std):
    """By way of learned, which looks rows up: no arithmetic lies between."""
    table = seeded("table", shape, int(seed), 0.02 if std is None else std).reshape(-1, shape[-1])
    sent = drawn(table.shape, seed, std)
    found = answer(server, scheme="learned", len=len(table), dim=shape[-1], table=sent)["encoding"]
    assert found.dtype == np.float32 and found.tobytes() == table.tobytes()


def test_the_name_of_the_field_counts(server):
    q, k = seeded("q", (3, 4), 7, 1), seeded("k", (3, 4), 7, 1)
    assert not np.array_equal(q, k)
    scores = answer(server, "/attention", scheme="none", softmax_scale=1, outputs=["scores"], q=drawn((3, 4), 7, 1), k=drawn((3, 4), 7, 1))["scores"]
    assert np.abs(scores - q.astype(float) @ k.T.astype(float)).max() < 1e-6


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


def test_weights_are_those_of_the_request_s_seed(server):
    """A scheme's own seed draws by tensor names, and so does this one."""
    whole = answer(server, scheme="t5", num_heads=2, len=9, seed=4, std=0.5)["bias"]
    assert answer(server, scheme="t5", len=9, table=drawn((32, 2), 4, 0.5))["bias"].tobytes() == whole.tobytes()


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


@pytest.mark.parametrize("pointer, words, tensor", [
    ("/q/shape", ["shape is missing"], {"seed": 7}),
    ("/q/shape", ["shape is missing"], {"seed": 7, "std": 1}),
    ("/q/data", ["data", "shape and seed"], {"shape": [1, 2]}),
    ("/q/data", ["data", "shape and seed"], {"shape": [1, 2], "std": 1}),
    ("/q/seed", ["data or a seed"], {"shape": [1, 2], "seed": 7, "data": [1, 2]}),
    ("/q/std", ["std is not used"], {"shape": [1, 2], "std": 7, "data": [1, 2]}),
    ("/q/dtype", ["f32"], {"shape": [1, 2], "seed": 7, "dtype": "f16"}),
    ("/q/stdd", ["nearest: std"], {"shape": [1, 2], "seed": 7, "stdd": 1}),
    ("/q/seed", ["integer"], {"shape": [1, 2], "seed": 7.5}),
    ("/q/seed", ["2^53"], {"shape": [1, 2], "seed": -1}),
    ("/q/seed", ["integer"], {"shape": [1, 2], "seed": "7"}),
    ("/q/std", ["from 0"], {"shape": [1, 2], "seed": 7, "std": -1}),
    ("/q/std", ["1e6"], {"shape": [1, 2], "seed": 7, "std": 1e7}),
    ("/q/std", ["number"], {"shape": [1, 2], "seed": 7, "std": [1]}),
    ("/q/shape", ["list of integers"], {"shape": 4, "seed": 7}),
    ("/q/shape", ["integers of at least 0"], {"shape": [1, -2], "seed": 7}),
    ("/q/shape", ["integers of at least 0"], {"shape": [1.5, 2], "seed": 7}),
    ("/q/shape", ["2^63"], {"shape": [2 ** 40, 2 ** 40], "seed": 7}),
    ("/q/shape", ["8 axes"], {"shape": [1] * 9, "seed": 7}),
    ("/q", ["no elements"], {"shape": [0, 2], "seed": 7})], ids=str)
def test_refusals(server, pointer, words, tensor):
    refused(server, (pointer, "/q"), *words, path="/rotate", scheme="rope", q=tensor)


def test_other_objects_are_none(server):
    """An object with a seed that is no tensor keeps its meaning: a model's configuration."""
    config = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 64, "seed": 7, "extra": {"shape": [1], "seed": 3}}
    assert server.ask(hf_config=config, len=2).json()["scheme"] == "rope"


def test_how_many_numbers():
    """As many as a body could hold, all tensors of a request together."""
    with start_server("--max-body", "64KiB") as server:
        for n, status in ((16384, 200), (16385, 413)):
            answer = server.post("/rotate", {"scheme": "rope", "q": drawn((n // 2, 2)), "format": "raw"} if n % 2 == 0 else
                                 {"scheme": "rope", "q": drawn((8192, 2)), "k": drawn((1, 2)), "format": "raw"})
            assert answer.status == status and (status == 200 or "--max-body" in answer.json()["detail"] and answer.json()["pointer"] == "/k")
    with start_server("--max-work", "65536") as server:
        assert server.post("/rotate", {"scheme": "rope", "q": drawn((512, 2)), "format": "raw"}).status == 200
        assert server.post("/rotate", {"scheme": "rope", "q": drawn((513, 2)), "format": "raw"}).status == 413


def test_memory_is_reserved_before():
    with start_server("--max-memory", "64MiB", "--max-body", "1GiB") as server:
        before = server.memory()
        answer = server.post("/rotate", {"scheme": "rope", "q": drawn((32 << 20, 2)), "format": "raw"})
        assert answer.status == 413 and "--max-memory" in answer.json()["detail"]
        assert server.memory() - before < 16 << 20


def test_many_numbers_do_not_stop_the_loop(server):
    """A worker draws them; the answer is right."""
    found = answer(server, scheme="learned", dim=4, positions=[0, 99999], table=drawn((100000, 4), 9, 1))["encoding"]
    first = seeded("table", (1, 4), 9, 1)
    assert found[0].tobytes() == first[0].tobytes() and 0 < np.abs(found[1]).max() < 6


def test_the_description_has_it(server):
    document = server.get("/openapi.json").json()
    tensor = document["components"]["schemas"]["Tensor"]
    validator = jsonschema.Draft202012Validator(tensor)
    for good in ([[1, 2]], {"shape": [1, 2], "seed": 7, "std": 1}, {"shape": [], "seed": 0}, {"dtype": "f32", "data": [1]}, {"shape": [1], "data": [1]}):
        assert validator.is_valid(good), good
    for bad in ({"shape": [1, 2]}, {"seed": 7}, {"shape": [1], "seed": 7, "data": [1]}, {"shape": [1], "seed": -1}, {"shape": [1], "seed": 1, "std": -1}):
        assert not validator.is_valid(bad), bad
